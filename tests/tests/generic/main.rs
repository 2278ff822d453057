//! What is written once for every engine gives on the embedded one what its own methods give, bit for bit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod own;

use gradpact::ops::{DynTensorOps, ValueOps};
use gradpact::prelude::*;
use gradpact::{Cpu, Ops};
use gradpact_tests::generic::operations::{Operation, alone, inside, operations};
use gradpact_tests::generic::{Access, CPU, Outcome, functions, leaf, outcome};
use gradpact_tests::toy::{Toy, ToyArray};

/// Compares each operation with the embedded engine's own.
fn each(run: impl Fn(&Operation<Cpu>) -> Result<Outcome>) {
    let (own, generic) = (own::operations(), operations::<Cpu>());
    assert!(own.len() == generic.len() && own.len() > 60, "the list is whole");
    for (own, generic) in own.iter().zip(&generic) {
        let name = own.name;
        assert_eq!(run(generic).unwrap(), run(own).unwrap(), "{name}");
    }
}

#[test]
fn operations_on_dynamic_tensors_give_the_values_and_gradients_of_the_embedded_engines_methods() {
    each(|operation| alone::<f32, f32, _>(&CPU, operation.dynamic));
    each(|operation| alone::<f16, f16, _>(&CPU, operation.dynamic));
    each(|operation| alone::<f64, f64, _>(&CPU, operation.dynamic));
}

#[test]
fn operands_of_two_dtypes_are_promoted_as_by_the_embedded_engines_methods() {
    each(|operation| alone::<f16, f32, _>(&CPU, operation.dynamic));
    each(|operation| alone::<f16, bf16, _>(&CPU, operation.dynamic));
    each(|operation| alone::<f64, bf16, _>(&CPU, operation.dynamic));
}

#[test]
fn operations_inside_a_function_give_what_they_give_outside_generic_code() {
    each(|operation| inside::<f16, f32, _>(&CPU, operation.typed));
    each(|operation| inside::<bf16, f32, _>(&CPU, operation.typed));
    each(|operation| inside::<f32, f16, _>(&CPU, operation.typed));
}

#[test]
fn a_function_generic_over_the_engine_gives_what_the_same_text_gives_with_the_embedded_engines_methods() {
    let (generic, own) = (functions::outcomes(&CPU).unwrap(), own::outcomes(&CPU).unwrap());
    assert_eq!(generic, own);
    let received = |at: usize| generic[at].1.grads[0].as_ref().unwrap().values.clone();
    assert!(generic.iter().all(|(_, outcome)| outcome.grads.iter().all(Option::is_some)));
    assert!((0..generic.len()).all(|at| received(at).iter().any(|&value| value != 0.0)));
}

/// `x² + x`, stored in half precision.
#[autograd_function(out = f16, grad = f32)]
struct Parabola;

impl<E: Ops> Op<E> for Parabola {
    type Inputs = Tensor<f32, f32, E>;

    fn forward(&self, ctx: &mut Context<E>, x: Value<f32, E>) -> Result<Value<f16, E>> {
        ctx.save_for_backward(&x);
        x.mul(&x)?.add(&x)?.cast()
    }

    fn backward(&self, ctx: &Context<E>, grad: Value<f32, E>) -> Result<Value<f32, E>> {
        let x: Value<f32, E> = ctx.saved()?;
        grad.mul(&x.add(&x)?.add(&x.ones_like()?)?)
    }
}

const TOY: Access<Toy> = Access {
    make: |dtype, shape, values| {
        Ok(DynTensor::from_array(ToyArray::new(dtype, shape, values.iter().copied())))
    },
    read: |tensor| Ok(tensor.array().values().to_vec()),
};

fn parabola<E: Ops>(access: &Access<E>) -> Result<Outcome> {
    let x = leaf::<f32, f32, E>(access, &[3], &[0.1_f32.into(), -1.5, 300.0])?;
    let y: Tensor<f16, f32, E> = Parabola.apply(&x)?;
    outcome(access, y.as_dyn(), DType::F32, || vec![x.grad().map(Tensor::into_dyn)])
}

#[test]
fn one_source_runs_on_two_engines_and_gives_the_same() {
    assert_eq!(parabola(&TOY).unwrap(), parabola(&CPU).unwrap());
}

#[test]
fn what_an_engine_lacks_is_an_error_that_names_it() {
    let x = (TOY.make)(DType::F32, &[1], &[1.0]).unwrap();
    assert_eq!(x.sigmoid().unwrap_err().to_string(), "`Sigmoid`: the toy engine does not have it");
}

/// What generic code asks of tensors is checked before the engine sees it.
fn mistakes<E: Ops>(access: &Access<E>) -> Vec<String> {
    let x = (access.make)(DType::F32, &[2], &[1.0, 2.0]).unwrap();
    let value: Value<f32, E> = x.typed().unwrap();
    let errors = [
        x.sum_axes(&[1], false).err(),
        value.softmax(-2).err(),
        value.transpose(0, 3).err(),
        x.where_cond(&x, &x).err(),
        x.cast(DType::I64).unwrap().mean_axes(&[], false).err(),
    ];
    errors.into_iter().map(|error| error.unwrap().to_string()).collect()
}

#[test]
fn mistakes_get_the_same_errors_on_every_engine() {
    let (toy, cpu) = (mistakes(&TOY), mistakes(&CPU));
    assert_eq!(toy, cpu);
    assert!(cpu[0].contains("sum") && cpu[0].contains('1'), "{}", cpu[0]);
    assert!(cpu[3].contains("f32") && cpu[4].contains("i64"), "{cpu:?}");
}

#[test]
fn an_integer_sum_over_no_axis_is_i64_as_every_sum_of_integers() {
    fn sum<E: Ops>(x: &DynTensor<E>) -> Result<DynTensor<E>> {
        x.sum_axes(&[], false)
    }
    let x = DynTensor::from_vec(vec![1_i32, 2], [2]).unwrap();
    assert_eq!(sum(&x).unwrap().dtype(), x.sum_axes(&[], false).unwrap().dtype());
}

#[test]
fn filled_tensors_have_the_shape_and_dtype_of_another() {
    fn filled<E: Ops>(x: &Value<f16, E>) -> Result<[Value<f16, E>; 3]> {
        Ok([x.full_like(0.1)?, x.zeros_like()?, x.ones_like()?])
    }
    let x = Tensor::<f16>::ones([1, 2]).unwrap().value();
    let values = filled(&x).unwrap().map(|tensor| {
        assert_eq!(tensor.shape(), x.shape());
        tensor.to_vec().unwrap()
    });
    assert_eq!(values, [0.1, 0.0, 1.0].map(|value| vec![f16::from_f64(value); 2]));
}

#[test]
fn products_of_dynamic_tensors_heed_autocast_and_those_of_values_do_not() {
    fn product<E: Ops>(x: &Tensor<f32, f32, E>) -> Result<[DType; 2]> {
        let value = x.value();
        Ok([x.as_dyn().matmul(x.as_dyn())?.dtype(), value.matmul(&value)?.dtype()])
    }
    let x = Tensor::<f32>::ones([2, 2]).unwrap();
    let dtypes = autocast(DType::BF16, || product(&x)).unwrap().unwrap();
    assert_eq!(dtypes, [DType::BF16, DType::F32]);
}
