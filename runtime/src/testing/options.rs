//! The options of a check, and its entry points.

use core::fmt;

use super::inputs::CheckInputs;
use super::report::GradcheckReport;
use super::run::run;
use super::second::check_second;
use super::setup::Setup;
use super::subject::{Run, Subject, all_given};
use crate::autograd::{DynTensor, Outputs};
use crate::contract::GradDType;
use crate::dtype::DType;
use crate::error::Result;
use crate::function::Function;

/// A check with options; [`gradcheck`](super::gradcheck()) is the one without.
///
/// # Examples
/// A spike has no derivative. What its backward gives is that of an arctangent:
/// ```
/// use std::f64::consts::PI;
/// use gradpact::prelude::*;
/// use gradpact::testing::Gradcheck;
///
/// #[autograd_function(out = f16, grad = f32)]
/// struct Spike;
///
/// impl Op for Spike {
///     type Inputs = Tensor<f16, f32>;
///
///     fn forward(&self, ctx: &mut Context, x: Value<f16>) -> Result<Value<f16>> {
///         ctx.save_for_backward(&x);
///         x.gt(&Value::zeros(x.shape())?)?.cast()
///     }
///
///     fn backward(&self, ctx: &Context, grad: Value<f32>) -> Result<Value<f32>> {
///         let x: Value<f16> = ctx.saved()?;
///         let scaled = x.cast::<f32>()?.mul_scalar(PI)?;
///         grad.div(&scaled.mul(&scaled)?.add_scalar(1.0)?)
///     }
/// }
///
/// let x = Tensor::<f16, f32>::from_vec([-1.0, 0.25, 0.5].map(f16::from_f32).to_vec(), [3])?;
/// let arctangent = |x: &[&DynTensor]| -> Result<DynTensor> {
///     let angles = x[0].to_f64_vec()?.iter().map(|x| (PI * x).atan() / PI).collect();
///     DynTensor::from_vec::<f64>(angles, x[0].shape())
/// };
/// Gradcheck::new().against(arctangent).check(Spike, &x)?;
/// # Ok::<(), Error>(())
/// ```
#[must_use]
pub struct Gradcheck<'a> {
    pub(super) name: String,
    pub(super) rtol: Option<f64>,
    pub(super) atol: Option<f64>,
    pub(super) step: Option<f64>,
    pub(super) only: Option<Vec<usize>>,
    pub(super) fast: bool,
    pub(super) seed: u64,
    pub(super) values: bool,
    pub(super) narrowing: bool,
    pub(super) conversions: bool,
    pub(super) unresolved: bool,
    pub(super) expected: Option<Vec<(DType, Option<GradDType>)>>,
    pub(super) reference: Option<Box<Run<'a>>>,
}

impl Default for Gradcheck<'_> {
    fn default() -> Self {
        Self {
            name: "closure".to_owned(),
            rtol: None,
            atol: None,
            step: None,
            only: None,
            fast: false,
            seed: 0,
            values: true,
            narrowing: false,
            conversions: false,
            unresolved: false,
            expected: None,
            reference: None,
        }
    }
}

impl<'a> Gradcheck<'a> {
    /// A check of every floating input, with the tolerances and steps of [the table](super#how-numbers-are-compared).
    pub fn new() -> Self {
        Self::default()
    }

    /// What a closure is called in the report.
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// The relative tolerance, instead of the dtypes' own.
    pub fn rtol(mut self, rtol: f64) -> Self {
        self.rtol = Some(rtol);
        self
    }

    /// The absolute tolerance, instead of the dtypes' own.
    pub fn atol(mut self, atol: f64) -> Self {
        self.atol = Some(atol);
        self
    }

    /// The largest step for an input of magnitude 1, instead of the dtypes' own. Smaller ones are tried as well.
    pub fn step(mut self, step: f64) -> Self {
        self.step = Some(step);
        self
    }

