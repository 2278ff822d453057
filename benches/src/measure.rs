//! Contenders that take turns, and what is made of the numbers: medians, and quartiles of ratios.
//!
//! A machine's speed drifts. So every contender of a group has one turn in each round, in an order that moves on by one, and a
//! ratio is formed within a round: what slowed the one slowed the other. It knows nothing of what is measured.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::Outcome;

/// A turn goes on until this much time has passed, so that the clock and a timer's tick do not matter.
const TURN: Duration = Duration::from_millis(20);

/// A turn has at least so many samples, unless they take longer than [`LONG`]: the first may pay for what others left behind.
const SAMPLES: usize = 3;

/// From here on a sample is long, and is not repeated.
const LONG: Duration = Duration::from_millis(500);

/// Where in the table a contender is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// What the others are compared with: the first contender of each group.
    Ours,
    /// Something to hold it against: a hand-written tape, a copy of the same bytes. Has a name of its own.
    Baseline(String),
    /// The Rust library candle.
    Candle,
    /// The Rust library burn.
    Burn,
    /// PyTorch, by its Python interface.
    PyTorch,
}

/// A turn: one number for each metric of the group.
type Turn = Box<dyn FnMut() -> Outcome<Vec<f64>>>;

/// One who takes part.
pub struct Contender {
    /// Where it is shown.
    pub column: Column,
    turn: Turn,
}

impl std::fmt::Debug for Contender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Contender").field(&self.column).finish()
    }
}

impl Contender {
    /// One whose turn is `turn`, as it is.
    pub fn new(column: Column, turn: impl FnMut() -> Outcome<Vec<f64>> + 'static) -> Self {
        Self { column, turn: Box::new(turn) }
    }

    /// One whose turn repeats `sample` for a while and takes the medians.
    pub fn repeating(column: Column, mut sample: impl FnMut() -> Outcome<Vec<f64>> + 'static) -> Self {
        Self::new(column, move || repeat(&mut sample))
    }

    /// One whose turn calls `work` for a while and takes the median of a call's seconds, times `scale`.
    pub fn calling<T>(column: Column, scale: f64, mut work: impl FnMut() -> Outcome<T> + 'static) -> Self {
        Self::repeating(column, move || {
            let (value, seconds) = timed(&mut work)?;
            drop(black_box(value));
            Ok(vec![seconds * scale])
        })
    }

    /// One that takes no part, and why.
    pub fn absent(column: Column, reason: &str) -> Self {
        let reason = reason.to_owned();
        Self::new(column, move || Err(reason.clone().into()))
    }
}

/// Samples for the time of a turn; the median of each metric, since a sample may have been interrupted.
fn repeat(sample: &mut impl FnMut() -> Outcome<Vec<f64>>) -> Outcome<Vec<f64>> {
    let start = Instant::now();
    let mut samples = vec![sample()?];
    while start.elapsed() < TURN || (samples.len() < SAMPLES && start.elapsed() < LONG) {
        samples.push(sample()?);
    }
    let of_metric = |metric: usize| {
        let values: Vec<f64> = samples.iter().filter_map(|sample| sample.get(metric).copied()).collect();
        Quartiles::of(&values).map_or(f64::NAN, Quartiles::median)
    };
    Ok((0..samples[0].len()).map(of_metric).collect())
}

/// What `work` returns, and how many seconds it took.
///
/// # Errors
/// Those of `work`.
pub fn timed<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(T, f64)> {
    let start = Instant::now();
    let value = work()?;
    Ok((value, start.elapsed().as_secs_f64()))
}

/// One thing that is measured.
#[derive(Debug)]
pub struct Group {
    /// What is done, for the table.
    pub what: String,
    /// What of it is measured; each is a row.
    pub metrics: Vec<&'static str>,
    /// The unit of all metrics.
    pub unit: &'static str,
    /// No more rounds than these, where a turn takes long.
    pub rounds_at_most: usize,
    /// Who takes part, ours first.
    pub contenders: Vec<Contender>,
}

impl Group {
    /// A group with one metric.
    pub fn new(what: impl Into<String>, unit: &'static str, contenders: Vec<Contender>) -> Self {
        Self { what: what.into(), metrics: vec![""], unit, rounds_at_most: usize::MAX, contenders }
    }

