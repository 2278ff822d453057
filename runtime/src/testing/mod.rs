//! Checking a Function: its gradients against finite differences, and its contract against what really happens.
//!
//! [`gradcheck`] takes a Function, typed or dynamic, and [`gradcheck_fn`] a closure of tensors; [`gradgradcheck`] and
//! [`gradgradcheck_fn`] do the same for the second derivative. Each returns a [`GradcheckReport`], or an error whose text
//! is that report: in a test a `?` is enough. [`Gradcheck`] has options.
//!
//! ```
//! use gradpact::prelude::*;
//! use gradpact::testing::gradcheck;
//!
//! /// x³, stored in half precision; its backward receives single precision.
//! #[autograd_function(out = f16, grad = f32)]
//! struct Cube {
//!     factor: f64,
//! }
//!
//! impl Op for Cube {
//!     type Inputs = Tensor<f32>;
//!
//!     fn forward(&self, ctx: &mut Context, x: Value<f32>) -> Result<Value<f16>> {
//!         ctx.save_for_backward(&x);
//!         x.mul(&x)?.mul(&x)?.cast()
//!     }
//!
//!     fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
//!         let x: Value<f32> = ctx.saved()?;
//!         grad.mul(&x)?.mul(&x)?.mul_scalar(self.factor)
//!     }
//! }
//!
//! let x = Tensor::<f32>::from_vec(vec![0.5, -1.0, 2.0], [3])?;
//! println!("{}", gradcheck(Cube { factor: 3.0 }, &x)?);
//! let wrong = gradcheck(Cube { factor: 6.0 }, &x).unwrap_err();
//! assert!(wrong.to_string().contains("d(output 0 [2]) / d(input 0 [2]): analytic 24.0"), "{wrong}");
//! # Ok::<(), Error>(())
//! ```
//!
//! # What is checked
//!
//! * **Values.** Every derivative of every output element by every input element; with [`Gradcheck::fast`], random
//!   combinations of them.
//! * **The contract**, reported apart from values, each as a [`Violation`]: the dtype and shape that backward really received
//!   for each output, against what was declared; the dtype and shape that it returned for each input, against that input's
//!   gradient dtype, before the engine converts it; `None` for an input that has a gradient; a declared gradient dtype that
//!   is narrower than the values; precision that gets lost between the gradient of an output and that of an input, and
//!   a backward that treats small or negative gradients unlike others.
//! * **Behaviour.** The same inputs give the same outputs and gradients, bit for bit; an undefined gradient counts as zero;
//!   an input has the same gradient if it is the only one that needs one; inputs and gradients may be strided.
//!
//! # How numbers are compared
//!
//! A Function that stores in f16 returns steps, not a curve: the largest rounding error of an output is `u·|y|`, and divided
//! by a step of `1e-6` that is all one would see. So steps are taken as large as the curve allows. For each input element the
//! Function is evaluated at ±h, ±h/2, ±h/4, …; polynomials of degree 2, 4 and 6 through these values are differentiated
//! (Fornberg, "Generation of Finite Difference Formulas on Arbitrarily Spaced Grids", 1988; in `f64`, with the steps as
//! they are after rounding to the input's dtype), and of all these estimates the one is taken whose *uncertainty* is
//! smallest (after Ridders, "Accurate computation of F′(x) and F′(x) F″(x)", 1982). The uncertainty is the sum of
//!
//! * the rounding errors of the stored outputs, amplified by the formula's weights, in the worst case. The error of an
//!   output is that of its dtype, or what its values are seen to scatter by where that is clearly more (Moré and Wild,
//!   "Estimating Computational Noise", 2011): a Function that rounds several times inside does not fail for it;
//! * the truncation error: how far the estimate is from those of lower degree.
//!
//! Estimates that contradict a rough one at a small step went across a kink or a jump, and do not count.
//!
//! An analytic derivative `a` agrees with a numeric one `n` if `|a − n| ≤ rtol · max(|a|, |n|) + atol + uncertainty`. The
//! relative tolerance is that of the coarsest dtype that an input, an output, or a value in between is stored in:
//!
//! | dtype | `u` | `rtol` | largest step | why this tolerance |
//! | --- | --- | --- | --- | --- |
//! | f64 | 2⁻⁵³ | 10⁻⁶ | 2⁻⁶ | far below what a wrong formula does, above what differences can see |
//! | f32 | 2⁻²⁴ | 2⁻¹⁴ | 2⁻⁴ | 1024 `u`: sums and cancellations inside forward and backward |
//! | f16 | 2⁻¹¹ | 2⁻⁷ | 2⁻² | 16 `u`: a few roundings of saved values and of gradients |
//! | bf16 | 2⁻⁸ | 2⁻⁵ | 2⁻¹ | 8 `u`: the same |
//! | f8e4m3 | 2⁻⁴ | 2⁻³ | 1 | 2 `u`: one saved value |
//! | f8e5m2 | 2⁻³ | 2⁻² | 1 | 2 `u`: the same |
//!
//! Steps are relative where `|x| > 1`. `atol` is an eighth of `rtol` times the largest derivative of that output by
//! that input: room for a sum of which most cancels. Where derivatives are about as large as the outputs, an error
//! of 5 % is found in f16, of 20 % in bf16; 8-bit outputs show little more than a sign.
//!
//! Where the uncertainty is more than a quarter of the largest derivative, no wrong formula could have been found: that
//! is a failure too ([`Unresolved`]), and no success. Choose inputs with smaller outputs, or compare with something
//! sharper: [`Gradcheck::against`]. The report always says how accurate the check could be ([`Accuracy`]).
//!
//! # Where there is no derivative
//!
//! At a kink or a jump differences say nothing: keep inputs away from it. Steps shrink until they fit between an input and a
//! kink, as far as the outputs' dtype allows: about 10⁻⁶ in f64, a few hundredths in f16. Step functions with a surrogate
//! gradient, and integer outputs, are compared with the smooth function that they stand for, by [`Gradcheck::against`];
//! or not at all, by [`Gradcheck::contract_only`].

