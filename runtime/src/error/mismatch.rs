//! The error of a gradient that does not fit, and how it is told.

use core::fmt;

use super::Place;
use crate::dtype::DType;
use crate::shape::Shape;

/// Who sent a gradient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GradientSender {
    /// The backward that returned it, at a position of its Function's inputs.
    Backward(Place),
    /// The caller of a backward.
    Seed,
    /// The caller of `set_grad`.
    Assigned,
    /// It had been admitted, and then a hook changed the gradient dtype of the leaf.
    Waiting,
    /// Somebody in the graph of a host, which does not tell whom.
    Host,
}

impl fmt::Display for GradientSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backward(place) => write!(f, "the gradient returned for {place}"),
            Self::Seed => f.write_str("the seed gradient"),
            Self::Assigned => f.write_str("the gradient given to `set_grad`"),
            Self::Waiting => {
                f.write_str("the gradient that waited while a hook changed the leaf's gradient dtype")
            }
            Self::Host => f.write_str("the gradient that arrived"),
        }
    }
}

/// A gradient that cannot be admitted: its shape, its dtype or both are not what the receiver expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GradientMismatch {
    /// Who sent the gradient.
    pub sender: GradientSender,
    /// Whose gradient it is: an output of the Function that would receive it, or a leaf.
    pub receiver: String,
    /// Expected and received shape, where they differ.
    pub shape: Option<(Shape, Shape)>,
    /// Expected and received dtype, where they differ.
    pub dtype: Option<(DType, DType)>,
}

impl fmt::Display for GradientMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match (&self.shape, &self.dtype) {
            (Some(_), Some(_)) => "shape and dtype",
            (Some(_), None) => "shape",
            _ => "dtype",
        };
        write!(f, "{} has the wrong {what} for {}: expected ", self.sender, self.receiver)?;
        let write_both = |f: &mut fmt::Formatter<'_>, expected: bool| {
            let pick_shape = |(e, g): &(Shape, Shape)| if expected { e.clone() } else { g.clone() };
            let pick_dtype = |&(e, g): &(DType, DType)| if expected { e } else { g };
            if let Some(dtypes) = &self.dtype {
                write!(f, "{}", pick_dtype(dtypes))?;
            }
            if let Some(shapes) = &self.shape {
                write!(f, "{}{}", if self.dtype.is_some() { " " } else { "" }, pick_shape(shapes))?;
            }
            Ok(())
        };
        write_both(f, true)?;
        f.write_str(", got ")?;
        write_both(f, false)?;
        if self.shape.is_some() {
            f.write_str(
                "; a gradient is neither summed nor broadcast silently: call `sum_to_shape` or `broadcast_to`",
            )?;
        }
        if self.dtype.is_some() && self.shape.is_none() && self.sender == GradientSender::Assigned {
            f.write_str(
                "; set the dtype of the leaf's gradient with `set_grad_dtype`, or `cast` the gradient",
            )?;
        } else if let (Some((expected, got)), None) = (self.dtype, &self.shape) {
            f.write_str("; declare the dtype that comes (`grad = …`, of a leaf `requiring_grad_in`), or ")?;
            let widened = got.fits_in(expected);
            f.write_str(if widened {
                "`cast` it before"
            } else {
                "narrow it where that is meant (`narrow_grad`)"
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mismatch(shape: bool, dtype: bool) -> String {
        GradientMismatch {
            sender: GradientSender::Backward(Place::input("Mul", 1)),
            receiver: "output 0 of `Silu`".to_owned(),
            shape: shape.then(|| (Shape::scalar(), Shape::from([10]))),
            dtype: dtype.then_some((DType::F32, DType::F16)),
        }
        .to_string()
    }

    #[test]
    fn a_mismatch_says_whether_shape_or_dtype_or_both_are_wrong_expected_first() {
        assert!(mismatch(true, false).contains("wrong shape for output 0 of `Silu`: expected [], got [10]"));
        assert!(mismatch(true, false).ends_with("call `sum_to_shape` or `broadcast_to`"));
        let narrower = mismatch(false, true);
        assert!(narrower.contains("wrong dtype for output 0 of `Silu`: expected f32, got f16"), "{narrower}");
        assert!(narrower.contains("(`grad = …`, of a leaf `requiring_grad_in`)"), "{narrower}");
        assert!(narrower.ends_with("or `cast` it before"), "nothing is to be narrowed: {narrower}");
        assert!(
            mismatch(true, true)
                .contains("wrong shape and dtype for output 0 of `Silu`: expected f32 [], got f16 [10]")
        );
    }
}
