//! What a gradient of another dtype than the declared one gets.

/// What a gradient of another dtype than expected gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Policy {
    /// Converted to the expected dtype: rounded once, to nearest even.
    #[default]
    Cast,
    /// Refused, before any user code sees it.
    Strict,
}
