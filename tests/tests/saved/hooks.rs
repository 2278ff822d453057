//! `saved_tensors_hooks` and `save_in`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use gradpact::autograd::{save_in, saved_tensors_hooks};
use gradpact::prelude::*;
use gradpact_tests::toy;

use super::{Square, leaf, values};

/// Counts calls.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn up(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Packs a tensor as it is, and counts.
fn counting<R>(packed: &Count, unpacked: &Count, body: impl FnOnce() -> R) -> R {
    let (packed, unpacked) = (packed.clone(), unpacked.clone());
    let pack = move |tensor: &DynTensor| {
        packed.up();
        Ok(tensor.clone())
    };
    let unpack = move |tensor: &DynTensor| {
        unpacked.up();
        Ok(tensor.clone())
    };
    saved_tensors_hooks(pack, unpack, body)
}

#[test]
fn each_saved_tensor_is_packed_when_it_is_saved_and_unpacked_when_its_backward_runs() {
    let (packed, unpacked) = (Count::default(), Count::default());
    let x = leaf(DType::F32, &[3.0]);
    let y = counting(&packed, &unpacked, || x.mul(&x).unwrap().exp().unwrap());
    // Two operands, and the result of `exp`.
    assert_eq!((packed.get(), unpacked.get()), (3, 0));
    let outside = y.mul(&y).unwrap();
    assert_eq!(packed.get(), 3, "what is saved outside the region is kept as ever");
    outside.backward_opts(BackwardOptions::new().retain_graph()).unwrap();
    assert_eq!(unpacked.get(), 3);
    // d exp(x²)²/dx = 4x·exp(2x²)
    let expected = (4.0 * 3.0 * (18.0_f64).exp()) as f32;
    assert!((values(&x.grad().unwrap())[0] as f32 / expected - 1.0).abs() < 1e-5);
    outside.backward().unwrap();
    assert_eq!(unpacked.get(), 6, "a second backward unpacks again");
}

#[test]
fn hooks_see_plain_values_and_nothing_they_do_is_recorded() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let x = leaf(DType::F32, &[2.0]);
    let notes = Arc::clone(&seen);
    let pack = move |tensor: &DynTensor| {
        // Would be packed itself, and so on for ever, if hooks held inside hooks.
        let twice = tensor.mul(tensor)?.exp()?;
        notes.lock().unwrap().push((tensor.requires_grad(), twice.requires_grad()));
        Ok(tensor.clone())
    };
    saved_tensors_hooks(pack, |tensor: &DynTensor| Ok(tensor.clone()), || x.mul(&x).unwrap());
    assert_eq!(*seen.lock().unwrap(), [(false, false); 2]);
}

#[test]
fn double_backward_goes_through_unpacked_inputs_and_outputs() {
    let x = leaf(DType::F64, &[0.5]);
    let pack = |tensor: &DynTensor| tensor.to_vec::<f64>();
    let unpack = |values: &Vec<f64>| DynTensor::from_slice(values, [values.len()]);
    let y = saved_tensors_hooks(pack, unpack, || x.mul(&x).unwrap().exp().unwrap());
    let options = BackwardOptions::new().create_graph();
    let first = gradpact::grad(&[(&y, None)], &[&x], options).unwrap()[0].clone().unwrap();
    let second = gradpact::grad(&[(&first, None)], &[&x], BackwardOptions::new()).unwrap();
    // (exp x²)″ = (2 + 4x²)·exp x²
    assert!((values(second[0].as_ref().unwrap())[0] - 3.0 * 0.25_f64.exp()).abs() < 1e-14);
}

#[test]
fn of_nested_regions_the_innermost_counts_and_each_ends_where_it_ends() {
    let (outer, inner, unpacked) = (Count::default(), Count::default(), Count::default());
    let x = leaf(DType::F32, &[2.0]);
    counting(&outer, &unpacked, || {
        x.exp().unwrap();
        counting(&inner, &unpacked, || x.exp().unwrap());
        x.exp().unwrap();
    });
    x.exp().unwrap();
    assert_eq!((outer.get(), inner.get()), (2, 1));
    // Also when a panic ends it.
    let panicking = || counting(&outer, &unpacked, || panic!("on purpose"));
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(panicking)).unwrap_err();
    x.exp().unwrap();
    assert_eq!(outer.get(), 2);
}

#[test]
fn hooks_are_for_tensors_of_their_engine_and_their_thread() {
    let (packed, unpacked) = (Count::default(), Count::default());
    let x = toy::tensor(DType::F32, &[2.0]).requiring_grad().unwrap();
    let mine = leaf(DType::F32, &[2.0]);
    let other = counting(&packed, &unpacked, || {
        std::thread::scope(|scope| scope.spawn(|| mine.exp().unwrap()).join().unwrap());
        toy::mul(&x, &x).unwrap()
    });
    other.backward().unwrap();
    assert_eq!((packed.get(), unpacked.get()), (0, 0));
    assert_eq!(x.grad().unwrap().array().values(), [4.0]);
}

