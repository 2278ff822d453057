//! `materialize`, and `Context::set_materialize_grads`.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use gradpact::prelude::*;

use crate::{grad, leaf, of, options, says};

/// What backward received of each output: its dtype and value, or nothing.
type Seen = Arc<Mutex<Vec<Option<(DType, f64)>>>>;

fn seen(grad: &DynTensor) -> (DType, f64) {
    (grad.dtype(), grad.cast(DType::F64).unwrap().item().unwrap())
}

/// Its input four times: with a declared gradient dtype, without a gradient, with any, and with the default.
#[autograd_function(out = (f16, i64, bf16, T), grad = (f32, none, any, T), materialize = false)]
#[derive(Clone)]
struct Fan<T: Float> {
    seen: Seen,
    dtype: PhantomData<T>,
}

/// The gradients that may be missing, and the one that never comes.
type Received<T> = (Option<Value<f32>>, (), Option<DynTensor>, Option<Value<T>>);

impl<T: Float> Op for Fan<T> {
    type Inputs = Tensor<f32>;

    fn forward(
        &self,
        _: &mut Context,
        x: Value<f32>,
    ) -> Result<(Value<f16>, Value<i64>, Value<bf16>, Value<T>)> {
        Ok((x.cast()?, x.cast()?, x.cast()?, x.cast()?))
    }

    fn backward(&self, _: &Context, (first, (), any, last): Received<T>) -> Result<Value<f32>> {
        let all = [first.map(Tensor::into_dyn), any, last.map(Tensor::into_dyn)];
        *self.seen.lock().unwrap() = all.iter().map(|grad| grad.as_ref().map(seen)).collect();
        let mut sum = DynTensor::zeros([1], DType::F32)?;
        for grad in all.into_iter().flatten() {
            sum = sum.add(&grad.cast(DType::F32)?)?;
        }
        sum.typed()
    }
}

#[test]
fn backward_is_told_which_outputs_nobody_used() {
    let fan = Fan::<f64> { seen: Seen::default(), dtype: PhantomData };
    let x = leaf(&[2.0]);
    let outputs = || {
        let (first, _, any, last) = fan.clone().apply(&x).unwrap();
        [first.into_dyn(), any.into_dyn(), last.into_dyn()]
    };
    let expected = [
        Some((DType::F32, 1e-10_f32.into())),
        Some((DType::BF16, 3.0)),
        Some((DType::F64, 1e-10_f32.into())),
    ];
    for used in 0..3 {
        x.zero_grad();
        let seed = if used == 1 { of(DType::BF16, &[3.0]) } else { of(DType::F32, &[1e-10]) };
        outputs()[used].backward_with(&seed, options()).unwrap();
        let only_this = (0..3).map(|output| expected[output].filter(|_| output == used));
        assert_eq!(*fan.seen.lock().unwrap(), only_this.collect::<Vec<_>>(), "in the declared dtypes");
    }
    // All at once.
    let outputs = outputs();
    let seeds = [of(DType::F32, &[1e-10]), of(DType::BF16, &[3.0]), of(DType::F32, &[1e-10])];
    let roots: Vec<_> = outputs.iter().zip(&seeds).map(|(output, seed)| (output, Some(seed))).collect();
    gradpact::backward(&roots, options()).unwrap();
    assert_eq!(*fan.seen.lock().unwrap(), expected);
}

/// Sends nothing back.
struct Withholding;

impl Function for Withholding {
    fn name(&self) -> &'static str {
        "Withholding"
    }

    fn forward(&self, _: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
        Ok(inputs.get(0)?.clone().into())
    }

    fn backward(&self, _: &Context, _: Gradients) -> Result<Gradients> {
        Ok([None].into())
    }
}

/// One output, whose gradient may be missing.
#[autograd_function(out = f16, grad = f32, materialize = false)]
struct Optional {
    seen: Seen,
}

impl Op for Optional {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        x.cast()
    }

    fn backward(&self, _: &Context, grad: Option<Value<f32>>) -> Result<Value<f32>> {
        self.seen.lock().unwrap().push(grad.as_ref().map(|grad| seen(grad.as_dyn())));
        grad.map_or_else(|| Value::full([1], 7.0), Ok)
    }
}

#[test]
fn a_gradient_that_was_withheld_further_on_is_missing_too() {
    let (x, seen) = (leaf(&[1.0]), Seen::default());
    let y = Optional { seen: Arc::clone(&seen) }.apply(&x).unwrap();
    let z = apply(Withholding, &[y.as_dyn()]).unwrap();
    z[0].backward_with(&of(DType::F32, &[1.0]), options()).unwrap();
    assert_eq!(*seen.lock().unwrap(), [None]);
    assert_eq!(grad(&x), [7.0], "what backward makes of it travels on");
}

/// Zeros for unused outputs, which the key says in so many words.
#[autograd_function(out = (f16, f16), grad = (f32, f64), materialize = true)]
struct Filled;

impl Op for Filled {
    type Inputs = Tensor<f32>;

    fn forward(&self, _: &mut Context, x: Value<f32>) -> Result<(Value<f16>, Value<f16>)> {
        Ok((x.cast()?, x.cast()?))
    }

    fn backward(&self, _: &Context, (first, second): (Value<f32>, Value<f64>)) -> Result<Value<f32>> {
        assert_eq!(second.to_vec()?, [0.0]);
        Ok(first)
    }
}

#[test]
fn with_true_an_unused_output_gets_zeros_in_the_declared_dtype() {
    let x = leaf(&[1.0]);
    let (first, _) = Filled.apply(&x).unwrap();
    first.as_dyn().backward_with(&of(DType::F32, &[0.5]), options()).unwrap();
    assert_eq!(grad(&x), [0.5]);
}

/// Whose forward says otherwise than its type.
#[autograd_function(out = f16)]
struct Contradicting;

impl Op for Contradicting {
    type Inputs = Tensor<f32>;

    fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
        ctx.set_materialize_grads(false);
        x.cast()
    }

    fn backward(&self, _: &Context, grad: Value<f16>) -> Result<Value<f32>> {
        grad.cast()
    }
}

#[test]
fn forward_cannot_say_otherwise_than_the_types_of_backward() {
    let error = Contradicting.apply(&leaf(&[1.0])).unwrap_err();
    says(&error, &["forward of `Contradicting`", "`set_materialize_grads`", "change its `materialize = …`"]);
}
