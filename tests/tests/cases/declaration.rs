//! A7: declarations that are lost, unreadable or ill-formed.

use std::sync::Mutex;

use gradpact::Source;
use gradpact::prelude::*;

use crate::support::{Custom, FLOATS, Seen, leaf, leaf_in, of};

const F32: GradDType = GradDType::Exactly(DType::F32);

/// Stored in f16 three times: declared f32, not declared, taking any.
fn three_ways(x: &DynTensor) -> [DynTensor; 3] {
    [Some(F32), None, Some(GradDType::Any)]
        .map(|declared| Custom::store("Layer", DType::F16, declared, &Seen::default()).on(&[x]))
}

#[test]
fn o_35_every_tensor_tells_its_gradient_dtype() {
    let ways = three_ways(&leaf(DType::F32, &[1.0]));
    let expected = [F32, GradDType::Exactly(DType::F16), GradDType::Any];
    assert_eq!(ways.each_ref().map(|y| y.grad_dtype().unwrap()), expected);
    assert_eq!(ways.each_ref().map(|y| y.grad_dtype().unwrap().to_string()), ["f32", "f16", "any"]);

    // Also inside another Function's forward.
    static READ: Mutex<Vec<Option<GradDType>>> = Mutex::new(Vec::new());
    let reads = |_: &mut Context, inputs: &Inputs<'_>| {
        READ.lock().unwrap().extend(inputs.iter().map(|input| input.and_then(DynTensor::grad_dtype)));
        Ok(inputs.get(0)?.clone().into())
    };
    Custom::new("Reads", reads, |_, grads| Ok(grads)).on(&ways.each_ref());
    assert_eq!(*READ.lock().unwrap(), expected.map(Some));

    // In types.
    let typed: Tensor<f16, f32> = ways[0].typed().unwrap();
    assert_eq!(typed.grad_dtype(), Some(F32));
    let error = ways[0].typed::<f16, f16>().unwrap_err().to_string();
    assert!(error.contains("gradient dtype f16, got f32"), "{error}");
}

#[test]
fn o_36_operations_that_move_or_reshape_keep_the_gradient_dtype_and_detach_drops_it() {
    for storage in FLOATS {
        for gradient in [DType::F32, DType::F64] {
            let x = leaf_in(storage, gradient, &[1.0, 2.0]);
            let kept = Some(GradDType::Exactly(gradient).max_with(storage));
            assert_eq!(x.clone().grad_dtype(), Some(GradDType::Exactly(gradient)));
            for (name, y) in [
                ("reshape", x.reshape([2, 1]).unwrap()),
                ("narrow", x.narrow(0, 0, 1).unwrap()),
                ("broadcast_to", x.broadcast_to([3, 2]).unwrap()),
                ("permute", x.reshape([1, 2]).unwrap().permute(&[1, 0]).unwrap()),
                ("cast", x.cast(DType::BF16).unwrap().cast(storage).unwrap()),
            ] {
                assert_eq!(y.grad_dtype(), kept, "{name} of {storage}");
            }
            let detached = x.detach();
            assert!(!detached.requires_grad());
            assert_eq!(
                detached.grad_dtype(),
                Some(GradDType::Exactly(storage)),
                "documented: back to the default"
            );
            let error = detached.sum().unwrap().backward().unwrap_err().to_string();
            assert!(error.contains("`detach` was called"), "{error}");
        }
    }
}

/// What an operation makes of a gradient dtype.
trait MaxWith {
    fn max_with(self, storage: DType) -> Self;
}

impl MaxWith for GradDType {
    fn max_with(self, storage: DType) -> Self {
        self.dtype().map_or(Self::Any, |dtype| Self::Exactly(gradpact_tests::format::meeting(dtype, storage)))
    }
}

/// Declares what is the default anyway.
#[autograd_function(out = f32, grad = f32)]
struct Explicit;

impl Op for Explicit {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f32>> {
        Ok(x)
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        Ok(grad)
    }
}

/// Declares nothing.
#[autograd_function(out = f32)]
struct Implicit;