#[test]
fn unpacking_another_dtype_or_shape_is_an_error_that_names_function_and_position() {
    let x = leaf(DType::F32, &[2.0, 3.0]);
    let narrow = |tensor: &DynTensor| tensor.cast(DType::F16);
    let y = saved_tensors_hooks(narrow, |tensor: &DynTensor| Ok(tensor.clone()), || x.mul(&x).unwrap());
    let error = y.sum().unwrap().backward().unwrap_err().to_string();
    for part in ["saved tensor 0 of `Mul`", "expected f32 [2], as it was packed", "got f16 [2]"] {
        assert!(error.contains(part), "{error}");
    }
    let y = saved_tensors_hooks(
        |tensor: &DynTensor| Ok(tensor.clone()),
        |tensor: &DynTensor| tensor.reshape([2, 1]),
        || x.mul(&x).unwrap(),
    );
    let error = y.sum().unwrap().backward().unwrap_err().to_string();
    assert!(error.contains("got f32 [2, 1]"), "{error}");
}

#[test]
fn errors_and_panics_of_hooks_are_errors_that_name_the_function_and_leave_all_usable() {
    type Hook = fn(&DynTensor) -> Result<DynTensor>;
    let fine: Hook = |tensor| Ok(tensor.clone());
    let fails: Hook = |_| Err(Error::custom("disk is full"));
    let panics: Hook = |_| panic!("disk is gone");
    let x = leaf(DType::F32, &[2.0]);
    for (hook, says) in [(fails, "disk is full"), (panics, "disk is gone")] {
        let error = saved_tensors_hooks(hook, fine, || x.mul(&x)).unwrap_err().to_string();
        assert!(error.contains("packing a saved tensor of `Mul`") && error.contains(says), "{error}");
        let error = saved_tensors_hooks(hook, fine, || Square.apply(&x.typed::<f32, f32>()?));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("packing a saved tensor of `Square`") && error.contains(says), "{error}");
        let y = saved_tensors_hooks(fine, hook, || x.mul(&x)).unwrap();
        let error = y.backward().unwrap_err().to_string();
        assert!(error.contains("unpacking a saved tensor of `Mul`") && error.contains(says), "{error}");
    }
    assert!(x.grad().is_none());
    x.mul(&x).unwrap().backward().unwrap();
    assert_eq!(values(&x.grad().unwrap()), [4.0]);
}

#[test]
fn saving_in_a_narrower_dtype_rounds_what_is_saved_and_not_the_gradient() {
    // 1 + 2⁻⁸ is rounded to 1 in bf16, and is exact in f16.
    let fine = 1.0 + 2.0_f64.powi(-8);
    let gradient = |dtype: Option<DType>| {
        let x = leaf(DType::F32, &[fine]);
        let tensor = x.typed::<f32, f32>().unwrap();
        let apply = || Square.apply(&tensor).unwrap();
        let y = match dtype {
            Some(dtype) => save_in(dtype, apply).unwrap(),
            None => apply(),
        };
        let seed = DynTensor::from_vec(vec![1e-10_f32], [1]).unwrap();
        y.as_dyn().backward_with(&seed, BackwardOptions::new()).unwrap();
        values(&x.grad().unwrap())[0]
    };
    let seed = 1e-10_f32;
    assert_eq!(gradient(None), f64::from(seed * fine as f32 * 2.0));
    assert_eq!(gradient(Some(DType::F16)), f64::from(seed * fine as f32 * 2.0));
    assert_eq!(gradient(Some(DType::BF16)), f64::from(seed * 2.0));
    assert_eq!(gradient(Some(DType::F64)), gradient(None), "nothing is widened");
}

#[test]
fn what_is_saved_and_how_can_be_read_on_every_node() {
    let told = |tensor: &DynTensor| -> Vec<String> {
        tensor.grad_fn().unwrap().saved_tensors().iter().map(ToString::to_string).collect()
    };
    let x = leaf(DType::F32, &[1.0, 2.0]);
    let index = DynTensor::from_vec(vec![0_i64], [1]).unwrap();
    assert_eq!(told(&x.mul(&x).unwrap()), ["f32 [2]", "f32 [2]"]);
    let narrow = |op: &dyn Fn() -> DynTensor| save_in(DType::F16, op).unwrap();
    assert_eq!(told(&narrow(&|| x.mul(&x).unwrap())), ["f32 [2], kept as f16", "f32 [2], kept as f16"]);
    let half = leaf(DType::BF16, &[1.0]);
    assert_eq!(told(&narrow(&|| half.exp().unwrap())), ["bf16 [1], kept as it is"], "as narrow as asked for");
    let picked = narrow(&|| x.index_select(0, &index).unwrap());
    assert!(told(&picked).contains(&"i64 [1], kept as it is".to_owned()), "{:?}", told(&picked));
    let y = x.exp().unwrap();
    y.sum().unwrap().backward().unwrap();
    assert!(told(&y).is_empty(), "freed");
}

#[test]
fn saving_in_an_integer_dtype_is_refused_before_anything_runs() {
    for dtype in DType::ALL.into_iter().filter(|dtype| !dtype.is_float()) {
        let error = save_in(dtype, || panic!("must not run")).unwrap_err().to_string();
        assert!(error.contains("`save_in`") && error.contains(&format!("got {dtype}")), "{error}");
    }
}
