//! What a check found, in numbers and in words.

use core::fmt;

use super::options::Gradcheck;
use super::violation::Violation;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// One derivative, both ways.
#[derive(Clone, Debug)]
pub(super) struct Derivative {
    pub(super) output_element: Option<Vec<usize>>,
    pub(super) input_element: Option<Vec<usize>>,
    pub(super) analytic: f64,
    pub(super) numeric: f64,
    pub(super) uncertainty: f64,
}

/// A derivative that is wrong by more than the tolerance.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Mismatch {
    /// Position of the output.
    pub output: usize,
    /// Its element, an index for each axis; `None` in a fast check.
    pub output_element: Option<Vec<usize>>,
    /// Position of the input.
    pub input: usize,
    /// Its element, an index for each axis; `None` in a fast check.
    pub input_element: Option<Vec<usize>>,
    /// The derivative that backward gave.
    pub analytic: f64,
    /// The derivative by finite differences.
    pub numeric: f64,
    /// How wrong `numeric` may be.
    pub uncertainty: f64,
    /// The difference that would have been accepted, `uncertainty` included.
    pub tolerance: f64,
}

impl Mismatch {
    /// How far apart both derivatives are.
    pub fn difference(&self) -> f64 {
        (self.analytic - self.numeric).abs()
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let element = |element: &Option<Vec<usize>>| {
            element.as_ref().map_or_else(|| "(a combination)".to_owned(), |element| format!("{element:?}"))
        };
        write!(
            f,
            "d(output {} {}) / d(input {} {}): analytic {:?}, numeric {:?} ± {:.1e}, difference {:.3e}, tolerance {:.1e}",
            self.output,
            element(&self.output_element),
            self.input,
            element(&self.input_element),
            self.analytic,
            self.numeric,
            self.uncertainty,
            self.difference(),
            self.tolerance
        )
    }
}

/// How accurately the derivatives of one output by one input could be seen.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Accuracy {
    /// Position and dtype of the output.
    pub output: (usize, DType),
    /// Position and dtype of the input.
    pub input: (usize, DType),
    /// How many derivatives were compared.
    pub compared: usize,
    /// The largest of them, by either way.
    pub largest: f64,
    /// The largest uncertainty of a numeric one.
    pub uncertainty: f64,
}

impl Accuracy {
    pub(super) fn new(output: (usize, DType), input: (usize, DType), derivatives: &[Derivative]) -> Self {
        let both = derivatives.iter().flat_map(|derivative| [derivative.analytic, derivative.numeric]);
        let largest = both.map(f64::abs).filter(|value| value.is_finite()).fold(0.0, f64::max);
        let uncertainty = derivatives.iter().map(|derivative| derivative.uncertainty).fold(0.0, f64::max);
        Self { output, input, compared: derivatives.len(), largest, uncertainty }
    }
}

impl fmt::Display for Accuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((output, stored), (input, given)) = (self.output, self.input);
        write!(f, "output {output} ({stored}) by input {input} ({given}): {} compared", self.compared)?;
        if self.compared == 0 {
            return Ok(());
        }
        write!(f, ", up to {:.3e}, each seen to ± {:.1e} or better", self.largest, self.uncertainty)
    }
}

/// Derivatives of one output by one input that could not be seen: more than half of them, or the largest, have an
/// uncertainty above a quarter of the largest.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Unresolved {
    /// What could be seen.
    pub accuracy: Accuracy,
    /// How many could not.
    pub count: usize,
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Accuracy { output: (output, dtype), input: (input, _), compared, largest, uncertainty } =
            &self.accuracy;
        write!(
            f,
            "output {output} by input {input}: {} of {compared} derivatives cannot be seen; ",
            self.count
        )?;
        if uncertainty.is_finite() {
            write!(
                f,
                "they are up to {largest:.1e}, and the rounding of the {dtype} outputs hides what is below {uncertainty:.1e}: \
                 choose inputs with smaller outputs, or use `against`"
            )
        } else {
            f.write_str("the outputs around the inputs are not finite, or the input's dtype has no values near enough")
        }
    }
}

/// How the derivatives of one output by one input are judged.
pub(super) struct Pair {
    pub(super) accuracy: Accuracy,
    pub(super) rtol: f64,
    pub(super) atol: f64,
    /// A derivative that is zero but for rounding.
    pub(super) negligible: f64,
}

impl Pair {
    fn tolerance(&self, derivative: &Derivative) -> f64 {
        let size = derivative.analytic.abs().max(derivative.numeric.abs());
        self.rtol * size + self.atol + derivative.uncertainty
    }

    /// How many derivatives could not be seen, if that matters.
    fn unresolved(&self, derivatives: &[Derivative]) -> Option<usize> {
        let Accuracy { largest, uncertainty, .. } = self.accuracy;
        let is_hidden = |derivative: &Derivative| derivative.uncertainty > 0.25 * largest;
        let count = derivatives.iter().filter(|derivative| is_hidden(derivative)).count();
        let by_size = |a: &&Derivative, b: &&Derivative| f64::total_cmp(&a.analytic.abs(), &b.analytic.abs());
        let main = derivatives.iter().max_by(by_size)?;
        // A derivative that is zero cannot be seen, and need not be.
        let is_zero = largest == 0.0 || (main.analytic.abs() <= self.negligible);
        if uncertainty.is_finite() && is_zero {
            return None;
        }
        (is_hidden(main) || 2 * count > derivatives.len()).then_some(count)
    }
}

