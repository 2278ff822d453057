//! Typed memory of the CPU engine: where every array's elements live, and the one place that allocates them.
//!
//! It knows no shapes. A single element is kept inline, so that scalars cost no allocation; more are shared.

use core::any::Any;
use std::sync::Arc;

use super::recycle;
use crate::dtype::{DType, Element, bf16, f8e4m3, f8e5m2, f16};
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Elements of one type: immutable, cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum Store<T: Element> {
    /// One element, held inline.
    One(T),
    /// Any other number of them, shared.
    Many(Arc<Memory<T>>),
}

/// Elements whose memory is kept for other arrays when they are dropped.
#[derive(Debug)]
pub(crate) struct Memory<T: Element>(Vec<T>);

impl<T: Element> Drop for Memory<T> {
    fn drop(&mut self) {
        recycle::give(core::mem::take(&mut self.0));
    }
}

impl<T: Element> Store<T> {
    /// Takes over a vector.
    pub(crate) fn from_vec(elements: Vec<T>) -> Self {
        if let [element] = elements[..] { Self::One(element) } else { Self::Many(Arc::new(Memory(elements))) }
    }

    /// The elements.
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Self::One(element) => core::slice::from_ref(element),
            Self::Many(elements) => &elements.0,
        }
    }

    /// The elements, writable if nobody else shares them.
    pub(crate) fn unique(&mut self) -> Option<&mut [T]> {
        match self {
            Self::One(element) => Some(core::slice::from_mut(element)),
            Self::Many(elements) => Arc::get_mut(elements).map(|memory| memory.0.as_mut_slice()),
        }
    }
}

/// From how many bytes on memory is asked for before it is taken: a refusal would end the process.
const LARGE: usize = 1 << 30;

/// A vector of `len` elements to be overwritten, each of them: they may be what a freed array held.
///
/// Every kernel's result comes from here or from [`zeroed`].
///
/// # Errors
/// [`Error::ShapeOverflow`] if there is not so much memory.
pub(crate) fn allocate<T: Element>(len: usize) -> Result<Vec<T>> {
    #[allow(unused_mut, reason = "changed in tests")]
    let mut elements = recycle::take(len).map_or_else(|| fresh(len), Ok)?;
    // What a kernel forgets to overwrite is seen.
    #[cfg(test)]
    elements.fill(T::from_f64(77.0));
    Ok(elements)
}

/// A vector of `len` zeros.
///
/// # Errors
/// [`Error::ShapeOverflow`] if there is not so much memory.
pub(crate) fn zeroed<T: Element>(len: usize) -> Result<Vec<T>> {
    let Some(mut elements) = recycle::take(len) else { return fresh(len) };
    elements.fill(T::default());
    Ok(elements)
}

/// Zeros in memory that is new from the system.
fn fresh<T: Element>(len: usize) -> Result<Vec<T>> {
    let bytes = len.saturating_mul(size_of::<T>());
    if bytes > LARGE && Vec::<u8>::new().try_reserve_exact(bytes).is_err() {
        recycle::clear();
        if Vec::<u8>::new().try_reserve_exact(bytes).is_err() {
            return Err(Error::ShapeOverflow { shape: Shape::from(len) });
        }
    }
    Ok(vec![T::default(); len])
}

/// Keeps the memory of intermediate results for the next ones.
pub(crate) fn free<T: Element>(elements: Vec<T>) {
    recycle::give(elements);
}

fn any<T: 'static>(value: &T) -> &dyn Any {
    value
}

/// `value`, to be tried for a type; the compiler knows the outcome.
pub(crate) fn any_mut<T: 'static>(value: &mut T) -> &mut dyn Any {
    value
}

