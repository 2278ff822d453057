//! The dtype words of the attribute: a closed vocabulary, never resolved as paths where the attribute is written.

use crate::guess;

/// A dtype that a tensor can be stored in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dtype {
    /// The word, which is also the name of the type in the runtime.
    pub(crate) name: &'static str,
    /// Its variant in the runtime's `DType`.
    pub(crate) variant: &'static str,
    /// Whether a gradient can have it.
    pub(crate) floating: bool,
}

/// In the order in which messages list them.
const DTYPES: [Dtype; 12] = [
    Dtype { name: "f16", variant: "F16", floating: true },
    Dtype { name: "bf16", variant: "BF16", floating: true },
    Dtype { name: "f32", variant: "F32", floating: true },
    Dtype { name: "f64", variant: "F64", floating: true },
    Dtype { name: "f8e4m3", variant: "F8E4M3", floating: true },
    Dtype { name: "f8e5m2", variant: "F8E5M2", floating: true },
    Dtype { name: "i8", variant: "I8", floating: false },
    Dtype { name: "i16", variant: "I16", floating: false },
    Dtype { name: "i32", variant: "I32", floating: false },
    Dtype { name: "i64", variant: "I64", floating: false },
    Dtype { name: "u8", variant: "U8", floating: false },
    Dtype { name: "bool", variant: "Bool", floating: false },
];

/// What other libraries call the same dtypes, in lower case.
const FOREIGN: [(&str, &str); 31] = [
    ("fp16", "f16"),
    ("float16", "f16"),
    ("half", "f16"),
    ("bfloat16", "bf16"),
    ("bfloat", "bf16"),
    ("bfp16", "bf16"),
    ("fp32", "f32"),
    ("float32", "f32"),
    ("float", "f32"),
    ("single", "f32"),
    ("fp64", "f64"),
    ("float64", "f64"),
    ("double", "f64"),
    ("e4m3", "f8e4m3"),
    ("e4m3fn", "f8e4m3"),
    ("f8e4m3fn", "f8e4m3"),
    ("fp8_e4m3", "f8e4m3"),
    ("float8_e4m3", "f8e4m3"),
    ("float8_e4m3fn", "f8e4m3"),
    ("e5m2", "f8e5m2"),
    ("fp8_e5m2", "f8e5m2"),
    ("float8_e5m2", "f8e5m2"),
    ("int8", "i8"),
    ("int16", "i16"),
    ("short", "i16"),
    ("int32", "i32"),
    ("int", "i32"),
    ("int64", "i64"),
    ("long", "i64"),
    ("uint8", "u8"),
    ("boolean", "bool"),
];

/// Dtypes that exist elsewhere and not here: to call them misspellings of a near one would mislead.
const ABSENT: [&str; 11] = ["f8", "f128", "tf32", "i4", "u4", "i128", "u16", "u32", "u64", "u128", "usize"];

impl Dtype {
    /// The dtype that a word names.
    pub(crate) fn named(word: &str) -> Option<&'static Self> {
        DTYPES.iter().find(|dtype| dtype.name == word)
    }

    /// The dtype that a word most likely means.
    pub(crate) fn guessed(word: &str) -> Option<&'static Self> {
        let word = word.to_ascii_lowercase();
        if let Some((_, name)) = FOREIGN.iter().find(|(foreign, _)| *foreign == word) {
            return Self::named(name);
        }
        if ABSENT.contains(&word.as_str()) {
            return None;
        }
        guess::closest(&word, DTYPES.iter().map(|dtype| dtype.name)).and_then(Self::named)
    }

    /// All words, for a message.
    pub(crate) fn listed() -> String {
        listed(DTYPES.iter())
    }

    /// The words that a gradient can have, for a message.
    pub(crate) fn floating_listed() -> String {
        listed(DTYPES.iter().filter(|dtype| dtype.floating))
    }
}

fn listed(dtypes: impl Iterator<Item = &'static Dtype>) -> String {
    dtypes.map(|dtype| format!("`{}`", dtype.name)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{ABSENT, DTYPES, Dtype, FOREIGN};

    fn guess(word: &str) -> Option<&'static str> {
        Dtype::guessed(word).map(|dtype| dtype.name)
    }

    #[test]
    fn every_word_names_its_own_dtype() {
        for dtype in &DTYPES {
            assert_eq!(Dtype::named(dtype.name), Some(dtype));
            assert_eq!(dtype.variant.to_lowercase(), dtype.name);
        }
    }

    #[test]
    fn foreign_words_mean_ours_and_absent_ones_nothing() {
        for (foreign, name) in FOREIGN {
            assert_eq!(guess(foreign), Some(name));
        }
        for absent in ABSENT {
            assert_eq!(guess(absent), None);
        }
    }

    #[test]
    fn spelling_and_case_are_seen_through() {
        assert_eq!(guess("F32"), Some("f32"));
        assert_eq!(guess("Half"), Some("f16"));
        assert_eq!(guess("flaot32"), None);
        assert_eq!(guess("bf61"), Some("bf16"));
        assert_eq!(guess("f8e4m2"), None);
        assert_eq!(guess("boool"), Some("bool"));
        assert_eq!(guess("Weight"), None);
    }
}