    /// The group with these metrics: each turn gives one number for each.
    #[must_use]
    pub fn metrics(self, metrics: &[&'static str]) -> Self {
        Self { metrics: metrics.to_vec(), ..self }
    }

    /// The group with no more rounds than these.
    #[must_use]
    pub fn at_most(self, rounds: usize) -> Self {
        Self { rounds_at_most: rounds, ..self }
    }

    /// Lets everyone take a turn in each round, after a turn each that is not counted.
    pub fn measure(mut self, rounds: usize) -> Measured {
        let rounds = rounds.min(self.rounds_at_most).max(1);
        let mut results = vec![Ok(Vec::with_capacity(rounds)); self.contenders.len()];
        let warm_up = usize::from(self.rounds_at_most > 1);
        for round in 0..rounds + warm_up {
            for position in 0..results.len() {
                let turn = (position + round) % results.len();
                let Ok(samples) = &mut results[turn] else { continue };
                match (self.contenders[turn].turn)() {
                    Ok(sample) if round >= warm_up => samples.push(sample),
                    Ok(_) => {}
                    Err(error) => results[turn] = Err(error.to_string()),
                }
            }
        }
        let columns = self.contenders.into_iter().map(|contender| contender.column);
        let results = columns.zip(results).map(|(column, samples)| Series { column, samples }).collect();
        Measured { what: self.what, metrics: self.metrics, unit: self.unit, results }
    }
}

/// What one contender was measured to need, or why it was not.
#[derive(Clone, Debug)]
pub struct Series {
    /// Whose it is.
    pub column: Column,
    /// For each round one number for each metric.
    pub samples: Result<Vec<Vec<f64>>, String>,
}

impl Series {
    /// The numbers of one metric, a number for each round.
    ///
    /// # Errors
    /// Why there are none.
    pub fn metric(&self, metric: usize) -> Result<Vec<f64>, String> {
        let samples = self.samples.as_ref().map_err(String::clone)?;
        let of_metric = |sample: &Vec<f64>| sample.get(metric).copied().filter(|value| value.is_finite());
        samples.iter().map(|sample| of_metric(sample).ok_or_else(|| "–".to_owned())).collect()
    }
}

/// A group when it is over.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What was done.
    pub what: String,
    /// What of it was measured.
    pub metrics: Vec<&'static str>,
    /// The unit of all metrics.
    pub unit: &'static str,
    /// Ours first.
    pub results: Vec<Series>,
}

/// The quartiles of some numbers; the second is the median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quartiles(pub [f64; 3]);

impl Quartiles {
    /// Of `values`, by linear interpolation; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |quarter: f64| {
            let place = quarter / 4.0 * (sorted.len().checked_sub(1)?) as f64;
            let (low, high) = (sorted.get(place.floor() as usize)?, sorted.get(place.ceil() as usize)?);
            Some(low + (high - low) * place.fract())
        };
        Some(Self([at(1.0)?, at(2.0)?, at(3.0)?]))
    }

    /// Of `ours / theirs`, round by round.
    pub fn of_ratios(ours: &[f64], theirs: &[f64]) -> Option<Self> {
        let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        Self::of(&ratios)
    }

    /// The number in the middle.
    pub fn median(self) -> f64 {
        self.0[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_the_numbers() {
        assert_eq!(Quartiles::of(&[4.0, 1.0, 3.0, 2.0, 5.0]), Some(Quartiles([2.0, 3.0, 4.0])));
        assert_eq!(Quartiles::of(&[1.0, 2.0]), Some(Quartiles([1.25, 1.5, 1.75])));
        assert_eq!(Quartiles::of(&[7.0]), Some(Quartiles([7.0; 3])));
        assert_eq!(Quartiles::of(&[]), None);
    }

    #[test]
    fn a_ratio_is_formed_within_a_round() {
        // The machine was ten times slower in the second round, for both.
        let ratios = Quartiles::of_ratios(&[1.0, 10.0], &[2.0, 20.0]);
        assert_eq!(ratios, Some(Quartiles([0.5; 3])));
    }

    #[test]
    fn one_who_fails_does_not_stop_the_others() {
        let ours = Contender::new(Column::Ours, || Ok(vec![3.0]));
        let absent = Contender::absent(Column::PyTorch, "not measured");
        let measured = Group::new("nothing", "ns", vec![ours, absent]).measure(4);
        assert_eq!(measured.results[0].metric(0), Ok(vec![3.0; 4]));
        assert_eq!(measured.results[1].metric(0), Err("not measured".to_owned()));
    }
}
