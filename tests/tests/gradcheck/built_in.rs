//! Every differentiable operation of the CPU engine, in four dtypes, at first and second order.

use gradpact::prelude::*;
use gradpact::testing::Gradcheck;

use crate::support::{Found, of};

const DTYPES: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];

/// Checks an operation of these inputs, in each dtype, twice differentiated too.
fn check(name: &str, inputs: &[&DynTensor], operation: impl Fn(&[&DynTensor]) -> Result<DynTensor>) {
    for dtype in DTYPES {
        let inputs: Vec<DynTensor> = inputs.iter().map(|input| input.cast(dtype).unwrap()).collect();
        let inputs: Vec<&DynTensor> = inputs.iter().collect();
        let options = Gradcheck::new().named(name);
        let first = options.check_fn(&operation, &inputs[..]).found();
        assert!(first.passed(), "{dtype}: {first}");
        let second = options.check_twice_fn(&operation, &inputs[..]).found();
        assert!(second.passed(), "{dtype}: {second}");
    }
}

fn f64s(values: &[f64], shape: impl Into<Shape>) -> DynTensor {
    of(DType::F64, values, shape)
}

/// Values that every dtype holds exactly, none of them near a kink or a tie.
fn matrix() -> DynTensor {
    f64s(&[0.5, -1.5, 0.75, 1.25, -0.5, -1.0], [2, 3])
}

fn other() -> DynTensor {
    f64s(&[1.0, 0.5, -1.25, 0.75, 1.5, -0.5], [2, 3])
}

fn positive() -> DynTensor {
    f64s(&[0.5, 1.5, 0.75, 1.25, 1.0, 2.0], [2, 3])
}

#[test]
fn arithmetic() {
    let (a, b, row) = (matrix(), other(), f64s(&[1.5, -1.0, 0.75], [3]));
    for right in [&b, &row] {
        check("add", &[&a, right], |x| x[0].add(x[1]));
        check("sub", &[&a, right], |x| x[0].sub(x[1]));
        check("mul", &[&a, right], |x| x[0].mul(x[1]));
        check("div", &[&a, right], |x| x[0].div(x[1]));
        check("maximum", &[&a, right], |x| x[0].maximum(x[1]));
        check("minimum", &[&a, right], |x| x[0].minimum(x[1]));
    }
    check("pow", &[&positive(), &b], |x| x[0].pow(x[1]));
    check("add_scalar", &[&a], |x| x[0].add_scalar(3.0));
    check("sub_scalar", &[&a], |x| x[0].sub_scalar(3.0));
    check("mul_scalar", &[&a], |x| x[0].mul_scalar(-3.0));
    check("div_scalar", &[&a], |x| x[0].div_scalar(3.0));
    check("pow_scalar", &[&a], |x| x[0].pow_scalar(3.0));
    check("where_cond", &[&a, &b], |x| x[0].gt(x[1])?.where_cond(x[0], x[1]));
}

#[test]
fn element_by_element() {
    let (x, p) = (matrix(), positive());
    check("neg", &[&x], |x| x[0].neg());
    check("abs", &[&x], |x| x[0].abs());
    check("sign", &[&x], |x| x[0].sign());
    check("exp", &[&x], |x| x[0].exp());
    check("ln", &[&p], |x| x[0].ln());
    check("sqrt", &[&p], |x| x[0].sqrt());
    check("rsqrt", &[&p], |x| x[0].rsqrt());
    check("recip", &[&p], |x| x[0].recip());
    check("sin", &[&x], |x| x[0].sin());
    check("cos", &[&x], |x| x[0].cos());
    check("erf", &[&x], |x| x[0].erf());
    check("tanh", &[&x], |x| x[0].tanh());
    check("sigmoid", &[&x], |x| x[0].sigmoid());
    check("relu", &[&x], |x| x[0].relu());
    check("silu", &[&x], |x| x[0].silu());
    check("gelu", &[&x], |x| x[0].gelu());
    check("clamp", &[&x], |x| x[0].clamp(-1.25, 1.0625));
}

