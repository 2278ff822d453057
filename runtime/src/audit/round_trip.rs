//! Gradients that end in a wide dtype, yet passed through a narrower one on the way.
//!
//! A gradient is followed from row to row: what a node sends descends from everything that was delivered to it in the same
//! call. First and last dtype may agree, and information is gone all the same.

use core::fmt;
use std::collections::{HashMap, HashSet};

use super::Audit;
use super::row::{Conversion, Event, Happened, Row};
use crate::dtype::{Census, DType};
use crate::observe::NodeInfo;

/// A place where a gradient became narrower.
#[derive(Clone, Debug, PartialEq)]
pub struct Narrowing {
    /// In words: the edge, the backward or the sum.
    pub place: String,
    /// The wider dtype before.
    pub from: DType,
    /// The narrower one after.
    pub to: DType,
    /// Whether somebody declared the narrower dtype there.
    pub declared: bool,
    /// What became of the values, where that was counted.
    pub census: Option<Census>,
}

impl fmt::Display for Narrowing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {} {}", self.from, self.to, self.place)?;
        if self.declared {
            f.write_str(" (declared there)")?;
        }
        self.census.iter().try_for_each(|census| write!(f, ": {census}"))
    }
}

/// A gradient that was narrowed and then arrived in a wider dtype again.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundTrip {
    /// Where it was narrowed.
    pub narrowed: Narrowing,
    /// Where it arrived in a wider dtype: "output 0 of `F`", or "a leaf".
    pub arrived: String,
    /// The dtype it was delivered in there.
    pub dtype: DType,
}

impl fmt::Display for RoundTrip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { narrowed, arrived, dtype } = self;
        write!(f, "lossy round trip: {dtype} at {arrived}, but on the way {narrowed}")
    }
}

/// A node in a call.
type Key = (u64, u64);

/// The latest narrowing to each dtype, by its number among all.
type Inherited = HashMap<DType, usize>;

#[derive(Default)]
struct Search {
    narrowings: Vec<Narrowing>,
    /// What has happened to the gradients that a node received, or that its backward works on.
    inherited: HashMap<Key, Inherited>,
    /// The dtypes that a node's backward was given.
    delivered: HashMap<Key, Vec<DType>>,
    reported: HashSet<usize>,
    trips: Vec<RoundTrip>,
}

impl Audit {
    /// The gradients that passed through a narrower dtype than they arrived in, each narrowing once, with the place.
    ///
    /// Followed through built-in operations, sums, and Functions of the user's, where a conversion in a backward counts as
    /// well as one at an edge.
    pub fn lossy_round_trips(&self) -> Vec<RoundTrip> {
        let mut search = Search::default();
        for event in &self.events {
            match event {
                Event::Admission(row) => search.admission(row),
                Event::Conversion(conversion) if conversion.happened() == Happened::Narrowed => {
                    search.conversion(conversion);
                }
                Event::Conversion(_) => {}
            }
        }
        search.trips
    }
}

impl Search {
    fn narrowed(&mut self, narrowing: Narrowing) -> usize {
        self.narrowings.push(narrowing);
        self.narrowings.len() - 1
    }

    /// A narrowing inside a backward, or of a complete sum.
    fn conversion(&mut self, conversion: &Conversion) {
        let Some(key) = conversion.stage.in_backward() else { return };
        let &Conversion { from, to, census, .. } = conversion;
        let place = format!("in {}", conversion.place_text());
        let nth = self.narrowed(Narrowing { place, from, to, declared: false, census });
        self.inherited.entry(key).or_default().insert(to, nth);
    }

    fn admission(&mut self, row: &Row) {
        let Some(dtype) = row.delivered() else { return };
        let mut inherited = match &row.sender {
            Some((sender, _)) => self.sent_by(row, sender),
            None => Inherited::new(),
        };
        if row.happened() == Happened::Narrowed {
            let place = format!("at {}", row.receiver_text());
            let (from, declared, census) = (row.arrived, row.is_declared(), row.census());
            let nth = self.narrowed(Narrowing { place, from, to: dtype, declared, census });
            inherited.insert(dtype, nth);
        }
        for (&narrow, &nth) in &inherited {
            if !dtype.fits_in(narrow) && self.reported.insert(nth) {
                let narrowed = self.narrowings[nth].clone();
                self.trips.push(RoundTrip { narrowed, arrived: row.receiver_text(), dtype });
            }
        }
        let key = (row.call, row.receiver.sequence_nr);
        self.inherited.entry(key).or_default().extend(inherited);
        self.delivered.entry(key).or_default().push(dtype);
    }

    /// What has happened to a gradient that `sender` sends: before it, and in its backward.
    fn sent_by(&mut self, row: &Row, sender: &NodeInfo) -> Inherited {
        let key = (row.call, sender.sequence_nr);
        let inherited = self.inherited.entry(key).or_default();
        // A narrowing that no conversion shows: the backward computed its result in a narrower dtype.
        let given = self.delivered.get(&key).and_then(|dtypes| DType::widest(dtypes.iter().copied()));
        match given {
            Some(from) if Happened::between(from, row.arrived) == Happened::Narrowed => {
                if let Some(&nth) = inherited.get(&row.arrived)
                    && self.narrowings[nth].place.starts_with("in backward")
                {
                    return inherited.clone();
                }
                let place = format!("in the result of backward of `{}`", sender.function);
                let narrowing = Narrowing { place, from, to: row.arrived, declared: false, census: None };
                self.narrowings.push(narrowing);
                inherited.insert(row.arrived, self.narrowings.len() - 1);
                inherited.clone()
            }
            _ => inherited.clone(),
        }
    }
}
