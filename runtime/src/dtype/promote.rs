//! Which dtype two dtypes meet in. The typed twin of these rules is `typed::join`.

use super::DType;

impl DType {
    /// The dtype of an operation on two tensors: as PyTorch promotes, with 8-bit floats added.
    ///
    /// Floats win over integers, integers over `bool`; `f16` with `bf16` is `f32`, the two 8-bit floats meet in
    /// `f16`, `i8` with `u8` is `i16`. Between floats it is the narrowest dtype that holds every value of both.
    pub const fn promote(self, other: Self) -> Self {
        use DType::{BF16, F8E4M3, F8E5M2, F16, F32, I8, I16, U8};
        if self as u8 == other as u8 {
            return self;
        }
        match (self, other) {
            (F16, BF16) | (BF16, F16) => F32,
            (F8E4M3, F8E5M2) | (F8E5M2, F8E4M3) => F16,
            (U8, I8) | (I8, U8) => I16,
            _ if (self as u8) > (other as u8) => self,
            _ => other,
        }
    }

    /// The narrowest floating dtype that holds every value of all the given ones, whatever their order.
    ///
    /// `None` if there are none, or one of them is not floating-point and fits in no float.
    pub fn widest(dtypes: impl IntoIterator<Item = Self, IntoIter: Clone>) -> Option<Self> {
        let mut dtypes = dtypes.into_iter().peekable();
        dtypes.peek()?;
        Self::FLOATS.into_iter().find(|&float| dtypes.clone().all(|dtype| dtype.fits_in(float)))
    }

    /// Whether every value of `self` is a value of `target` too, so that converting loses nothing.
    pub const fn fits_in(self, target: Self) -> bool {
        use DType::{BF16, Bool, F8E4M3, F8E5M2, F16, F32, F64, I8, I16, I32, I64, U8};
        if self as u8 == target as u8 {
            return true;
        }
        match self {
            Bool => true,
            U8 => matches!(target, I16 | I32 | I64 | F16 | BF16 | F32 | F64),
            I8 => matches!(target, I16 | I32 | I64 | F16 | BF16 | F32 | F64),
            I16 => matches!(target, I32 | I64 | F32 | F64),
            I32 => matches!(target, I64 | F64),
            I64 | F64 => false,
            F8E4M3 | F8E5M2 => matches!(target, F16 | BF16 | F32 | F64),
            F16 | BF16 => matches!(target, F32 | F64),
            F32 => matches!(target, F64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_symmetric_and_floats_lose_nothing_by_it() {
        for a in DType::ALL {
            for b in DType::ALL {
                let joined = a.promote(b);
                assert_eq!(joined, b.promote(a), "{a} with {b}");
                if a.is_float() == b.is_float() {
                    assert!(a.fits_in(joined) && b.fits_in(joined), "{a} with {b} is {joined}");
                }
            }
        }
    }

    #[test]
    fn the_widest_of_several_does_not_depend_on_the_order() {
        for a in DType::FLOATS {
            for b in DType::FLOATS {
                assert_eq!(DType::widest([a, b]), Some(a.promote(b)), "of two it is their promotion");
                for c in DType::FLOATS {
                    let widest = DType::widest([a, b, c]);
                    assert_eq!(widest, DType::widest([c, a, b]));
                    assert_eq!(widest, DType::widest([b, a, c]));
                }
            }
        }
        // Promoting pair by pair would pass through f16 and end in f32.
        assert_eq!(DType::widest([DType::F8E4M3, DType::F8E5M2, DType::BF16]), Some(DType::BF16));
        assert_eq!(DType::widest([]), None);
    }
}