macro_rules! buffer {
    ($($dtype:ident($type:ty)),* $(,)?) => {
        /// Elements of a dtype known at run time.
        #[derive(Clone, Debug)]
        #[allow(missing_docs, reason = "the variants are those of `DType`")]
        pub(crate) enum Buffer {
            $($dtype(Store<$type>),)*
        }

        impl Buffer {
            /// The dtype of the elements.
            pub(crate) const fn dtype(&self) -> DType {
                match self {
                    $(Self::$dtype(_) => DType::$dtype,)*
                }
            }

            /// The elements, if they are of type `T`.
            pub(crate) fn slice<T: Element>(&self) -> Option<&[T]> {
                match self {
                    $(Self::$dtype(store) => {
                        any(store).downcast_ref::<Store<T>>().map(Store::as_slice)
                    })*
                }
            }

            /// The elements, if they are of type `T` and nobody else shares them.
            pub(crate) fn unique<T: Element>(&mut self) -> Option<&mut [T]> {
                match self {
                    $(Self::$dtype(store) => {
                        any_mut(store).downcast_mut::<Store<T>>().and_then(Store::unique)
                    })*
                }
            }
        }

        impl<T: Element> From<Store<T>> for Buffer {
            fn from(mut store: Store<T>) -> Self {
                let any: &mut dyn Any = &mut store;
                $(if let Some(store) = any.downcast_mut::<Store<$type>>() {
                    let empty = Store::One(<$type>::default());
                    return Self::$dtype(core::mem::replace(store, empty));
                })*
                // `Element` is sealed: its types are exactly those above.
                Self::Bool(Store::One(false))
            }
        }
    };
}

buffer! {
    Bool(bool), U8(u8), I8(i8), I16(i16), I32(i32), I64(i64),
    F8E4M3(f8e4m3), F8E5M2(f8e5m2), F16(f16), BF16(bf16), F32(f32), F64(f64),
}

/// Runs `$body` with `$store` bound to the typed store of `$buffer`.
macro_rules! with_store {
    ($buffer:expr, $store:ident => $body:expr) => {
        match $buffer {
            $crate::cpu::buffer::Buffer::Bool($store) => $body,
            $crate::cpu::buffer::Buffer::U8($store) => $body,
            $crate::cpu::buffer::Buffer::I8($store) => $body,
            $crate::cpu::buffer::Buffer::I16($store) => $body,
            $crate::cpu::buffer::Buffer::I32($store) => $body,
            $crate::cpu::buffer::Buffer::I64($store) => $body,
            $crate::cpu::buffer::Buffer::F8E4M3($store) => $body,
            $crate::cpu::buffer::Buffer::F8E5M2($store) => $body,
            $crate::cpu::buffer::Buffer::F16($store) => $body,
            $crate::cpu::buffer::Buffer::BF16($store) => $body,
            $crate::cpu::buffer::Buffer::F32($store) => $body,
            $crate::cpu::buffer::Buffer::F64($store) => $body,
        }
    };
}

/// Runs `$body` with `$type` naming the Rust type of `$dtype`.
macro_rules! with_type {
    ($dtype:expr, $type:ident => $body:expr) => {
        $crate::cpu::buffer::with_type!(@ $dtype, $type => $body;
            Bool bool, U8 u8, I8 i8, I16 i16, I32 i32, I64 i64, F8E4M3 $crate::dtype::f8e4m3,
            F8E5M2 $crate::dtype::f8e5m2, F16 $crate::dtype::f16, BF16 $crate::dtype::bf16, F32 f32, F64 f64)
    };
    (@ $dtype:expr, $type:ident => $body:expr; $($name:ident $rust:ty),*) => {
        $crate::cpu::buffer::with_type!(@@ $dtype, $type, $body; $($name $rust),*)
    };
    (@@ $dtype:expr, $type:ident, $body:expr; $($name:ident $rust:ty),*) => {
        match $dtype {
            $($crate::dtype::DType::$name => {
                type $type = $rust;
                $body
            })*
        }
    };
}

pub(crate) use {with_store, with_type};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_keeps_the_type_it_was_made_of() {
        for dtype in DType::ALL {
            with_type!(dtype, T => {
                for len in [0, 1, 3] {
                    let buffer = Buffer::from(Store::from_vec(vec![T::from_f64(1.0); len]));
                    assert_eq!(buffer.dtype(), dtype);
                    assert_eq!(buffer.slice::<T>().unwrap(), vec![T::from_f64(1.0); len]);
                    assert!(dtype == DType::F32 || buffer.slice::<f32>().is_none());
                }
            });
        }
    }

    #[test]
    fn more_memory_than_there_is_is_an_error() {
        assert!(allocate::<f64>(1 << 59).is_err());
        assert!(allocate::<u8>(usize::MAX).is_err());
    }

    #[test]
    fn only_the_sole_owner_may_write() {
        let mut buffer = Buffer::from(Store::from_vec(vec![1.0_f32, 2.0]));
        let other = buffer.clone();
        assert!(buffer.unique::<f32>().is_none());
        drop(other);
        assert!(buffer.unique::<f32>().is_some());
        assert!(buffer.unique::<f64>().is_none());
    }
}
