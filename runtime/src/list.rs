//! A short list: what Functions take and return.

use core::fmt;
use core::ops::{Deref, DerefMut};

/// A list of a few items, without an allocation up to two.
///
/// Made from one item, an array or a `Vec` with `.into()`, or collected; dereferences to a slice.
#[derive(Clone)]
pub struct List<T>(Items<T>);

/// One and two are what nearly every node has: told apart by the tag, they cost neither an allocation nor a loop.
#[derive(Clone)]
enum Items<T> {
    One(T),
    Two([T; 2]),
    /// Any number, none included.
    Many(Vec<T>),
}

impl<T> List<T> {
    /// An empty list.
    pub const fn new() -> Self {
        Self(Items::Many(Vec::new()))
    }

    /// Appends an item.
    #[inline]
    pub fn push(&mut self, item: T) {
        if self.is_empty() {
            self.0 = Items::One(item);
        } else {
            self.push_to_some(item);
        }
    }

    fn push_to_some(&mut self, item: T) {
        self.0 = match core::mem::replace(&mut self.0, Items::Many(Vec::new())) {
            Items::One(first) => Items::Two([first, item]),
            Items::Two([first, second]) => Items::Many(vec![first, second, item]),
            Items::Many(mut items) => {
                items.push(item);
                Items::Many(items)
            }
        };
    }

    /// Takes the last item off.
    pub fn pop(&mut self) -> Option<T> {
        let (rest, last) = match core::mem::replace(&mut self.0, Items::Many(Vec::new())) {
            Items::One(item) => (Items::Many(Vec::new()), Some(item)),
            Items::Two([first, second]) => (Items::One(first), Some(second)),
            Items::Many(mut items) => {
                let last = items.pop();
                (Items::Many(items), last)
            }
        };
        self.0 = rest;
        last
    }

    /// The only item.
    ///
    /// # Errors
    /// The list itself, if it has none or several.
    pub(crate) fn single(self) -> Result<T, Self> {
        match self.0 {
            Items::One(item) => Ok(item),
            Items::Many(mut items) if items.len() == 1 => match items.pop() {
                Some(item) => Ok(item),
                None => Err(Self::new()),
            },
            items => Err(Self(items)),
        }
    }

    /// What `map` makes of each item and its position, up to the first error.
    #[inline]
    pub(crate) fn try_map<U, E>(self, mut map: impl FnMut(usize, T) -> Result<U, E>) -> Result<List<U>, E> {
        Ok(List(match self.0 {
            Items::One(item) => Items::One(map(0, item)?),
            Items::Two([first, second]) => {
                let first = map(0, first)?;
                Items::Two([first, map(1, second)?])
            }
            Items::Many(items) => {
                let items = items.into_iter().enumerate().map(|(position, item)| map(position, item));
                Items::Many(items.collect::<Result<_, _>>()?)
            }
        }))
    }

    /// What `map` makes of each item of a slice and its position, up to the first error.
    #[inline]
    pub(crate) fn try_from_slice<'a, S, E>(
        items: &'a [S],
        mut map: impl FnMut(usize, &'a S) -> Result<T, E>,
    ) -> Result<Self, E> {
        Ok(Self(match items {
            [item] => Items::One(map(0, item)?),
            [first, second] => {
                let first = map(0, first)?;
                Items::Two([first, map(1, second)?])
            }
            _ => {
                let items = items.iter().enumerate().map(|(position, item)| map(position, item));
                Items::Many(items.collect::<Result<_, _>>()?)
            }
        }))
    }

    /// What `map` makes of each item of a slice and its position.
    #[inline]
    pub(crate) fn from_slice<'a, S>(items: &'a [S], mut map: impl FnMut(usize, &'a S) -> T) -> Self {
        let infallible = Self::try_from_slice(items, |position, item| {
            Ok::<_, core::convert::Infallible>(map(position, item))
        });
        match infallible {
            Ok(list) => list,
            Err(never) => match never {},
        }
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Items::One(item) => core::slice::from_ref(item),
            Items::Two(items) => items,
            Items::Many(items) => items,
        }
    }
}

impl<T> DerefMut for List<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Items::One(item) => core::slice::from_mut(item),
            Items::Two(items) => items,
            Items::Many(items) => items,
        }
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut items = items.into_iter();
        let (Some(first), second) = (items.next(), items.next()) else { return Self::new() };
        let Some(second) = second else { return Self(Items::One(first)) };
        match items.next() {
            None => Self(Items::Two([first, second])),
            Some(third) => {
                let mut all = Vec::with_capacity(3 + items.size_hint().0);
                all.extend([first, second, third]);
                all.extend(items);
                Self(Items::Many(all))
            }
        }
    }
}

/// The items of a [`List`], one after the other.
#[derive(Debug)]
pub struct IntoIter<T>(Rest<T>);

#[derive(Debug)]
enum Rest<T> {
    Few(core::array::IntoIter<Option<T>, 2>),
    Many(std::vec::IntoIter<T>),
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            Rest::Few(items) => items.next().flatten(),
            Rest::Many(items) => items.next(),
        }
    }
}

impl<T> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    #[inline]
    fn into_iter(self) -> IntoIter<T> {
        IntoIter(match self.0 {
            Items::One(item) => Rest::Few([Some(item), None].into_iter()),
            Items::Two([first, second]) => Rest::Few([Some(first), Some(second)].into_iter()),
            Items::Many(items) => Rest::Many(items.into_iter()),
        })
    }
}

impl<T> From<T> for List<T> {
    #[inline]
    fn from(item: T) -> Self {
        Self(Items::One(item))
    }
}

impl<T, const N: usize> From<[T; N]> for List<T> {
    fn from(items: [T; N]) -> Self {
        items.into_iter().collect()
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> Self {
        Self(Items::Many(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_grows_shrinks_and_is_read_like_a_vec_whatever_its_length() {
        for length in 0..6 {
            let expected: Vec<usize> = (0..length).collect();
            let collected: List<usize> = expected.iter().copied().collect();
            let mut pushed = List::new();
            expected.iter().for_each(|&item| pushed.push(item));
            let from_vec = List::from(expected.clone());
            for list in [collected, pushed, from_vec] {
                assert_eq!(list[..], expected[..]);
                assert_eq!(list.clone().into_iter().collect::<Vec<_>>(), expected);
                let until_three = list.clone().try_map(|_, item| if item < 3 { Ok(item) } else { Err(item) });
                assert_eq!(until_three.map(|list| list.len()), if length > 3 { Err(3) } else { Ok(length) });
                assert_eq!(List::from_slice(&list, |_, &item| item)[..], expected[..]);
                assert_eq!(list.clone().single().ok(), (length == 1).then_some(0));
                let mut list = list;
                for last in (0..length).rev() {
                    assert_eq!((list.pop(), list.len()), (Some(last), last));
                }
                assert_eq!(list.pop(), None);
            }
        }
    }
}
