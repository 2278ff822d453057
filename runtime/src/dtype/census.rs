//! A count of values by what a conversion made of them.

use core::fmt;
use core::ops::AddAssign;

/// How many values of a tensor a conversion left alone, and what it made of the others. Each value is counted once.
///
/// What is in none of the classes was converted exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Census {
    /// All of them.
    pub values: u64,
    /// NaN before, and after.
    pub nan: u64,
    /// Infinite before.
    pub infinite: u64,
    /// Zero before, and after.
    pub zero: u64,
    /// Finite before; became infinite, or the largest number of a dtype without infinities.
    pub overflowed: u64,
    /// Not zero before; became zero.
    pub flushed: u64,
    /// Normal before; became subnormal, and so lost digits or is near to that.
    pub subnormal: u64,
    /// Became the nearest other number.
    pub rounded: u64,
}

impl Census {
    /// How many values are not what they were before, or are about to lose digits.
    pub fn changed(&self) -> u64 {
        self.overflowed + self.flushed + self.subnormal + self.rounded
    }

    /// How many values no later step can bring back: they overflowed or became zero.
    pub fn losses(&self) -> u64 {
        self.overflowed + self.flushed
    }

    /// Whether there is one of these.
    pub fn lost(&self) -> bool {
        self.losses() > 0
    }
}

impl AddAssign for Census {
    fn add_assign(&mut self, other: Self) {
        self.values += other.values;
        self.nan += other.nan;
        self.infinite += other.infinite;
        self.zero += other.zero;
        self.overflowed += other.overflowed;
        self.flushed += other.flushed;
        self.subnormal += other.subnormal;
        self.rounded += other.rounded;
    }
}

/// Like "3 of 8 became zero, 2 rounded"; "all 8 exact".
impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let classes = [
            (self.overflowed, "became infinite"),
            (self.flushed, "became zero"),
            (self.subnormal, "became subnormal"),
            (self.rounded, "rounded"),
            (self.nan, "NaN"),
            (self.infinite, "infinite before"),
        ];
        let mut found = classes.into_iter().filter(|(count, _)| *count > 0);
        let Some((count, class)) = found.next() else { return write!(f, "all {} exact", self.values) };
        write!(f, "{count} of {} {class}", self.values)?;
        found.try_for_each(|(count, class)| write!(f, ", {count} {class}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_census_tells_what_happened_worst_first_and_nothing_else() {
        let mut census = Census { values: 8, flushed: 3, ..Census::default() };
        assert_eq!(census.to_string(), "3 of 8 became zero");
        census += Census { values: 2, rounded: 1, overflowed: 1, ..Census::default() };
        assert_eq!(census.to_string(), "1 of 10 became infinite, 3 became zero, 1 rounded");
        assert_eq!(Census { values: 4, zero: 2, ..Census::default() }.to_string(), "all 4 exact");
    }
}