impl Op for Implicit {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f32>> {
        Ok(x)
    }

    fn backward(&self, _: &Context, grad: Value<f32>) -> Result<Value<f32>> {
        Ok(grad)
    }
}

#[test]
fn o_37_asking_for_the_default_is_told_apart_from_not_asking() {
    let x = Tensor::<f32>::ones([1]).unwrap().requiring_grad().unwrap();
    let source = |y: Tensor<f32>| y.as_dyn().grad_dtype_source().unwrap();
    assert_eq!(source(Explicit.apply(&x).unwrap()), Source::Declared);
    assert_eq!(source(Implicit.apply(&x).unwrap()), Source::Default);
    assert_eq!(source(Implicit.apply(&x).unwrap().neg().unwrap()), Source::Carried);
    assert_eq!(leaf(DType::F32, &[1.0]).grad_dtype_source(), Some(Source::Default));
    assert_eq!(leaf_in(DType::F32, DType::F32, &[1.0]).grad_dtype_source(), Some(Source::Declared));
    let dynamic = |declared| {
        let y = Custom::store("Layer", DType::F32, declared, &Seen::default());
        y.on(&[&leaf(DType::F32, &[1.0])]).grad_dtype_source().unwrap()
    };
    assert_eq!([dynamic(Some(F32)), dynamic(None)], [Source::Declared, Source::Default]);
}

/// A Function with this many outputs that makes these declarations, one call for each list.
fn declaring(outputs: usize, calls: &'static [&'static [GradDType]], flat: Option<usize>) -> Result<Outputs> {
    let forward = move |ctx: &mut Context, inputs: &Inputs<'_>| {
        flat.into_iter().for_each(|output| ctx.mark_non_differentiable(&[output]));
        // A mistake counts even if the forward ignores the error.
        calls.iter().for_each(|declared| drop(ctx.set_output_grad_dtype(declared)));
        let x = inputs.get(0)?;
        (0..outputs).map(|_| x.mul_scalar(1.0)).collect()
    };
    apply(Custom::new("Declares", forward, |_, grads| Ok(grads)), &[&leaf(DType::F32, &[1.0])])
}

#[test]
fn o_38_an_ill_formed_declaration_is_an_error_that_counts_or_points() {
    let says = |result: Result<Outputs>, words: &[&str]| {
        let error = result.unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
        assert!(!error.contains('\n'), "one line: {error}");
    };
    says(declaring(2, &[&[F32]], None), &["`Declares`", "1 declarations for 2 outputs"]);
    says(declaring(2, &[&[F32, F32, F32]], None), &["`Declares`", "3 declarations for 2 outputs"]);
    says(declaring(1, &[&[]], None), &["`Declares`", "0 declarations for 1 outputs"]);
    says(declaring(1, &[&[F32], &[F32]], None), &["`set_output_grad_dtype`", "twice", "`Declares`"]);
    says(declaring(2, &[&[F32, F32]], Some(1)), &["output 1 of `Declares`", "non-differentiable"]);
    const INTEGER: GradDType = GradDType::Exactly(DType::I32);
    says(declaring(2, &[&[F32, INTEGER]], None), &["output 1 of `Declares`", "i32", "floating-point"]);
    // Whether or not anything is recorded.
    says(no_grad(|| declaring(2, &[&[F32]], None)), &["`Declares`", "1 declarations for 2 outputs"]);
    assert!(declaring(2, &[&[F32, GradDType::Any]], Some(1)).is_ok());
}

#[test]
fn o_38_none_of_it_leaves_the_inputs_changed() {
    let x = leaf(DType::F32, &[1.0]);
    let wrong = |ctx: &mut Context, inputs: &Inputs<'_>| {
        ctx.set_output_grad_dtype(&[F32, F32])?;
        Ok(inputs.get(0)?.clone().into())
    };
    apply(Custom::new("Wrong", wrong, |_, grads| Ok(grads)), &[&x]).unwrap_err();
    x.mul(&of(DType::F32, &[2.0])).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(crate::support::grad(&x), (DType::F32, vec![2.0]));
}
