//! A5 and A6: sums of gradients, how wide they are and what they must not depend on.

use gradpact::prelude::*;
use gradpact_tests::format;

use crate::support::{Custom, FLOATS, Seen, grad, leaf, leaf_in, of, options, scalar, send, values};

#[test]
fn o_26_many_small_gradients_do_not_stall() {
    let small = of(DType::BF16, &[0.001]);
    assert_eq!(values(&small), [0.000_999_450_683_593_75]);
    let total = |declared| {
        let (seen, x) = (Seen::default(), leaf(DType::F64, &[1.0]));
        let y = Custom::store("Layer", DType::BF16, declared, &seen).on(&[&x]);
        send(&vec![(&y, &small); 1000], options()).unwrap();
        seen.last(0)
    };
    assert_eq!(total(Some(GradDType::Exactly(DType::F32))), (DType::F32, vec![0.999_450_683_593_75]));
    assert_eq!(total(Some(GradDType::Exactly(DType::F64))), (DType::F64, vec![0.999_450_683_593_75]));
    // In one backward even a bf16 sum is formed in f32 and rounded once.
    let rounded = format::round(DType::BF16, 0.999_450_683_593_75);
    assert_eq!(total(None), (DType::BF16, vec![rounded]));
    assert_eq!(total(Some(GradDType::Any)), (DType::BF16, vec![rounded]), "any: all that came are bf16");

    // Over many backwards what a leaf keeps decides: f32 does not stall, bf16 does.
    for (kept, expected) in [(DType::F32, 0.999_450_683_593_75), (DType::BF16, 0.5)] {
        let x = leaf_in(DType::BF16, kept, &[1.0]);
        for _ in 0..1000 {
            x.backward_with(&small, options()).unwrap();
        }
        assert_eq!(grad(&x), (kept, vec![expected]));
    }
}

#[test]
fn o_27_an_intermediate_gradient_is_not_parked_in_the_values_dtype() {
    for storage in FLOATS {
        let x = leaf(DType::F32, &[1.0]);
        let times = |_: &Context, grads: Gradients| Ok(grads[0].as_ref().unwrap().mul_scalar(1000.0)?.into());
        let forward = move |ctx: &mut Context, inputs: &Inputs<'_>| {
            ctx.set_output_grad_dtype(&[GradDType::Exactly(DType::F32)])?;
            Ok(inputs.get(0)?.cast(storage)?.into())
        };
        let y = Custom::new("Scaled", forward, times).on(&[&x]);
        // Through an operation that works in the storage dtype, too.
        let z = y.add(&of(storage, &[0.0])).unwrap();
        send(&[(&z, &of(DType::F32, &[1e-6]))], options()).unwrap();
        let expected = format::round(DType::F32, 1000.0 * format::round(DType::F32, 1e-6));
        assert_eq!(grad(&x), (DType::F32, vec![expected]), "{storage}");
        assert!((expected - 0.001_000_000_047_5).abs() < 1e-13);
    }
}

#[test]
fn o_28_a_sum_overflows_only_where_its_declared_dtype_does() {
    let total = |declared| {
        let (seen, x) = (Seen::default(), leaf(DType::F32, &[1.0]));
        let y = Custom::store("Norm", DType::F16, Some(GradDType::Exactly(declared)), &seen).on(&[&x]);
        send(&vec![(&y, &of(DType::F16, &[1000.0])); 70], options()).unwrap();
        seen.last(0)
    };
    assert_eq!(total(DType::F32), (DType::F32, vec![70_000.0]));
    assert_eq!(total(DType::F64), (DType::F64, vec![70_000.0]));
    assert_eq!(total(DType::F16), (DType::F16, vec![f64::INFINITY]));
    // A built-in reduction likewise.
    let terms = of(DType::F16, &[1000.0; 70]);
    assert_eq!(values(&terms.sum_in(DType::F32).unwrap()), [70_000.0]);
    assert_eq!(values(&terms.sum().unwrap()), [f64::INFINITY]);
}