#[test]
fn sums_and_extrema() {
    let x = matrix();
    check("sum", &[&x], |x| x[0].sum());
    check("sum_axes", &[&x], |x| x[0].sum_axes(&[0], true));
    check("mean", &[&x], |x| x[0].mean());
    check("mean_axes", &[&x], |x| x[0].mean_axes(&[-1], false));
    check("sum_in", &[&x], |x| x[0].sum_in(DType::F64));
    check("max", &[&x], |x| x[0].max());
    check("min_axes", &[&x], |x| x[0].min_axes(&[1], false));
    check("max_along", &[&x], |x| Ok(x[0].max_along(1, false)?.0));
    check("min_along", &[&x], |x| Ok(x[0].min_along(0, true)?.0));
}

#[test]
fn matrices_and_shapes() {
    let (a, b) = (matrix(), f64s(&[0.5, 1.0, -1.5, 0.75, 0.25, -0.5], [3, 2]));
    check("matmul", &[&a, &b], |x| x[0].matmul(x[1]));
    check("matmul_in", &[&a, &b], |x| x[0].matmul_in(x[1], DType::F64));
    check("transpose", &[&a], |x| x[0].transpose(0, 1));
    check("reshape", &[&a], |x| x[0].reshape([3, 2]));
    check("permute", &[&a], |x| x[0].permute(&[1, 0]));
    check("broadcast_to", &[&a], |x| x[0].broadcast_to([2, 2, 3]));
    check("sum_to_shape", &[&a], |x| x[0].sum_to_shape(&[1, 3].into()));
    check("narrow", &[&a], |x| x[0].narrow(1, 1, 2));
    check("pad", &[&a], |x| x[0].pad(1, 2, 1));
    check("squeeze and unsqueeze", &[&a], |x| x[0].unsqueeze(1)?.squeeze(1));
    check("flatten", &[&a], |x| x[0].flatten(0, 1));
    check("cat", &[&a, &other()], |x| DynTensor::cat(x, 0));
    check("stack", &[&a, &other()], |x| DynTensor::stack(x, -1));
}

#[test]
fn indices() {
    let x = matrix();
    let rows = DynTensor::from_vec(vec![1_i64, 0, 1], [3]).unwrap();
    let columns = DynTensor::from_vec(vec![2_i64, 0, 0, 1], [2, 2]).unwrap();
    check("gather", &[&x], |x| x[0].gather(1, &columns));
    check("index_select", &[&x], |x| x[0].index_select(0, &rows));
    check("embedding", &[&x], |x| x[0].embedding(&rows));
    check("scatter_add", &[&x], |x| x[0].narrow(1, 0, 2)?.scatter_add([2, 3], 1, &columns));
    check("index_add", &[&x], |x| x[0].transpose(0, 1)?.index_add(0, &rows, 2));
}

#[test]
fn networks() {
    let (x, classes) = (matrix(), DynTensor::from_vec(vec![2_i64, 0], [2]).unwrap());
    let (weight, bias) = (f64s(&[1.5, 0.5, -1.0], [3]), f64s(&[0.25, 0.0, -0.5], [3]));
    check("softmax", &[&x], |x| x[0].softmax(1));
    check("log_softmax", &[&x], |x| x[0].log_softmax(0));
    check("cross_entropy", &[&x], |x| x[0].cross_entropy(&classes));
    check("mse", &[&x, &other()], |x| x[0].mse(x[1]));
    check("layer_norm", &[&x, &weight, &bias], |x| x[0].layer_norm(3, Some(x[1]), Some(x[2]), 1e-2));
}

#[test]
fn conversions() {
    let x = matrix();
    for dtype in DTYPES {
        check("cast", &[&x], |x| x[0].cast(dtype));
    }
    check("with_grad_dtype", &[&x], |x| x[0].with_grad_dtype(GradDType::Exactly(DType::F64)));
}
