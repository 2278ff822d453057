//! The gradient dtype of a built-in operation's result, at the level of types: the twin of
//! [`GradContract::carried`](crate::contract::GradContract::carried).

use super::grad_type::{AnyGrad, GradType, NoGrad, Untracked};
use crate::dtype::{bf16, f8e4m3, f8e5m2, f16};

/// The gradient dtype of two inputs together: the widest of both.
///
/// [`AnyGrad`] is wider than every dtype, [`NoGrad`] and integers narrower; with [`Untracked`] it is the other's.
#[diagnostic::on_unimplemented(
    message = "no gradient dtype is known to hold both `{Self}` and `{Rhs}`",
    label = "gradients in `{Self}` and `{Rhs}` meet here"
)]
pub trait Join<Rhs> {
    /// The widest of both.
    type Output: GradType;
}

/// The gradient dtype of a result stored in `D`, of an operation whose inputs' gradients arrive in `Self`.
#[diagnostic::on_unimplemented(
    message = "no gradient dtype is known for values stored in `{D}` with gradients in `{Self}`",
    label = "unknown gradient dtype"
)]
pub trait Over<D> {
    /// The wider of both; never narrower than the storage.
    type Output: GradType;
}

/// The gradient dtype of a conversion to `D`: as [`Over`], but integers have none.
#[diagnostic::on_unimplemented(
    message = "no gradient dtype is known for a conversion to `{D}` with gradients in `{Self}`",
    label = "unknown gradient dtype"
)]
pub trait CastOver<D> {
    /// The gradient dtype of the converted tensor.
    type Output: GradType;
}

/// `Self` is no wider than `Wider`: every value of the one is a value of the other.
#[diagnostic::on_unimplemented(
    message = "`{Wider}` cannot hold every gradient in `{Self}`",
    label = "`{Wider}` is not wider than `{Self}`",
    note = "`widen_grad` only widens; narrowing is written out: `narrow_grad`"
)]
pub trait FitsIn<Wider> {}

/// Both directions of one pair of floats.
macro_rules! floats_meet {
    ($($a:ty, $b:ty => $widest:ty;)*) => {$(
        impl Join<$b> for $a { type Output = $widest; }
        impl Join<$a> for $b { type Output = $widest; }
        impl Over<$b> for $a { type Output = $widest; }
        impl Over<$a> for $b { type Output = $widest; }
        impl CastOver<$b> for $a { type Output = $widest; }
        impl CastOver<$a> for $b { type Output = $widest; }
    )*};
}
floats_meet! {
    f8e4m3, f8e5m2 => f16; f8e4m3, f16 => f16; f8e4m3, bf16 => bf16; f8e4m3, f32 => f32; f8e4m3, f64 => f64;
    f8e5m2, f16 => f16; f8e5m2, bf16 => bf16; f8e5m2, f32 => f32; f8e5m2, f64 => f64;
    f16, bf16 => f32; f16, f32 => f32; f16, f64 => f64;
    bf16, f32 => f32; bf16, f64 => f64;
    f32, f64 => f64;
}

macro_rules! fits {
    ($($a:ty => $($wider:ty)*;)*) => {$($(impl FitsIn<$wider> for $a {})*)*};
}
fits! {
    f8e4m3 => f8e4m3 f16 bf16 f32 f64; f8e5m2 => f8e5m2 f16 bf16 f32 f64;
    f16 => f16 f32 f64; bf16 => bf16 f32 f64; f32 => f32 f64; f64 => f64;
}

/// What one float does with itself, with tensors that have no gradient, and with the markers.
macro_rules! float_with_the_rest {
    ($($float:ty)*) => {$(
        impl Join<$float> for $float { type Output = $float; }
        impl Over<$float> for $float { type Output = $float; }
        impl CastOver<$float> for $float { type Output = $float; }
        impl Join<AnyGrad> for $float { type Output = AnyGrad; }
        impl Join<$float> for AnyGrad { type Output = AnyGrad; }
        impl Join<NoGrad> for $float { type Output = $float; }
        impl Join<$float> for NoGrad { type Output = $float; }
        impl Join<Untracked> for $float { type Output = $float; }
        impl Join<$float> for Untracked { type Output = $float; }
        float_with_integers!($float: bool u8 i8 i16 i32 i64);
    )*};
}

macro_rules! float_with_integers {
    ($float:ty: $($int:ty)*) => {$(
        impl Join<$int> for $float { type Output = $float; }
        impl Join<$float> for $int { type Output = $float; }
        impl Over<$int> for $float { type Output = $float; }
        impl CastOver<$int> for $float { type Output = $int; }
        impl Over<$float> for $int { type Output = $float; }
        impl CastOver<$float> for $int { type Output = $float; }
    )*};
}
float_with_the_rest! { f8e4m3 f8e5m2 f16 bf16 f32 f64 }

macro_rules! integers {
    ($($int:ty)*) => {$(
        impl Join<$int> for $int { type Output = $int; }
        impl Join<NoGrad> for $int { type Output = NoGrad; }
        impl Join<$int> for NoGrad { type Output = NoGrad; }
        impl Join<AnyGrad> for $int { type Output = AnyGrad; }
        impl Join<$int> for AnyGrad { type Output = AnyGrad; }
        impl Join<Untracked> for $int { type Output = $int; }
        impl Join<$int> for Untracked { type Output = $int; }
        impl CastOver<$int> for AnyGrad { type Output = $int; }
        integer_over!($int: bool u8 i8 i16 i32 i64);
    )*};
}

macro_rules! integer_over {
    ($int:ty: $($storage:ty)*) => {$(
        impl Over<$storage> for $int { type Output = $storage; }
        impl CastOver<$storage> for $int { type Output = $storage; }
    )*};
}
integers! { bool u8 i8 i16 i32 i64 }

macro_rules! markers {
    ($($marker:ty)*) => {$(
        impl Join<$marker> for $marker { type Output = $marker; }
        impl<D> Over<D> for $marker { type Output = $marker; }
    )*};
}
markers! { AnyGrad NoGrad Untracked }

impl Join<AnyGrad> for NoGrad {
    type Output = AnyGrad;
}
impl Join<NoGrad> for AnyGrad {
    type Output = AnyGrad;
}
impl Join<Untracked> for AnyGrad {
    type Output = AnyGrad;
}
impl Join<AnyGrad> for Untracked {
    type Output = AnyGrad;
}
impl Join<Untracked> for NoGrad {
    type Output = NoGrad;
}
impl Join<NoGrad> for Untracked {
    type Output = NoGrad;
}

impl<D> CastOver<D> for NoGrad {
    type Output = NoGrad;
}
impl<D> CastOver<D> for Untracked {
    type Output = Untracked;
}

macro_rules! any_cast {
    ($($float:ty)*) => {$(impl CastOver<$float> for AnyGrad { type Output = AnyGrad; })*};
}
any_cast! { f8e4m3 f8e5m2 f16 bf16 f32 f64 }