#[test]
fn o_29_the_dtype_of_a_sum_and_of_its_result_are_two_choices() {
    let terms = of(DType::F32, &[256.0, 1.0, 1.0]);
    let sum = |reduce, result| {
        let sum = terms.sum_accumulating_in(reduce, result).unwrap();
        (sum.dtype(), values(&sum))
    };
    assert_eq!(sum(DType::F32, DType::F32), (DType::F32, vec![258.0]));
    assert_eq!(sum(DType::BF16, DType::F32), (DType::F32, vec![256.0]));
    assert_eq!(sum(DType::F32, DType::BF16), (DType::BF16, vec![258.0]));
    // In each pair, adding from the left and rounding every time.
    for reduce in FLOATS {
        let narrow = [256.0, 1.0, 1.0].map(|term| format::round(reduce, term));
        let added = narrow.into_iter().fold(0.0, |sum, term| format::round(reduce, sum + term));
        for result in FLOATS {
            assert_eq!(
                sum(reduce, result),
                (result, vec![format::round(result, added)]),
                "{reduce} {result}"
            );
        }
    }
    // Without a choice nothing is lost: 258 is a bf16 number.
    let narrow = terms.cast(DType::BF16).unwrap();
    assert_eq!(values(&narrow.sum().unwrap()), [258.0]);
    // The gradient passes as declared, whatever the terms are summed in.
    let x = leaf(DType::F32, &[256.0, 1.0, 1.0]);
    let seed = scalar(DType::F32, 1e-10);
    x.sum_accumulating_in(DType::BF16, DType::F32).unwrap().backward_with(&seed, options()).unwrap();
    assert_eq!(grad(&x), (DType::F32, vec![f64::from(1e-10_f32); 3]));
}

#[test]
fn o_30_a_norm_of_narrow_gradients_is_formed_wide() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let gradient = of(dtype, &[100.0; 9]);
        let squares = gradient.mul(&gradient).unwrap();
        let squares = if dtype == DType::F64 { squares.sum() } else { squares.sum_in(DType::F32) };
        let norm = values(&squares.unwrap().sqrt().unwrap());
        // 10 000 is not a bf16 number: its square root may be off by as much as that.
        assert!((norm[0] - 300.0).abs() < if dtype == DType::BF16 { 1.0 } else { 1e-4 }, "{dtype}: {norm:?}");
    }
}

#[test]
fn o_31_the_dtype_of_a_gradient_does_not_depend_on_when_the_leaf_was_first_used() {
    let leaves = [0; 3].map(|_| leaf_in(DType::BF16, DType::F32, &[1.0]));
    let [p, q, r] = &leaves;
    for batch in 0..3 {
        let mut loss = p.mul(&of(DType::BF16, &[2.0])).unwrap();
        if batch == 2 {
            loss = loss.add(&q.mul(&of(DType::BF16, &[3.0])).unwrap()).unwrap();
        }
        loss.sum().unwrap().backward().unwrap();
    }
    assert_eq!(grad(p), (DType::F32, vec![6.0]));
    assert_eq!(grad(q), (DType::F32, vec![3.0]));
    assert!(r.grad().is_none());
}

/// 5x.
#[autograd_function(out = f32)]
struct TimesFive;

impl Op for TimesFive {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f32>> {
        x.mul_scalar(5.0)
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        grad.mul_scalar(5.0)
    }
}

#[test]
fn o_32_gradients_are_added_and_never_overwritten() {
    let x = Tensor::<f32>::scalar(1.0).requiring_grad().unwrap();
    let f = || TimesFive.apply(&x).unwrap();
    f().add(&f().mul_scalar(3.0).unwrap()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().item().unwrap(), 20.0, "applied twice");
    x.zero_grad();
    let once = f();
    once.add(&once.mul_scalar(3.0).unwrap()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().item().unwrap(), 20.0, "applied once, used twice");
}

#[test]
fn o_33_gradients_of_several_dtypes_add_up_the_same_in_every_order() {
    let sent = [of(DType::F16, &[2048.0]), of(DType::F32, &[1.0]), of(DType::F32, &[1.0])];
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        let total = |x: &DynTensor| {
            let targets: Vec<_> = order.iter().map(|&i| (x, &sent[i])).collect();
            send(&targets, options()).unwrap();
            grad(x)
        };
        assert_eq!(total(&leaf_in(DType::F16, DType::F32, &[1.0])), (DType::F32, vec![2050.0]));
        assert_eq!(total(&leaf(DType::F16, &[1.0])), (DType::F16, vec![2050.0]), "summed wide, then rounded");
        let any = of(DType::F16, &[1.0]).requiring_grad_in(GradDType::Any).unwrap();
        assert_eq!(total(&any), (DType::F32, vec![2050.0]), "any: the widest that came");
    }
}

