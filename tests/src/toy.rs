//! A second engine in a hundred lines: every value is an `f64`, rounded as its dtype would round it.
//!
//! It shows that the graph, the dynamic and the typed layer need nothing of the embedded engine, and its results are
//! slow, simple and independent of the embedded engine's kernels. No broadcasting, no views.

use std::sync::Arc;

use gradpact::dtype::round_to;
use gradpact::engine::{Array, Engine};
use gradpact::function::Graph;
use gradpact::ops::{BinaryOp, CmpOp, Ops, ReduceOp, ScalarOp, UnaryOp};
use gradpact::{
    Context, DType, DynTensor, Error, Function, Gradients, Inputs, Outputs, Result, Shape, apply,
};

/// The name of the engine.
#[derive(Clone, Copy, Debug)]
pub enum Toy {}

impl Engine for Toy {
    type Array = ToyArray;
}

impl Graph for Toy {}

/// Values that `dtype` can hold, each as an `f64`.
#[derive(Clone, Debug)]
pub struct ToyArray {
    dtype: DType,
    shape: Shape,
    values: Arc<Vec<f64>>,
}

impl ToyArray {
    /// Rounds `values` to `dtype`.
    ///
    /// # Panics
    /// If the shape does not hold as many.
    pub fn new(dtype: DType, shape: impl Into<Shape>, values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().map(|value| round_to(dtype, value)).collect();
        let shape = shape.into();
        assert_eq!(values.len(), shape.element_count(), "as many values as the shape holds");
        Self { dtype, shape, values: Arc::new(values) }
    }

    /// The values.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// `f` of the values of both, in the dtype that both promote to, to which they are converted first. 8- and 16-bit floats
    /// compute in `f32`.
    fn zip(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Result<Self> {
        if self.shape != other.shape {
            let problem = format!("shapes {} and {} differ", self.shape, other.shape);
            return Err(Error::Shape { operation: "zip", problem });
        }
        let dtype = self.dtype.promote(other.dtype);
        let wide = dtype.accumulation();
        let pairs = self.values.iter().zip(&*other.values);
        let values = pairs.map(|(&a, &b)| round_to(wide, f(round_to(dtype, a), round_to(dtype, b))));
        Ok(Self::new(dtype, self.shape.clone(), values))
    }
}

impl Array for ToyArray {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn cast(&self, dtype: DType) -> Result<Self> {
        Ok(Self::new(dtype, self.shape.clone(), self.values.iter().copied()))
    }

    fn accumulate(self, other: &Self) -> Result<Self> {
        self.zip(&other.cast(self.dtype)?, |a, b| a + b)
    }

    fn full(shape: &Shape, value: f64, dtype: DType) -> Result<Self> {
        Ok(Self::new(dtype, shape.clone(), vec![value; shape.checked_len()?]))
    }
}

/// A tensor of the toy engine.
pub type ToyTensor = DynTensor<Toy>;

/// A tensor with these values.
pub fn tensor(dtype: DType, values: &[f64]) -> ToyTensor {
    DynTensor::from_array(ToyArray::new(dtype, [values.len()], values.iter().copied()))
}

/// Product, element by element.
#[derive(Debug)]
pub struct Mul;

impl Function<Toy> for Mul {
    fn name(&self) -> &'static str {
        "ToyMul"
    }

    fn forward(&self, ctx: &mut Context<Toy>, inputs: &Inputs<'_, Toy>) -> Result<Outputs<Toy>> {
        let (a, b) = (inputs.get(0)?, inputs.get(1)?);
        ctx.carry_grad_dtype();
        ctx.save_for_backward([a, b]);
        Ok(DynTensor::from_array(a.array().zip(b.array(), |a, b| a * b)?).into())
    }

    fn backward(&self, ctx: &Context<Toy>, grads: Gradients<Toy>) -> Result<Gradients<Toy>> {
        let grad = grads[0].as_ref().ok_or_else(|| Error::custom("grads are materialized"))?;
        Ok([mul(grad, ctx.saved_tensor(1)?)?, mul(grad, ctx.saved_tensor(0)?)?].into())
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

/// `a · b`.
///
/// # Errors
/// If the shapes differ.
pub fn mul(a: &ToyTensor, b: &ToyTensor) -> Result<ToyTensor> {
    apply(Mul, &[a, b]).map(|outputs| outputs[0].clone())
}

/// Sum, element by element.
#[derive(Debug)]
pub struct Add;

impl Function<Toy> for Add {
    fn name(&self) -> &'static str {
        "ToyAdd"
    }

    fn forward(&self, ctx: &mut Context<Toy>, inputs: &Inputs<'_, Toy>) -> Result<Outputs<Toy>> {
        ctx.carry_grad_dtype();
        Ok(DynTensor::from_array(inputs.get(0)?.array().zip(inputs.get(1)?.array(), |a, b| a + b)?).into())
    }

    fn backward(&self, _: &Context<Toy>, grads: Gradients<Toy>) -> Result<Gradients<Toy>> {
        Ok([grads[0].clone(), grads[0].clone()].into())
    }

    fn is_built_in(&self) -> bool {
        true
    }
}

/// `a + b`.
///
/// # Errors
/// If the shapes differ.
pub fn add(a: &ToyTensor, b: &ToyTensor) -> Result<ToyTensor> {
    apply(Add, &[a, b]).map(|outputs| outputs[0].clone())
}

/// What the toy engine does not have.
fn absent(operation: impl core::fmt::Debug) -> Result<ToyTensor> {
    Err(Error::custom(format!("`{operation:?}`: the toy engine does not have it")))
}

/// Sum and product.
impl Ops for Toy {
    fn binary(op: BinaryOp, lhs: &ToyTensor, rhs: &ToyTensor) -> Result<ToyTensor> {
        match op {
            BinaryOp::Add => add(lhs, rhs),
            BinaryOp::Mul => mul(lhs, rhs),
            _ => absent(op),
        }
    }

    fn unary(op: UnaryOp, _: &ToyTensor) -> Result<ToyTensor> {
        absent(op)
    }

    fn scalar(op: ScalarOp, _: &ToyTensor, _: f64) -> Result<ToyTensor> {
        absent(op)
    }

    fn clamp(_: &ToyTensor, _: Option<f64>, _: Option<f64>) -> Result<ToyTensor> {
        absent("clamp")
    }

    fn compare(op: CmpOp, _: &ToyTensor, _: &ToyTensor) -> Result<ToyTensor> {
        absent(op)
    }

    fn where_cond(_: &ToyTensor, _: &ToyTensor, _: &ToyTensor) -> Result<ToyTensor> {
        absent("where_cond")
    }

    fn reduce(op: ReduceOp, _: &ToyTensor, _: Option<&[isize]>, _: bool) -> Result<ToyTensor> {
        absent(op)
    }

    fn softmax(_: &ToyTensor, _: isize) -> Result<ToyTensor> {
        absent("softmax")
    }

    fn log_softmax(_: &ToyTensor, _: isize) -> Result<ToyTensor> {
        absent("log_softmax")
    }

    fn matmul(_: &ToyTensor, _: &ToyTensor) -> Result<ToyTensor> {
        absent("matmul")
    }

    fn transpose(_: &ToyTensor, _: isize, _: isize) -> Result<ToyTensor> {
        absent("transpose")
    }

    fn reshape(_: &ToyTensor, _: &Shape) -> Result<ToyTensor> {
        absent("reshape")
    }

    fn broadcast_to(_: &ToyTensor, _: &Shape) -> Result<ToyTensor> {
        absent("broadcast_to")
    }
}
