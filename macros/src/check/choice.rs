//! Reads the value of a key that takes one of a few words.

use proc_macro2::{TokenStream, TokenTree};

use crate::errors::Errors;
use crate::guess;
use crate::key::Key;
use crate::parse::{Value, text};

/// A word that a key takes.
pub(super) struct Choice<T> {
    pub(super) word: &'static str,
    pub(super) meaning: T,
    /// What people write who mean it, in lower case.
    pub(super) synonyms: &'static [&'static str],
}

/// What the value means; nothing if it has been reported, with `advice` where it is not clear what is meant.
pub(super) fn choose<T: Copy>(
    key: Key,
    value: &Value,
    choices: &[Choice<T>],
    advice: &str,
    errors: &mut Errors,
) -> Option<T> {
    if let [TokenTree::Ident(word)] = &value.tokens[..]
        && let Some(choice) = choices.iter().find(|choice| word == choice.word)
    {
        return Some(choice.meaning);
    }
    let written = text(&value.tokens);
    let meant = guessed(&written, choices).map(|word| format!("write `{} = {word}`", key.name()));
    let instead = meant.as_deref().unwrap_or(advice);
    let blamed: TokenStream = value.tokens.iter().cloned().collect();
    errors.at(blamed, format!("`{}` cannot be `{written}`: {instead}", key.name()));
    None
}

/// The word that was most likely meant: in quotes, behind a path, in another case or spelling.
fn guessed<T>(written: &str, choices: &[Choice<T>]) -> Option<&'static str> {
    let word = written.trim_matches('"').rsplit([':', '.']).next()?.to_ascii_lowercase();
    let meant = choices.iter().find(|choice| choice.synonyms.contains(&word.as_str()));
    let words = choices.iter().map(|choice| choice.word);
    meant.map(|choice| choice.word).or_else(|| guess::closest(&word, words))
}

#[cfg(test)]
mod tests {
    use super::{Choice, guessed};

    #[test]
    fn quotes_paths_case_and_slips_are_seen_through() {
        let choices = [
            Choice { word: "cast", meaning: (), synonyms: &[] },
            Choice { word: "strict", meaning: (), synonyms: &["error"] },
        ];
        for written in ["\"strict\"", "Policy::Strict", "Strict", "strickt", "error"] {
            assert_eq!(guessed(written, &choices), Some("strict"), "{written}");
        }
        assert_eq!(guessed("loose", &choices), None);
    }
}
