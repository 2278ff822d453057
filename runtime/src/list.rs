//! A short list that lives on the stack: what Functions take and return.

use core::fmt;
use core::ops::{Deref, DerefMut};

use smallvec::SmallVec;

/// A list of a few items, without an allocation up to two.
///
/// Made from one item, an array or a `Vec` with `.into()`, or collected; dereferences to a slice.
#[derive(Clone)]
pub struct List<T>(SmallVec<[T; 2]>);

impl<T> List<T> {
    /// An empty list.
    pub fn new() -> Self {
        Self(SmallVec::new())
    }

    /// Appends an item.
    pub fn push(&mut self, item: T) {
        self.0.push(item);
    }

    /// Takes the last item off.
    pub fn pop(&mut self) -> Option<T> {
        self.0.pop()
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for List<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<T> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = smallvec::IntoIter<[T; 2]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T> From<T> for List<T> {
    fn from(item: T) -> Self {
        let mut list = SmallVec::new();
        list.push(item);
        Self(list)
    }
}

impl<T, const N: usize> From<[T; N]> for List<T> {
    fn from(items: [T; N]) -> Self {
        items.into_iter().collect()
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> Self {
        Self(SmallVec::from_vec(items))
    }
}
