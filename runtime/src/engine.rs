//! What the autograd graph asks of an engine: that its arrays can be measured, converted, added and filled.
//!
//! The arithmetic that Functions use is the engine's own business; nothing above this layer needs it.

use core::fmt::Debug;

use crate::dtype::{Census, DType};
use crate::error::{Error, Result};
use crate::shape::Shape;

/// A source of arrays, named by a marker type such as [`Cpu`].
pub trait Engine: Copy + Debug + Send + Sync + 'static {
    /// The values of a tensor.
    type Array: Array;

    /// Whether its tensors have a graph of their own, as those of a host. Then nothing about them is recorded in the graph of this
    /// crate, and what would be is an error.
    const HAS_OWN_GRAPH: bool = false;
}

/// The values of a tensor: immutable, cheap to clone.
pub trait Array: Clone + Debug + Send + Sync + 'static {
    /// The type of the elements.
    fn dtype(&self) -> DType;

    /// The extents of the dimensions.
    fn shape(&self) -> &Shape;

    /// The same values in `dtype`, rounded once to nearest even; of the same dtype a plain clone.
    ///
    /// # Errors
    /// If the engine cannot hold the result.
    fn cast(&self, dtype: DType) -> Result<Self>;

    /// [`cast`](Self::cast), and what became of the values, for an audit; `None` if the engine does not count. In its own
    /// dtype what the values are.
    ///
    /// # Errors
    /// If the engine cannot hold the result.
    fn cast_counting(&self, dtype: DType) -> Result<(Self, Option<Census>)> {
        Ok((self.cast(dtype)?, None))
    }

    /// `self + other` in the dtype of `self`, which `other` (of the same shape) is converted to first.
    ///
    /// Takes `self` by value, so that an engine can add in place when nobody else holds it.
    ///
    /// # Errors
    /// If the engine cannot hold the result.
    fn accumulate(self, other: &Self) -> Result<Self>;

    /// The sum of arrays of one shape, from left to right, each rounded to `rounded` first: formed in the accumulation dtype of
    /// that, and rounded once to `dtype`. Everything is floating-point.
    ///
    /// What the default makes of several conversions and additions, an engine may do in one pass, with the same result.
    ///
    /// # Errors
    /// If there is no array, or the engine cannot hold the result.
    fn sum_rounded(arrays: &[&Self], rounded: DType, dtype: DType) -> Result<Self> {
        let [first, others @ ..] = arrays else {
            return Err(nothing_to_add());
        };
        let mut sum = first.cast(rounded)?.cast(rounded.accumulation())?;
        for other in others {
            sum = sum.accumulate_rounded(other, rounded)?;
        }
        sum.cast(dtype)
    }

    /// [`accumulate`](Self::accumulate) of `other` rounded to `rounded`. Everything is floating-point.
    ///
    /// # Errors
    /// If the engine cannot hold the result.
    fn accumulate_rounded(self, other: &Self, rounded: DType) -> Result<Self> {
        self.accumulate(&other.cast(rounded)?)
    }

    /// An array filled with one value.
    ///
    /// # Errors
    /// If the engine cannot hold it.
    fn full(shape: &Shape, value: f64, dtype: DType) -> Result<Self>;
}

/// The error of a sum of no arrays, which has no shape.
pub(crate) fn nothing_to_add() -> Error {
    Error::Argument { operation: "sum_rounded", problem: "there is nothing to add".to_owned() }
}

/// The embedded CPU engine, the default everywhere.
///
/// Its arrays are in the `cpu` module, behind the feature `cpu`. Without that feature only the name is left, so that
/// types that default to it still have a name; no array of it can then be made.
#[derive(Clone, Copy, Debug)]
pub enum Cpu {}

#[cfg(feature = "cpu")]
impl Engine for Cpu {
    type Array = crate::cpu::Array;
}

#[cfg(not(feature = "cpu"))]
mod absent {
    use super::{Array, Cpu, DType, Engine, Error, Result, Shape};

    /// The array of an engine that was not built.
    #[derive(Clone, Debug)]
    pub enum Absent {}

    impl Engine for Cpu {
        type Array = Absent;
    }

    impl Array for Absent {
        fn dtype(&self) -> DType {
            match *self {}
        }

        fn shape(&self) -> &Shape {
            match *self {}
        }

        fn cast(&self, _: DType) -> Result<Self> {
            match *self {}
        }

        fn accumulate(self, _: &Self) -> Result<Self> {
            match self {}
        }

        fn full(_: &Shape, _: f64, _: DType) -> Result<Self> {
            let problem = "the embedded CPU engine is not built: enable the feature `cpu`".to_owned();
            Err(Error::Argument { operation: "full", problem })
        }
    }
}
