//! The entries of a file: written one by one, and taken out one by one until none is left.

use std::collections::BTreeMap;

use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

use super::bytes::{from_bytes, from_word, to_bytes, to_word};
use crate::cpu::Array;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::shape::Shape;

/// A name that the format keeps for itself.
const RESERVED: &str = "__metadata__";

/// A file being written.
pub(super) struct Writer {
    operation: &'static str,
    entries: BTreeMap<String, (DType, Shape, Vec<u8>)>,
}

impl Writer {
    pub(super) fn new(operation: &'static str) -> Self {
        Self { operation, entries: BTreeMap::new() }
    }

    /// Adds an array.
    pub(super) fn array(&mut self, name: &str, array: &Array) -> Result<()> {
        let entry = (array.dtype(), array.shape().clone(), to_bytes(array)?);
        if name == RESERVED || self.entries.insert(name.to_owned(), entry).is_some() {
            let (expected, got) = match name {
                RESERVED => ("another name", "the one that the format reserves"),
                _ => ("each name once", "it twice"),
            };
            return Err(entry_error(self.operation, name, expected, got));
        }
        Ok(())
    }

    /// Adds a number.
    pub(super) fn number<T: Element>(&mut self, name: &str, number: T) -> Result<()> {
        self.array(name, &Array::scalar(number))
    }

    /// The file.
    pub(super) fn finish(self) -> Result<Vec<u8>> {
        let failed = |error: safetensors::SafeTensorError| Error::Argument {
            operation: self.operation,
            problem: format!("expected tensors that can be written, got: {error}"),
        };
        let mut views = Vec::new();
        for (name, (dtype, shape, bytes)) in &self.entries {
            let view = TensorView::new(to_word(*dtype), shape.to_vec(), bytes).map_err(failed)?;
            views.push((name, view));
        }
        safetensors::serialize(views, None).map_err(failed)
    }
}

/// A file being read: the entries that nobody has taken yet.
pub(super) struct Entries<'a> {
    operation: &'static str,
    entries: BTreeMap<String, TensorView<'a>>,
}

impl<'a> Entries<'a> {
    /// Reads the header and checks that the entries are where it says.
    pub(super) fn parse(operation: &'static str, bytes: &'a [u8]) -> Result<Self> {
        let file = SafeTensors::deserialize(bytes).map_err(|error| Error::Argument {
            operation,
            problem: format!("expected a safetensors file, got {} bytes that are none: {error}", bytes.len()),
        })?;
        Ok(Self { operation, entries: file.tensors().into_iter().collect() })
    }

    /// The names that are left.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Takes out an entry of this dtype and shape.
    pub(super) fn take(&mut self, name: &str, dtype: DType, shape: &Shape) -> Result<Array> {
        let expected = format!("{dtype} {shape}");
        let view = self.remove(name, &expected)?;
        if from_word(view.dtype()) != Some(dtype) || view.shape() != &shape[..] {
            return Err(entry_error(self.operation, name, &expected, &described(&view)));
        }
        let array = from_bytes(dtype, shape, view.data())?;
        array.ok_or_else(|| entry_error(self.operation, name, &expected, "bytes that are no such elements"))
    }

    /// Takes out an entry of this shape, which arithmetic is done with: `f32` or `f64`.
    pub(super) fn take_wide(&mut self, name: &str, shape: &Shape) -> Result<Array> {
        let wide = self.entries.get(name).and_then(|view| from_word(view.dtype()));
        match wide.filter(|dtype| matches!(dtype, DType::F32 | DType::F64)) {
            Some(dtype) => self.take(name, dtype, shape),
            None => {
                let expected = format!("f32 or f64 {shape}");
                let view = self.remove(name, &expected)?;
                Err(entry_error(self.operation, name, &expected, &described(&view)))
            }
        }
    }

    /// Takes out a number.
    pub(super) fn take_number<T: Element>(&mut self, name: &str) -> Result<T> {
        self.take(name, T::DTYPE, &Shape::scalar())?.item()
    }

    /// Takes out a count of at least `least`.
    pub(super) fn take_count(&mut self, name: &str, least: u64) -> Result<u64> {
        let count = self.take_number::<i64>(name)?;
        let valid = u64::try_from(count).ok().filter(|&count| count >= least);
        let wrong = || {
            entry_error(self.operation, name, &format!("a number of at least {least}"), &count.to_string())
        };
        valid.ok_or_else(wrong)
    }

    /// Takes out an entry without elements, and says of which dtype and shape it is.
    pub(super) fn take_empty(&mut self, name: &str) -> Result<(DType, Shape)> {
        let expected = "a dtype and a shape that begins with 0";
        let view = self.remove(name, expected)?;
        match (from_word(view.dtype()), view.shape()) {
            (Some(dtype), [0, shape @ ..]) => Ok((dtype, Shape::from(shape))),
            _ => Err(entry_error(self.operation, name, expected, &described(&view))),
        }
    }

    /// Checks that every entry was taken.
    pub(super) fn finish(self) -> Result<()> {
        match self.entries.first_key_value() {
            None => Ok(()),
            Some((name, view)) => {
                Err(entry_error(self.operation, name, "no entry of this name", &described(view)))
            }
        }
    }

    fn remove(&mut self, name: &str, expected: &str) -> Result<TensorView<'a>> {
        let missing = || entry_error(self.operation, name, expected, "no entry of this name");
        self.entries.remove(name).ok_or_else(missing)
    }
}

/// Dtype and shape, in the words of this crate if it has them.
fn described(view: &TensorView<'_>) -> String {
    let shape = Shape::from(view.shape());
    from_word(view.dtype())
        .map_or_else(|| format!("{} {shape}", view.dtype()), |dtype| format!("{dtype} {shape}"))
}

#[cold]
pub(super) fn entry_error(operation: &'static str, entry: &str, expected: &str, got: &str) -> Error {
    Error::Entry { operation, entry: entry.to_owned(), expected: expected.to_owned(), got: got.to_owned() }
}
