//! How exact each dtype is, and what follows for steps and tolerances. The table of the module's documentation.

use crate::dtype::DType;

/// What a check has to know of a dtype.
#[derive(Clone, Copy, Debug)]
pub(super) struct Precision {
    /// The largest relative error of rounding to it: half the distance of 1 and the next larger value.
    pub(super) unit: f64,
    /// The largest error of rounding a value near zero to it: half the smallest value.
    pub(super) tiny: f64,
    /// The relative tolerance for derivatives that passed through it.
    pub(super) rtol: f64,
    /// The largest step for a value of magnitude 1.
    pub(super) step: f64,
    /// The distance of the points at which noise is measured: many units, and so small that the fourth difference of
    /// a smooth function is far below one.
    pub(super) probe: f64,
    /// A small step at which a derivative can still be told roughly.
    pub(super) near: f64,
    /// A factor at which, and below which, a gradient has full precision in it.
    pub(super) faint: f64,
}

/// The precision of a dtype; integers count as `f64`, they round nothing that a check computes.
pub(super) fn precision(dtype: DType) -> Precision {
    let two = |exponent: i32| 2.0_f64.powi(exponent);
    let (unit, tiny, rtol, step, probe, near, faint) = match dtype {
        DType::F32 => (two(-24), two(-150), two(-14), two(-4), two(-14), two(-12), two(-60)),
        DType::F16 => (two(-11), two(-25), two(-7), two(-2), two(-7), two(-6), two(-2)),
        DType::BF16 => (two(-8), two(-134), two(-5), two(-1), two(-5), two(-4), two(-60)),
        DType::F8E4M3 => (two(-4), two(-10), two(-3), 1.0, two(-2), two(-2), 1.0),
        DType::F8E5M2 => (two(-3), two(-17), two(-2), 1.0, two(-2), two(-2), 1.0),
        _ => (two(-53), 0.0, 1e-6, two(-6), two(-24), two(-20), two(-300)),
    };
    Precision { unit, tiny, rtol, step, probe, near, faint }
}

/// The precision of the coarsest of these dtypes.
pub(super) fn coarsest(dtypes: impl IntoIterator<Item = DType>) -> Precision {
    let coarser = |a: Precision, b: Precision| if b.unit > a.unit { b } else { a };
    dtypes.into_iter().map(precision).fold(precision(DType::F64), coarser)
}

/// The largest error of an output `value` of a Function that computes well.
pub(super) fn rounding_error(dtype: DType, value: f64) -> f64 {
    // 8- and 16-bit outputs are computed in f32 and rounded once; in the wider ones the computation itself rounds.
    let roundings = if matches!(dtype, DType::F32 | DType::F64) { 4.0 } else { 1.0 };
    let Precision { unit, tiny, .. } = precision(dtype);
    roundings * unit * value.abs() + tiny
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::round_to;

    #[test]
    fn the_unit_is_the_error_of_the_value_between_one_and_the_next() {
        for dtype in DType::FLOATS {
            let Precision { unit, tiny, .. } = precision(dtype);
            // A tie goes to the even neighbour, 1; anything more goes up.
            assert_eq!(round_to(dtype, 1.0 + unit), 1.0, "{dtype}");
            assert_eq!(round_to(dtype, 1.0 + 3.0 * unit), 1.0 + 4.0 * unit, "{dtype}");
            assert_eq!(round_to(dtype, tiny), 0.0, "{dtype}");
            assert_eq!(round_to(dtype, 3.0 * tiny), 4.0 * tiny, "{dtype}");
        }
    }

    #[test]
    fn a_faint_gradient_keeps_its_precision() {
        for dtype in DType::FLOATS {
            let Precision { unit, faint, .. } = precision(dtype);
            let exact = faint * (1.0 + 2.0 * unit);
            assert_eq!(round_to(dtype, exact), exact, "{dtype}");
        }
    }
}
