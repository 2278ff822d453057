//! The keys of the attribute. To add one: a row here, a slot in `parse::Arguments`, a check, and what it expands to.

use crate::guess;

/// What stands before an `=` in the attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// The dtype in which each output is stored.
    Out,
    /// The dtype in which each output's gradient arrives.
    Grad,
    /// The path of the runtime, where it is not `::gradpact`.
    Crate,
}

struct Row {
    key: Key,
    name: &'static str,
    /// How the key is used, for messages.
    example: &'static str,
    /// Words that mean this key and are too far from it for a guess by spelling.
    meant_by: &'static [&'static str],
}

/// In the order in which messages list them.
const KEYS: [Row; 3] = [
    Row {
        key: Key::Out,
        name: "out",
        example: "out = f16",
        meant_by: &["output", "outputs", "output_dtype", "out_dtype", "dtype", "storage", "store", "forward"],
    },
    Row {
        key: Key::Grad,
        name: "grad",
        example: "grad = f32",
        meant_by: &[
            "gradient",
            "gradients",
            "grad_dtype",
            "output_grad_dtype",
            "grad_output",
            "gradient_dtype",
        ],
    },
    Row {
        key: Key::Crate,
        name: "crate",
        example: "crate = facade::gradpact",
        meant_by: &["krate", "path", "runtime", "gradpact"],
    },
];

impl Key {
    /// The key that a word names.
    pub(crate) fn named(word: &str) -> Option<Self> {
        KEYS.iter().find(|row| row.name == word).map(|row| row.key)
    }

    /// The key that a word most likely means.
    pub(crate) fn guessed(word: &str) -> Option<Self> {
        let word = word.trim_start_matches("r#").to_ascii_lowercase();
        if let Some(row) = KEYS.iter().find(|row| row.meant_by.contains(&word.as_str())) {
            return Some(row.key);
        }
        guess::closest(&word, KEYS.iter().map(|row| row.name)).and_then(Self::named)
    }

    pub(crate) fn name(self) -> &'static str {
        self.row().name
    }

    /// How the key is used.
    pub(crate) fn example(self) -> &'static str {
        self.row().example
    }

    /// All keys, for a message.
    pub(crate) fn listed() -> String {
        KEYS.iter().map(|row| format!("`{}`", row.name)).collect::<Vec<_>>().join(", ")
    }

    fn row(self) -> &'static Row {
        match self {
            Self::Out => &KEYS[0],
            Self::Grad => &KEYS[1],
            Self::Crate => &KEYS[2],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KEYS, Key};

    #[test]
    fn the_table_is_in_the_order_of_its_keys() {
        for row in &KEYS {
            assert_eq!(row.key.name(), row.name);
            assert!(row.example.starts_with(row.name));
        }
    }

    #[test]
    fn near_misses_are_seen_through() {
        assert_eq!(Key::guessed("output"), Some(Key::Out));
        assert_eq!(Key::guessed("Grads"), Some(Key::Grad));
        assert_eq!(Key::guessed("r#out"), Some(Key::Out));
        assert_eq!(Key::guessed("momentum"), None);
    }
}