/// What a check found. Where something is wrong it comes as an error, whose text it is, and from which
/// [`downcast_ref`](Error::downcast_ref) takes it out again.
#[derive(Clone, Debug)]
pub struct GradcheckReport {
    name: String,
    is_second: bool,
    mismatches: Vec<Mismatch>,
    violations: Vec<Violation>,
    unresolved: Vec<Unresolved>,
    accuracy: Vec<Accuracy>,
}

impl GradcheckReport {
    pub(super) fn new(name: &str, is_second: bool) -> Self {
        Self {
            name: name.to_owned(),
            is_second,
            mismatches: Vec::new(),
            violations: Vec::new(),
            unresolved: Vec::new(),
            accuracy: Vec::new(),
        }
    }

    /// Adds violations that the options do not allow, each once.
    pub(super) fn add(&mut self, violations: Vec<Violation>, options: &Gradcheck<'_>) {
        for violation in violations {
            let is_allowed = match violation {
                Violation::ReturnedDType { .. } => options.conversions,
                _ => false,
            };
            if !is_allowed && !self.violations.contains(&violation) {
                self.violations.push(violation);
            }
        }
    }

    /// Judges the derivatives of one output by one input.
    pub(super) fn add_pair(&mut self, pair: Pair, derivatives: Vec<Derivative>, allow_unresolved: bool) {
        if let Some(count) = pair.unresolved(&derivatives).filter(|_| !allow_unresolved) {
            self.unresolved.push(Unresolved { accuracy: pair.accuracy.clone(), count });
        }
        for derivative in derivatives {
            let tolerance = pair.tolerance(&derivative);
            let Derivative { output_element, input_element, analytic, numeric, uncertainty } = derivative;
            // Of what could not be seen at all nothing can be said. Otherwise what is not a number is wrong.
            let is_right = uncertainty == f64::INFINITY || (analytic - numeric).abs() <= tolerance;
            if !is_right {
                let (output, input) = (pair.accuracy.output.0, pair.accuracy.input.0);
                self.mismatches.push(Mismatch {
                    output,
                    output_element,
                    input,
                    input_element,
                    analytic,
                    numeric,
                    uncertainty,
                    tolerance,
                });
            }
        }
        self.accuracy.push(pair.accuracy);
    }

    /// Puts the worst first.
    pub(super) fn sort(&mut self) {
        let excess = |mismatch: &Mismatch| -mismatch.difference() / mismatch.tolerance;
        self.mismatches.sort_by(|a, b| f64::total_cmp(&excess(a), &excess(b)));
    }

    /// What was checked.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether nothing is wrong.
    pub fn passed(&self) -> bool {
        self.mismatches.is_empty() && self.violations.is_empty() && self.unresolved.is_empty()
    }

    /// The wrong derivatives, worst first.
    pub fn mismatches(&self) -> &[Mismatch] {
        &self.mismatches
    }

    /// What broke the contract although numbers may be right.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// What could not be checked.
    pub fn unresolved(&self) -> &[Unresolved] {
        &self.unresolved
    }

    /// How accurate the check could be.
    pub fn accuracy(&self) -> &[Accuracy] {
        &self.accuracy
    }

    /// This report, or an error of it if something is wrong.
    pub(super) fn into_result(self) -> Result<Self> {
        if self.passed() { Ok(self) } else { Err(Error::custom(self)) }
    }
}

/// How many wrong derivatives are shown.
const SHOWN: usize = 10;

fn section<T: fmt::Display>(f: &mut fmt::Formatter<'_>, title: &str, items: &[T]) -> fmt::Result {
    if items.is_empty() {
        return Ok(());
    }
    write!(f, "\n  {title}:")?;
    for item in items.iter().take(SHOWN) {
        write!(f, "\n    {item}")?;
    }
    if items.len() > SHOWN { write!(f, "\n    … and {} more", items.len() - SHOWN) } else { Ok(()) }
}

impl fmt::Display for GradcheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.passed() { "passed" } else { "failed" };
        write!(f, "gradcheck of `{}` {verdict}", self.name)?;
        if self.is_second {
            f.write_str("\n  (outputs are the gradients of the inputs; inputs past those are the gradients of the outputs)")?;
        }
        let compared: usize = self.accuracy.iter().map(|accuracy| accuracy.compared).sum();
        let title = format!("{} of {compared} derivatives are wrong, the worst first", self.mismatches.len());
        section(f, &title, &self.mismatches)?;
        section(f, "the contract is broken", &self.violations)?;
        section(f, "not accurate enough to find anything", &self.unresolved)?;
        section(f, "accuracy", &self.accuracy)
    }
}

impl core::error::Error for GradcheckReport {}