    /// Checks the gradients of these inputs only, by position. The others need none then.
    pub fn only(mut self, inputs: &[usize]) -> Self {
        self.only = Some(inputs.to_vec());
        self
    }

    /// Checks a few random combinations of derivatives instead of each one: for large inputs. The cost does not grow with
    /// the number of elements, and the report cannot say which of them is wrong.
    pub fn fast(mut self) -> Self {
        self.fast = true;
        self
    }

    /// Where random numbers start from. The same seed gives the same report.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Leaves out the comparison with finite differences: for Functions whose backward is, on purpose, no derivative.
    pub fn contract_only(mut self) -> Self {
        self.values = false;
        self
    }

    /// Takes finite differences of `reference` instead, which is given the inputs in f64 and returns what the differentiable
    /// outputs stand for, best in f64 too.
    ///
    /// For step functions with a surrogate gradient and for integer outputs; and for low-precision Functions a way to
    /// see their gradients more sharply than their own outputs allow.
    pub fn against<O: Into<Outputs>>(mut self, reference: impl Fn(&[&DynTensor]) -> Result<O> + 'a) -> Self {
        let run = move |inputs: &[Option<&DynTensor>]| reference(&all_given(inputs)?).map(O::into);
        self.reference = Some(Box::new(run));
        self
    }

    /// Accepts a gradient dtype that is narrower than the values, and the precision that it costs.
    pub fn allow_narrowing(mut self) -> Self {
        self.narrowing = true;
        self
    }

    /// Accepts that backward returns other dtypes than the inputs' gradients have, as the engine does.
    pub fn allow_conversions(mut self) -> Self {
        self.conversions = true;
        self
    }

    /// Accepts derivatives that are too small to be seen beside the rounding of the outputs.
    pub fn allow_unresolved(mut self) -> Self {
        self.unresolved = true;
        self
    }

    /// Expects outputs of these storage and gradient dtypes; `None` for one without a gradient. For dynamic Functions: under
    /// the attribute the compiler knows.
    pub fn expecting(mut self, outputs: &[(DType, Option<GradDType>)]) -> Self {
        self.expected = Some(outputs.to_vec());
        self
    }

    /// Checks a Function. See [`gradcheck`](super::gradcheck()).
    ///
    /// # Errors
    /// As [`gradcheck`](super::gradcheck()).
    pub fn check<F: Function>(&self, function: F, inputs: impl CheckInputs) -> Result<GradcheckReport> {
        let subject = Subject::function(function);
        run(&Setup::new(self, &subject, inputs.given())?)?.into_result()
    }

    /// Checks a closure. See [`gradcheck_fn`](super::gradcheck_fn).
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_fn<O: Into<Outputs>>(
        &self,
        function: impl Fn(&[&DynTensor]) -> Result<O>,
        inputs: impl CheckInputs,
    ) -> Result<GradcheckReport> {
        let subject = Subject::closure(&self.name, function);
        run(&Setup::new(self, &subject, inputs.given())?)?.into_result()
    }

    /// Checks the second derivative of a Function. See [`gradgradcheck`](super::gradgradcheck()).
    ///
    /// # Errors
    /// As [`gradgradcheck`](super::gradgradcheck()).
    pub fn check_twice<F: Function>(&self, function: F, inputs: impl CheckInputs) -> Result<GradcheckReport> {
        check_second(self, &Subject::function(function), inputs.given())?.into_result()
    }

    /// Checks the second derivative of a closure. See [`gradgradcheck_fn`](super::gradgradcheck_fn).
    ///
    /// # Errors
    /// As [`gradgradcheck`](super::gradgradcheck()).
    pub fn check_twice_fn<O: Into<Outputs>>(
        &self,
        function: impl Fn(&[&DynTensor]) -> Result<O>,
        inputs: impl CheckInputs,
    ) -> Result<GradcheckReport> {
        check_second(self, &Subject::closure(&self.name, function), inputs.given())?.into_result()
    }
}

impl fmt::Debug for Gradcheck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gradcheck")
            .field("fast", &self.fast)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}
