//! Other shapes over the same elements.
