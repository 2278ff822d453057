//! The keys of the attribute. A new one is a variant here, a slot in `parse::Arguments`, a check, and what it expands to.

use crate::guess;

/// What stands before an `=` in the attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// The dtype in which each output is stored.
    Out,
    /// The dtype in which each output's gradient arrives.
    Grad,
    /// What a gradient of another dtype gets.
    Policy,
    /// Whether backward is given zeros for unused outputs.
    Materialize,
    /// Backward is not differentiable itself. A flag.
    Once,
    /// That there is no backward.
    Backward,
    /// The path of the runtime, where it is not `::gradpact`.
    Crate,
}

impl Key {
    /// In the order in which messages list them.
    const ALL: [Self; 7] =
        [Self::Out, Self::Grad, Self::Policy, Self::Materialize, Self::Once, Self::Backward, Self::Crate];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Out => "out",
            Self::Grad => "grad",
            Self::Policy => "policy",
            Self::Materialize => "materialize",
            Self::Once => "once",
            Self::Backward => "backward",
            Self::Crate => "crate",
        }
    }

    /// How the key is used, for messages.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Self::Out => "out = f16",
            Self::Grad => "grad = f32",
            Self::Policy => "policy = strict",
            Self::Materialize => "materialize = false",
            Self::Once => "once",
            Self::Backward => "backward = none",
            Self::Crate => "crate = facade::gradpact",
        }
    }

    /// Whether it stands alone, without a value.
    pub(crate) fn is_flag(self) -> bool {
        self == Self::Once
    }

    /// Words that mean this key and are too far from it for a guess by spelling.
    fn meant_by(self) -> &'static [&'static str] {
        match self {
            Self::Out => {
                &["output", "outputs", "output_dtype", "out_dtype", "dtype", "storage", "store", "forward"]
            }
            Self::Grad => {
                &["gradient", "gradients", "grad_dtype", "gradient_dtype", "output_grad_dtype", "grad_output"]
            }
            Self::Policy => &["cast_policy", "grad_policy", "mode", "conversion"],
            Self::Materialize => &["materialize_grads", "set_materialize_grads", "materialise", "zeros"],
            Self::Once => &["once_differentiable", "differentiable_once", "mark_once_differentiable"],
            Self::Backward => &["differentiable", "derivative", "vjp"],
            Self::Crate => &["krate", "path", "runtime", "gradpact"],
        }
    }

    /// The key that a word names.
    pub(crate) fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == word)
    }

    /// The key that a word most likely means.
    pub(crate) fn guessed(word: &str) -> Option<Self> {
        let word = word.trim_start_matches("r#").to_ascii_lowercase();
        let meant = Self::ALL.into_iter().find(|key| key.meant_by().contains(&word.as_str()));
        meant.or_else(|| guess::closest(&word, Self::ALL.into_iter().map(Self::name)).and_then(Self::named))
    }

    /// All keys, for a message.
    pub(crate) fn listed() -> String {
        Self::ALL.map(|key| format!("`{}`", key.name())).join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn every_key_is_shown_in_use() {
        for key in Key::ALL {
            let value = key.example().strip_prefix(key.name());
            assert!(value.is_some_and(|value| if key.is_flag() {
                value.is_empty()
            } else {
                value.starts_with(" = ")
            }));
        }
    }

    #[test]
    fn near_misses_are_seen_through() {
        assert_eq!(Key::guessed("output"), Some(Key::Out));
        assert_eq!(Key::guessed("Grads"), Some(Key::Grad));
        assert_eq!(Key::guessed("r#out"), Some(Key::Out));
        assert_eq!(Key::guessed("polcy"), Some(Key::Policy));
        assert_eq!(Key::guessed("materialise"), Some(Key::Materialize));
        assert_eq!(Key::guessed("once_differentiable"), Some(Key::Once));
        assert_eq!(Key::guessed("momentum"), None);
    }
}
