//! What is written once for every engine gives in libtorch what it gives on the embedded engine: the same dtypes, shapes, values and
//! gradients.
//!
//! Bit for bit, but for the sign of zeros, where both compute elementwise and exactly. The others are named: another
//! approximation of `exp`, another order of a sum, a derivative that rounds in between.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use gradpact::Cpu;
use gradpact::ops::DynTensorOps as _;
use gradpact::prelude::*;
use gradpact_tests::generic::operations::{Operation, alone, inside, operations};
use gradpact_tests::generic::{Access, CPU, Outcome, functions, leaf, outcome};
use gradpact_torch::{FromTch, Torch, kind};
use tch::Kind;

const TORCH: Access<Torch> = Access {
    make: |dtype, shape, values| {
        let shape: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
        DynTensor::from_tch(tch::Tensor::from_slice(values).reshape(shape).to_kind(kind(dtype)))
    },
    read: |tensor| {
        let values = tensor.array().detach().to_kind(Kind::Double).reshape([-1]);
        Ok(Vec::try_from(values).unwrap())
    },
};

/// Operations that libtorch approximates otherwise, or adds in another order.
const APPROXIMATED: [&str; 12] = [
    "exp",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "erf",
    "tanh",
    "sigmoid",
    "root_by_pow_scalar",
    "softmax",
    "softmax_of_columns",
    "log_softmax",
];

/// Operations whose derivative libtorch computes with other intermediate results. Their values are the same.
const ROUNDED_BACKWARD: [&str; 3] = ["recip", "div", "div_of_a_scalar"];

/// One unit in the last place of 1.
fn unit(dtype: DType) -> f64 {
    2_f64.powi(match dtype {
        DType::F8E4M3 => -3,
        DType::F8E5M2 => -2,
        DType::BF16 => -7,
        DType::F16 => -10,
        DType::F64 => -52,
        _ => -23,
    })
}

/// Runs each operation on both engines. `added` if the gradients are sums, which libtorch adds in another order.
fn each(
    added: bool,
    on_cpu: impl Fn(&Operation<Cpu>) -> Result<Outcome>,
    in_torch: impl Fn(&Operation<Torch>) -> Result<Outcome>,
) {
    let (list, same_list) = (operations::<Cpu>(), operations::<Torch>());
    assert!(list.len() == same_list.len() && list.len() > 60, "the list is whole");
    for (cpu, torch) in list.iter().zip(&same_list) {
        let name = cpu.name;
        let (expected, got) = (on_cpu(cpu).unwrap(), in_torch(torch).unwrap());
        let difference = got.difference(&expected);
        let Some(difference) = difference else { panic!("{name}: {got:?}, expected {expected:?}") };
        if difference == 0.0 {
            continue;
        }
        let approximated = APPROXIMATED.contains(&name);
        let allowed = approximated || ROUNDED_BACKWARD.contains(&name) || added;
        // The gradients may be of another dtype than the output.
        let dtypes = expected.grads.iter().flatten().map(|grad| grad.dtype);
        let coarsest = dtypes.map(unit).fold(0.0, f64::max);
        assert!(allowed && difference <= 4.0 * coarsest, "{name} by {difference}: {got:?}, not {expected:?}");
        let output = got.output.difference(&expected.output).unwrap();
        assert!(approximated || output == 0.0, "{name}: {:?}, expected {:?}", got.output, expected.output);
    }
}

macro_rules! alone {
    ($a:ty, $b:ty) => {
        each(
            false,
            |operation| alone::<$a, $b, _>(&CPU, operation.dynamic),
            |operation| alone::<$a, $b, _>(&TORCH, operation.dynamic),
        )
    };
}

macro_rules! inside {
    ($d:ty, $g:ty) => {
        each(
            true,
            |operation| inside::<$d, $g, _>(&CPU, operation.typed),
            |operation| inside::<$d, $g, _>(&TORCH, operation.typed),
        )
    };
}

#[test]
fn each_operation_gives_the_values_and_gradients_of_the_embedded_engine_in_every_floating_dtype() {
    alone!(f64, f64);
    alone!(f32, f32);
    alone!(f16, f16);
    alone!(bf16, bf16);
    alone!(f8e4m3, f8e4m3);
    alone!(f8e5m2, f8e5m2);
}

#[test]
fn operands_of_two_dtypes_are_promoted_as_on_the_embedded_engine() {
    alone!(f16, f32);
    alone!(f16, bf16);
    alone!(f64, bf16);
}

#[test]
fn operations_inside_a_function_give_what_they_give_on_the_embedded_engine() {
    inside!(f16, f32);
    inside!(bf16, f32);
    inside!(f32, f16);
}

