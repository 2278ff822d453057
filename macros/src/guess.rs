//! Finds the word that a misspelt one was meant to be. It knows no vocabulary of its own.

/// The one candidate that is close enough to `word`, if there is exactly one.
pub(crate) fn closest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = if word.chars().count() < 6 { 1 } else { 2 };
    let mut best = None;
    let mut best_distance = limit + 1;
    for candidate in candidates {
        let distance = distance(word, candidate);
        if distance < best_distance {
            (best, best_distance) = (Some(candidate), distance);
        } else if distance == best_distance {
            // Two words are as near: choosing either would send half of the readers the wrong way.
            best = None;
        }
    }
    best
}

/// Insertions, deletions, substitutions and swaps of neighbours that turn `from` into `to`.
fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let mut cost = (last[j] + usize::from(a != b)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                cost = cost.min(before_last[j - 1] + 1);
            }
            row.push(cost);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::{closest, distance};

    #[test]
    fn a_swap_of_neighbours_is_one_step() {
        assert_eq!(distance("f61", "f16"), 1);
        assert_eq!(distance("", "f16"), 3);
        assert_eq!(distance("grda", "grad"), 1);
    }

    #[test]
    fn two_equally_near_words_are_no_guess() {
        assert_eq!(closest("f6", ["f16", "f64"].into_iter()), None);
        assert_eq!(closest("bf6", ["f16", "bf16"].into_iter()), Some("bf16"));
        assert_eq!(closest("velocity", ["f16", "bf16"].into_iter()), None);
    }
}
