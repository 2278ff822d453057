//! The array of the CPU engine: shared, immutable elements and a layout. No autograd here.

use std::sync::Arc;

use super::buffer::{Buffer, Store, allocate, with_store, with_type, zeroed};
use super::kernels;
use super::layout::Layout;
use crate::dtype::{Census, DType, Element};
use crate::engine;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// Elements of one dtype in a shape.
///
/// Immutable and cheap to clone: clones and views share the elements. An array is one pointer; one of a single element is one allocation.
#[derive(Clone)]
pub struct Array(Arc<Inner>);

/// Behind one pointer, so that a tensor is small to move: graphs move tensors often.
struct Inner {
    buffer: Buffer,
    layout: Layout,
}

impl Array {
    /// Takes over `elements`, row-major, as an array of `shape`.
    ///
    /// # Errors
    /// [`Error::Length`] if the shape holds another number of elements, [`Error::ShapeOverflow`].
    pub fn from_vec<T: Element>(elements: Vec<T>, shape: impl Into<Shape>) -> Result<Self> {
        let shape = shape.into();
        let expected = shape.checked_len()?;
        if expected != elements.len() {
            return Err(Error::Length { shape, expected, got: elements.len() });
        }
        Ok(Self::from_buffer(Store::from_vec(elements).into(), shape))
    }

    /// Copies `elements`, row-major, into an array of `shape`.
    ///
    /// # Errors
    /// As [`Array::from_vec`].
    pub fn from_slice<T: Element>(elements: &[T], shape: impl Into<Shape>) -> Result<Self> {
        Self::from_vec(elements.to_vec(), shape)
    }

    /// An array of shape `[]`.
    pub fn scalar<T: Element>(element: T) -> Self {
        Self::from_buffer(Store::One(element).into(), Shape::scalar())
    }

    /// An array of shape `[]` of the given dtype, to which `value` is rounded once.
    pub fn scalar_of(value: f64, dtype: DType) -> Self {
        with_type!(dtype, T => Self::scalar(T::from_f64(value)))
    }

    /// An array of `shape` filled with `value`, rounded once to `dtype`.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`].
    pub fn full(shape: impl Into<Shape>, value: f64, dtype: DType) -> Result<Self> {
        let shape = shape.into();
        let len = shape.checked_len()?;
        Ok(with_type!(dtype, T => {
            let element = T::from_f64(value);
            if len == 1 {
                Self::from_buffer(Store::One(element).into(), shape)
            } else {
                // Zeros may come from the system without being written.
                let elements = if element == T::default() && !value.is_sign_negative() {
                    zeroed(len)?
                } else {
                    let mut elements = allocate::<T>(len)?;
                    elements.fill(element);
                    elements
                };
                Self::from_buffer(Store::from_vec(elements).into(), shape)
            }
        }))
    }

    /// Zeros.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`].
    pub fn zeros(shape: impl Into<Shape>, dtype: DType) -> Result<Self> {
        Self::full(shape, 0.0, dtype)
    }

    /// Ones.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`].
    pub fn ones(shape: impl Into<Shape>, dtype: DType) -> Result<Self> {
        Self::full(shape, 1.0, dtype)
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.0.buffer.dtype()
    }

    /// The extents of the dimensions.
    pub fn shape(&self) -> &Shape {
        self.0.layout.shape()
    }

    /// How many elements it has.
    pub fn element_count(&self) -> usize {
        self.shape().element_count()
    }