#[test]
fn o_34_a_gradient_of_the_wrong_dtype_is_added_or_refused_by_name() {
    for narrow in FLOATS.into_iter().filter(|&dtype| dtype != DType::F32) {
        let run = |options| {
            let x = leaf(DType::F32, &[1.0]);
            let [a, b] = [("Wide", DType::F32), ("Other", narrow)]
                .map(|(name, dtype)| Custom::giving(name, vec![Some(of(dtype, &[1.5]))]).on(&[&x]));
            gradpact::backward(&[(&a, None), (&b, None)], options).map(|()| grad(&x))
        };
        assert_eq!(run(options()).unwrap(), (DType::F32, vec![3.0]));
        let error = run(options().strict()).unwrap_err().to_string();
        assert!(error.contains("input 0 of `Other`") && error.contains("for a leaf"), "{error}");
        assert!(error.contains(&format!("expected f32, got {narrow}")), "{error}");
    }
}

/// The gradients of `x` that these make, as bits, in one backward: added when all are there, or one by one where an audit, hooks or
/// a graph of backward ask for each.
fn in_every_way(x: &DynTensor, sent: &[DynTensor]) -> [(DType, Vec<u64>); 4] {
    let outcome = |options, sent: &[DynTensor]| {
        x.zero_grad();
        let targets: Vec<_> = sent.iter().map(|grad| (x, grad)).collect();
        send(&targets, options).unwrap();
        let (dtype, values) = grad(x);
        x.zero_grad();
        // Which of several NaNs a sum is is not laid down.
        let bits = |value: f64| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
        (dtype, values.into_iter().map(bits).collect())
    };
    let audited = gradpact::audit::record(|| outcome(options(), sent)).0;
    let tracked: Vec<_> = sent.iter().map(|grad| grad.requiring_grad().unwrap()).collect();
    let targets: Vec<_> =
        sent.iter().map(|grad| Custom::giving("Hooked", vec![Some(grad.clone())]).on(&[x])).collect();
    for target in &targets {
        target.grad_fn().unwrap().register_hook(|_, _| Ok(None));
    }
    let roots: Vec<_> = targets.iter().map(|target| (target, None)).collect();
    gradpact::backward(&roots, options()).unwrap();
    let (dtype, hooked) = grad(x);
    let hooked = hooked.into_iter().map(|v| if v.is_nan() { f64::NAN } else { v }.to_bits()).collect();
    [outcome(options(), sent), audited, outcome(options().create_graph(), &tracked), (dtype, hooked)]
}

#[test]
fn gradients_that_wait_to_be_added_make_the_same_sum() {
    let special =
        [0.0, -0.0, f64::INFINITY, f64::NAN, 65_519.0, 65_520.0, 1e-7, 464.0, 1e30, 2.0_f64.powi(-24)];
    let number = |nth: usize, element: usize| match special.get((nth * 7 + element) % 40) {
        Some(&special) => special,
        None => ((nth * 31 + element * 17) % 101) as f64 / 37.0 - 1.3,
    };
    for declared in FLOATS {
        let x = leaf_in(DType::F32, declared, &[1.0; 37]);
        for arriving in FLOATS {
            for count in 1..=5 {
                // All alike, and every other in the declared dtype.
                for every in [1, 2] {
                    let sent: Vec<_> = (0..count)
                        .map(|nth| {
                            let values: Vec<_> = (0..37).map(|element| number(nth, element)).collect();
                            of(if nth % every == 0 { arriving } else { declared }, &values)
                        })
                        .collect();
                    let [late, others @ ..] = in_every_way(&x, &sent);
                    for (way, other) in others.into_iter().enumerate() {
                        assert_eq!(late, other, "{count} of {arriving}, declared {declared}, way {way}");
                    }
                }
            }
        }
    }
}