mod analytic;
mod audit;
mod behaviour;
mod differences;
mod inputs;
mod noise;
mod numeric;
mod observed;
mod options;
mod precision;
mod readings;
mod report;
mod run;
mod second;
mod setup;
mod subject;
mod violation;

pub use inputs::{CheckInput, CheckInputs, GivenInput};
pub use options::Gradcheck;
pub use report::{Accuracy, GradcheckReport, Mismatch, Unresolved};
pub use violation::Violation;

use crate::autograd::{DynTensor, Outputs};
use crate::error::Result;
use crate::function::Function;

/// Checks the gradients and the contract of a Function, typed or dynamic, at these inputs.
///
/// Inputs are a tensor, a tuple of them, or a slice or array of them; `None` where an optional one is left out. Every
/// floating input is checked. A typed one has the gradient dtype of its type, another one that which it is tracked
/// with, or its own. See [the module](self) for what is checked, and [`Gradcheck`] for options.
///
/// # Errors
/// The report, if it found something; what the Function itself reports; [`Error::Argument`](crate::Error::Argument) if there
/// is nothing to check.
///
/// # Examples
/// A backward that halves the precision it was promised. The engine would convert what it returns, and nobody would know:
/// ```
/// use gradpact::prelude::*;
/// use gradpact::testing::gradcheck;
///
/// struct Double;
///
/// impl Function for Double {
///     fn name(&self) -> &'static str {
///         "Double"
///     }
///
///     fn forward(&self, _: &mut Context, inputs: &Inputs<'_>) -> Result<Outputs> {
///         Ok(inputs.get(0)?.mul_scalar(2.0)?.into())
///     }
///
///     fn backward(&self, _: &Context, grads: Gradients) -> Result<Gradients> {
///         let grad = grads[0].as_ref().ok_or_else(|| Error::custom("no gradient"))?;
///         Ok(grad.mul_scalar(2.0)?.cast(DType::F16)?.into())
///     }
/// }
///
/// let x = DynTensor::from_vec(vec![0.5_f32, -1.0], [2])?;
/// let error = gradcheck(Double, &x).unwrap_err().to_string();
/// assert!(error.contains("returned f16 for input 0 of `Double`, whose gradient is f32"), "{error}");
/// # Ok::<(), Error>(())
/// ```
pub fn gradcheck<F: Function>(function: F, inputs: impl CheckInputs) -> Result<GradcheckReport> {
    Gradcheck::new().check(function, inputs)
}

/// [`gradcheck`] of a closure: of anything that is computed from tensors by Functions and operations.
///
/// What the closure's Functions receive and return inside is not seen; their effect on the closure's gradients is.
///
/// # Errors
/// As [`gradcheck`].
///
/// # Examples
/// ```
/// use gradpact::prelude::*;
/// use gradpact::testing::gradcheck_fn;
///
/// let a = Tensor::<f64>::from_vec(vec![0.5, -1.0, 2.0], [3])?;
/// let b = Tensor::<f64>::from_vec(vec![0.3, 0.1, -0.7], [3])?;
/// gradcheck_fn(|x| x[0].mul(x[1])?.exp(), [&a, &b])?;
/// # Ok::<(), Error>(())
/// ```
pub fn gradcheck_fn<O: Into<Outputs>>(
    function: impl Fn(&[&DynTensor]) -> Result<O>,
    inputs: impl CheckInputs,
) -> Result<GradcheckReport> {
    Gradcheck::new().check_fn(function, inputs)
}

/// Checks the second derivative of a Function: the gradients of its backward, as a function of the inputs and of the gradients
/// of the outputs.
///
/// # Errors
/// As [`gradcheck`]; and [`Error::SavedIntermediate`](crate::Error::SavedIntermediate), or whatever else a Function
/// says that cannot be differentiated twice.
///
/// # Examples
/// ```
/// use gradpact::prelude::*;
/// use gradpact::testing::gradgradcheck;
///
/// /// eˣ, which saves its output.
/// #[autograd_function(out = f64)]
/// struct Exp;
///
/// impl Op for Exp {
///     type Inputs = Tensor<f64>;
///
///     fn forward(&self, ctx: &mut Context, x: Value<f64>) -> Result<Value<f64>> {
///         let y = x.exp()?;
///         ctx.save_for_backward(&y);
///         Ok(y)
///     }
///
///     fn backward(&self, ctx: &Context, grad: Value<f64>) -> Result<Value<f64>> {
///         grad.mul(&ctx.saved::<Value<f64>>()?)
///     }
/// }
///
/// let x = Tensor::<f64>::from_vec(vec![0.5, -1.0], [2])?;
/// gradgradcheck(Exp, &x)?;
/// # Ok::<(), Error>(())
/// ```
pub fn gradgradcheck<F: Function>(function: F, inputs: impl CheckInputs) -> Result<GradcheckReport> {
    Gradcheck::new().check_twice(function, inputs)
}

/// [`gradgradcheck`] of a closure.
///
/// # Errors
/// As [`gradgradcheck`].
pub fn gradgradcheck_fn<O: Into<Outputs>>(
    function: impl Fn(&[&DynTensor]) -> Result<O>,
    inputs: impl CheckInputs,
) -> Result<GradcheckReport> {
    Gradcheck::new().check_twice_fn(function, inputs)
}
