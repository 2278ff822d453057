//! Prints the values of an array the way NumPy and PyTorch do. Dtype and shape are shown by `Debug` alone.

use core::fmt::{self, Write as _};

use super::array::Array;
use super::kernels;
use crate::dtype::DType;
use crate::error::Result;

/// Larger arrays show only the values at the edges.
const SHOWN_ELEMENTS: usize = 1000;
/// How many values (or rows) at each edge are shown then.
const EDGE: usize = 3;
/// Where a line is broken.
const LINE: usize = 80;

impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.element_count() == 0 {
            return f.write_str("[]");
        }
        let (shown, gaps) = edges(self).map_err(|_| fmt::Error)?;
        let words = words(&shown).map_err(|_| fmt::Error)?;
        let width = words.iter().map(|word| word.chars().count()).max().unwrap_or(0);
        let mut printer = Printer { words: words.into_iter(), width, extents: shown.shape(), gaps: &gaps };
        printer.dimension(f, 0)
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({} {}, {self})", self.dtype(), self.shape())
    }
}

/// What is shown of an array, and for each dimension whether something is left out in its middle.
fn edges(array: &Array) -> Result<(Array, Vec<bool>)> {
    let large = array.element_count() > SHOWN_ELEMENTS;
    let gaps: Vec<bool> = array.shape().iter().map(|&extent| large && extent > 2 * EDGE).collect();
    Ok((shrunk(array, &gaps, 0)?, gaps))
}

/// The ends of every axis with a gap, from `axis` on. Only they are read: the array may be a view larger than memory.
fn shrunk(array: &Array, gaps: &[bool], axis: usize) -> Result<Array> {
    match gaps.get(axis) {
        None => array.contiguous(),
        Some(false) => shrunk(array, gaps, axis + 1),
        Some(true) => {
            let end = |start| shrunk(&array.narrow(axis as isize, start, EDGE)?, gaps, axis + 1);
            kernels::cat(&[end(0)?, end(array.shape()[axis] - EDGE)?], axis as isize)
        }
    }
}

struct Printer<'a> {
    words: std::vec::IntoIter<String>,
    width: usize,
    extents: &'a [usize],
    gaps: &'a [bool],
}

impl Printer<'_> {
    fn dimension(&mut self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let inner = self.extents.len() - depth;
        match inner {
            0 => return f.write_str(&self.words.next().unwrap_or_default()),
            1 => return self.row(f, depth),
            _ => f.write_char('[')?,
        }
        for position in 0..self.extents[depth] {
            if position > 0 {
                self.next_line(f, depth, inner - 1)?;
            }
            if self.gaps[depth] && position == EDGE {
                f.write_char('…')?;
                self.next_line(f, depth, inner - 1)?;
            }
            self.dimension(f, depth + 1)?;
        }
        f.write_char(']')
    }

    fn next_line(&self, f: &mut fmt::Formatter<'_>, depth: usize, lines: usize) -> fmt::Result {
        f.write_char(',')?;
        for _ in 0..lines {
            f.write_char('\n')?;
        }
        write!(f, "{:1$}", "", depth + 1)
    }

    fn row(&mut self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        f.write_char('[')?;
        let mut column = depth + 1;
        for position in 0..self.extents[depth] {
            if position > 0 && column + self.width + 3 > LINE {
                self.next_line(f, depth, 1)?;
                column = depth + 1;
            } else if position > 0 {
                f.write_str(", ")?;
                column += 2;
            }
            if self.gaps[depth] && position == EDGE {
                f.write_str("…, ")?;
                column += 3;
            }
            write!(f, "{:>1$}", self.words.next().unwrap_or_default(), self.width)?;
            column += self.width;
        }
        f.write_char(']')
    }
}

/// Each value in words, all in the same style.
fn words(array: &Array) -> Result<Vec<String>> {
    if array.dtype().is_integer() {
        let integers = array.cast(DType::I64)?.to_vec::<i64>()?;
        return Ok(integers.iter().map(ToString::to_string).collect());
    }
    let values = array.to_f64_vec()?;
    if array.dtype() == DType::Bool {
        return Ok(values.iter().map(|&value| (value != 0.0).to_string()).collect());
    }
    let write = style(&values);
    let special = |value: f64| {
        if value.is_nan() {
            "nan"
        } else if value < 0.0 {
            "-inf"
        } else {
            "inf"
        }
        .to_owned()
    };
    Ok(values.iter().map(|&value| if value.is_finite() { write(value) } else { special(value) }).collect())
}

/// How floats are written: as PyTorch chooses it, scientific where four decimals would hide or blow up a value.
fn style(values: &[f64]) -> fn(f64) -> String {
    let nonzero =
        || values.iter().map(|value| value.abs()).filter(|&value| value.is_finite() && value != 0.0);
    let (largest, smallest) = (nonzero().fold(0.0, f64::max), nonzero().fold(f64::INFINITY, f64::min));
    if largest >= 1e8 {
        scientific
    } else if nonzero().all(|value| value.fract() == 0.0) {
        |value| format!("{value:.0}.")
    } else if largest / smallest > 1000.0 || smallest < 1e-4 {
        scientific
    } else {
        |value| format!("{value:.4}")
    }
}

/// `1.0000e-10`: at least two digits in the exponent, as everybody else writes it.
fn scientific(value: f64) -> String {
    let text = format!("{value:.4e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::f16;

    fn show<T: crate::dtype::Element>(values: Vec<T>, shape: impl Into<crate::shape::Shape>) -> String {
        Array::from_vec(values, shape).unwrap().to_string()
    }

    #[test]
    fn values_print_as_in_pytorch() {
        assert_eq!(show(vec![1.0_f32, -2.0], [2]), "[ 1., -2.]");
        assert_eq!(show(vec![0.1_f32, 10.25], [2]), "[ 0.1000, 10.2500]");
        assert_eq!(show(vec![1e-10_f32, 0.1], [2]), "[1.0000e-10, 1.0000e-01]");
        assert_eq!(show(vec![f32::NAN, f32::NEG_INFINITY, 1.0], [3]), "[ nan, -inf,   1.]");
        assert_eq!(show(vec![f16::from_f32(0.1)], ()), "0.1000");
        assert_eq!(show(vec![i64::MAX, 1], [2]), "[9223372036854775807,                   1]");
        assert_eq!(show(vec![true, false], [2, 1]), "[[ true],\n [false]]");
        assert_eq!(show(Vec::<f32>::new(), [3, 0]), "[]");
        assert_eq!(show(vec![0_u8; 8], [2, 2, 2]), "[[[0, 0],\n  [0, 0]],\n\n [[0, 0],\n  [0, 0]]]");
    }

    #[test]
    fn a_large_array_shows_its_edges() {
        let text = show((0..10_000).collect::<Vec<i32>>(), [100, 100]);
        assert!(text.starts_with("[[   0,    1,    2, …,   97,   98,   99],\n [ 100,"), "{text}");
        assert!(text.contains("],\n …,\n [9700,"), "{text}");
        assert!(text.ends_with("9999]]"), "{text}");
    }

    #[test]
    fn a_long_row_is_broken_into_lines() {
        let text = show((100..200).collect::<Vec<i32>>(), [100]);
        assert!(text.lines().all(|line| line.len() <= LINE), "{text}");
    }

    #[test]
    fn debug_tells_dtype_and_shape() {
        assert_eq!(format!("{:?}", Array::scalar(1.0_f32)), "Array(f32 [], 1.)");
    }
}