#[test]
fn one_source_of_a_function_gives_the_same_on_both_engines() {
    let (embedded, torch) = (functions::outcomes(&CPU).unwrap(), functions::outcomes(&TORCH).unwrap());
    assert_eq!(embedded.len(), torch.len());
    for ((name, expected), (_, got)) in embedded.iter().zip(&torch) {
        // The others are made of `exp` and `rsqrt`, whose last place may differ; an output of 16 bits rarely shows it.
        let exact = matches!(*name, "Huber" | "Linear");
        let allowed = if exact { 0.0 } else { 4.0 * unit(DType::F32) };
        let grads = Outcome { output: expected.output.clone(), grads: got.grads.clone() };
        assert!(grads.difference(expected).unwrap() <= allowed, "{name}: {got:?}, expected {expected:?}");
        let allowed = if exact { 0.0 } else { unit(expected.output.dtype) };
        let output = got.output.difference(&expected.output);
        assert!(output.unwrap() <= allowed, "{name}: {got:?}, expected {expected:?}");
        assert!(got.grads.iter().all(Option::is_some), "{name}");
    }
}

#[test]
fn a_generic_function_is_one_node_of_libtorchs_graph() {
    #[autograd_function(out = f16, grad = f32)]
    struct Twice;

    impl<E: gradpact::Ops> Op<E> for Twice {
        type Inputs = Tensor<f32, f32, E>;

        fn forward(&self, _: &mut Context<E>, x: Value<f32, E>) -> Result<Value<f16, E>> {
            gradpact::ops::ValueOps::mul_scalar(&x, 2.0)?.cast()
        }

        fn backward(&self, _: &Context<E>, grad: Value<f32, E>) -> Result<Value<f32, E>> {
            gradpact::ops::ValueOps::mul_scalar(&grad, 2.0)
        }
    }

    let leaf = tch::Tensor::from_slice(&[1.0_f32]).set_requires_grad(true);
    let y: Tensor<f16, f32, Torch> =
        Twice.apply(&Tensor::<f32, f32, Torch>::from_tch(leaf).unwrap()).unwrap();
    assert_eq!(gradpact_torch::grad_fn_name(&y).unwrap().as_deref(), Some("TwiceBackward"));
}

#[test]
fn the_slope_of_clamp_is_one_at_its_limits_and_a_nan_stays() {
    fn clamped<E: gradpact::Ops>(access: &Access<E>) -> Outcome {
        let x = leaf::<f16, f16, E>(access, &[5], &[0.5, -0.25, 0.75, -1.0, f64::NAN]).unwrap();
        let y = x.as_dyn().clamp(-0.25, 0.5).unwrap();
        outcome(access, &y, DType::F16, || vec![x.grad().map(Tensor::into_dyn)]).unwrap()
    }
    let (embedded, torch) = (clamped(&CPU), clamped(&TORCH));
    assert_eq!(torch.grads[0].as_ref().unwrap().values[..4], [0.25, -0.5, 0.0, 0.0]);
    assert_eq!(torch.grads, embedded.grads);
    assert!(torch.output.values[4].is_nan());
}

/// What can be computed with integers, and what cannot.
fn integers<E: gradpact::Ops>(access: &Access<E>) -> Vec<core::result::Result<(DType, Vec<f64>), ()>> {
    let x = (access.make)(DType::I32, &[3], &[-2.0, 0.0, 3.0]).unwrap();
    let bits = (access.make)(DType::Bool, &[3], &[0.0, 1.0, 1.0]).unwrap();
    let results = [
        x.add(&x),
        x.add_scalar(2.0),
        x.add_scalar(0.5),
        x.mul_scalar(-3.0),
        x.div_scalar(2.0),
        x.clamp(-1.0, 2.0),
        x.sum(),
        x.mean(),
        x.max(),
        x.exp(),
        x.sqrt(),
        x.relu(),
        x.div(&x),
        x.softmax(0),
        bits.sub_scalar(1.0),
        bits.mul_scalar(2.0),
        bits.neg(),
        bits.sum(),
        bits.max(),
        bits.mul(&bits),
        bits.sub(&bits),
        x.lt(&x).and_then(|mask| mask.where_cond(&x, &x)),
    ];
    let read = |tensor: DynTensor<E>| {
        let values = (access.read)(&tensor).unwrap();
        // A NaN is not equal to itself.
        let values = values.into_iter().map(|value| if value.is_nan() { f64::MAX } else { value });
        // Approximations of `exp` differ in the last place.
        (tensor.dtype(), values.map(|value| (value * 1e5).round()).collect())
    };
    results.into_iter().map(|result| result.map(read).map_err(drop)).collect()
}

#[test]
fn integers_are_computed_with_and_refused_as_on_the_embedded_engine() {
    let (embedded, torch) = (integers(&CPU), integers(&TORCH));
    assert_eq!(torch, embedded);
    assert!(embedded.iter().any(core::result::Result::is_err));
}

#[test]
fn a_tensor_like_another_has_its_shape_and_dtype() {
    let x = (TORCH.make)(DType::F16, &[1, 2], &[0.0, 0.0]).unwrap();
    let like = x.full_like(0.1).unwrap();
    assert_eq!((like.dtype(), like.shape()), (DType::F16, x.shape()));
    assert_eq!((TORCH.read)(&like).unwrap(), vec![f16::from_f64(0.1).to_f64(); 2]);
}