    /// A copy of the elements, row-major.
    ///
    /// # Errors
    /// [`Error::TypedView`] if they are not of type `T`; nothing is converted.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let contiguous = kernels::contiguous(self)?;
        let start = contiguous.0.layout.offset();
        match contiguous.0.buffer.slice::<T>() {
            Some(elements) => Ok(elements[start..start + self.element_count()].to_vec()),
            None => Err(self.wrong_type::<T>()),
        }
    }

    /// The elements as `f64`s, row-major; exact but for large `i64`s.
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] if there is not so much memory (a broadcast view takes none).
    pub fn to_f64_vec(&self) -> Result<Vec<f64>> {
        let mut values = allocate(self.element_count())?;
        kernels::Reader::new(self).read(0, &mut values);
        Ok(values)
    }

    /// The only element.
    ///
    /// # Errors
    /// [`Error::TypedView`] if it is not of type `T`, [`Error::Shape`] if there is not exactly one.
    pub fn item<T: Element>(&self) -> Result<T> {
        let elements = self.0.buffer.slice::<T>().ok_or_else(|| self.wrong_type::<T>())?;
        match elements.get(self.0.layout.offset()) {
            Some(&element) if self.shape().is_single() => Ok(element),
            _ => Err(self.not_single()),
        }
    }

    /// The only element as an `f64`, whatever the dtype.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is not exactly one element.
    pub fn item_f64(&self) -> Result<f64> {
        if !self.shape().is_single() {
            return Err(self.not_single());
        }
        let element = with_store!(&self.0.buffer, store => {
            store.as_slice().get(self.0.layout.offset()).map(|element| element.to_f64())
        });
        element.ok_or_else(|| self.not_single())
    }

    /// The same values in `dtype`: rounded once to nearest even, to integers truncated and wrapped, to `bool` "not 0".
    ///
    /// # Errors
    /// [`Error::ShapeOverflow`] if there is not so much memory.
    pub fn cast(&self, dtype: DType) -> Result<Self> {
        kernels::cast(self, dtype)
    }

    /// The same elements, row-major without gaps.
    pub(crate) fn contiguous(&self) -> Result<Self> {
        kernels::contiguous(self)
    }

    pub(crate) fn from_buffer(buffer: Buffer, shape: Shape) -> Self {
        Self(Arc::new(Inner { buffer, layout: Layout::contiguous(shape) }))
    }

    pub(crate) fn with_layout(&self, layout: Layout) -> Self {
        Self(Arc::new(Inner { buffer: self.0.buffer.clone(), layout }))
    }

    pub(crate) fn buffer(&self) -> &Buffer {
        &self.0.buffer
    }

    /// The buffer, if no clone of this array shares it; a view may still share the elements.
    pub(crate) fn buffer_mut(&mut self) -> Option<&mut Buffer> {
        Arc::get_mut(&mut self.0).map(|inner| &mut inner.buffer)
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// Checks that an array to be added has this shape.
    fn same_shape(&self, other: &Self) -> Result<()> {
        if self.shape() == other.shape() {
            return Ok(());
        }
        let problem = format!("shapes {} and {} differ", self.shape(), other.shape());
        Err(Error::Shape { operation: "accumulate", problem })
    }

    #[cold]
    fn wrong_type<T: Element>(&self) -> Error {
        Error::TypedView {
            what: "storage dtype",
            expected: T::DTYPE.to_string(),
            got: self.dtype().to_string(),
        }
    }

    #[cold]
    fn not_single(&self) -> Error {
        Error::Shape {
            operation: "item",
            problem: format!("expected one element, got shape {}", self.shape()),
        }
    }
}

impl engine::Array for Array {
    fn dtype(&self) -> DType {
        self.dtype()
    }

    fn shape(&self) -> &Shape {
        self.shape()
    }

    fn cast(&self, dtype: DType) -> Result<Self> {
        self.cast(dtype)
    }

    fn cast_counting(&self, dtype: DType) -> Result<(Self, Option<Census>)> {
        kernels::cast_counting(self, dtype)
    }

    fn accumulate(self, other: &Self) -> Result<Self> {
        self.same_shape(other)?;
        kernels::accumulate(self, other)
    }

    fn sum_rounded(arrays: &[&Self], rounded: DType, dtype: DType) -> Result<Self> {
        let [first, others @ ..] = arrays else {
            return Err(engine::nothing_to_add());
        };
        others.iter().try_for_each(|other| first.same_shape(other))?;
        kernels::sum_rounded(first, others, rounded, dtype)
    }

    fn accumulate_rounded(self, other: &Self, rounded: DType) -> Result<Self> {
        self.same_shape(other)?;
        kernels::accumulate_rounded(self, other, rounded)
    }

    fn full(shape: &Shape, value: f64, dtype: DType) -> Result<Self> {
        Self::full(shape, value, dtype)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_another_length_than_the_shape_is_refused() {
        assert!(matches!(
            Array::from_vec(vec![1.0_f32], [2]),
            Err(Error::Length { expected: 2, got: 1, .. })
        ));
        assert!(matches!(Array::zeros([usize::MAX, 2], DType::F32), Err(Error::ShapeOverflow { .. })));
        assert_eq!(Array::from_vec(Vec::<f32>::new(), [0, 3]).unwrap().element_count(), 0);
    }

    #[test]
    fn elements_are_read_in_their_own_type_only() {
        let array = Array::from_vec(vec![1.5_f32, 2.5], [2]).unwrap();
        assert_eq!(array.to_vec::<f32>().unwrap(), [1.5, 2.5]);
        let error = array.to_vec::<f64>().unwrap_err().to_string();
        assert_eq!(error, "expected a tensor of storage dtype f64, got f32");
        assert_eq!(array.to_f64_vec().unwrap(), [1.5, 2.5]);
        assert!(array.item::<f32>().is_err());
        assert_eq!(Array::scalar(true).item_f64().unwrap(), 1.0);
    }

    #[test]
    fn full_keeps_the_sign_of_zero() {
        assert!(Array::full([2], -0.0, DType::F16).unwrap().to_f64_vec().unwrap()[1].is_sign_negative());
    }

    #[test]
    fn an_array_is_one_pointer() {
        assert_eq!(size_of::<Option<Array>>(), size_of::<usize>());
    }
}
