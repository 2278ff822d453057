//! Reads `key = value` pairs and flags. One that cannot be read is reported and passed over; the others are still read.

use proc_macro2::{Ident, TokenStream, TokenTree};

use super::tokens::{flat, is_punct, split_at_commas, starts_with_equals, text};
use crate::dtype::Dtype;
use crate::errors::Errors;
use crate::key::Key;

/// What was written for each key.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) out: Slot,
    pub(crate) grad: Slot,
    pub(crate) policy: Slot,
    pub(crate) materialize: Slot,
    pub(crate) once: Slot,
    pub(crate) backward: Slot,
    pub(crate) runtime: Slot,
    /// Whether nothing was written at all.
    pub(crate) empty: bool,
}

/// What was written for one key.
#[derive(Default)]
pub(crate) enum Slot {
    /// Nothing.
    #[default]
    Absent,
    /// Something unreadable, which has been reported.
    Broken,
    Given(Value),
}

/// The tokens after a key: at least one of them, and none after a flag.
pub(crate) struct Value {
    pub(crate) key: Ident,
    pub(crate) tokens: Vec<TokenTree>,
}

impl Arguments {
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let tokens = flat(tokens);
        let mut arguments = Self { empty: tokens.is_empty(), ..Self::default() };
        for entry in split_at_commas(tokens, errors) {
            arguments.entry(&entry, errors);
        }
        arguments
    }

    /// Reads one entry, or several that lack the comma between them.
    fn entry(&mut self, tokens: &[TokenTree], errors: &mut Errors) {
        if let Some(next) = next_key(tokens) {
            let (entry, rest) = tokens.split_at(next);
            // In `out = grad = f32` it is the value that is missing, and that is said of `out`.
            if !starts_with_equals(&entry[entry.len() - 1..]) {
                errors.at(&rest[0], format!("missing comma before `{}`", rest[0]));
            }
            self.entry(entry, errors);
            self.entry(rest, errors);
            return;
        }
        let [TokenTree::Ident(key), rest @ ..] = tokens else {
            return self.keyless(tokens, errors);
        };
        match rest {
            _ if Key::named(&key.to_string()).is_some_and(Key::is_flag) => self.flag(key, rest, errors),
            [] if Key::named(&key.to_string()).is_none() => self.keyless(tokens, errors),
            [] => self.valueless(key, errors),
            _ if starts_with_equals(rest) => self.assign(key, &rest[1..], errors),
            _ if is_path(rest) => self.keyless(tokens, errors),
            _ => self.unassigned(key, rest, errors),
        }
    }

    /// `key = value`, the one right form.
    fn assign(&mut self, key: &Ident, value: &[TokenTree], errors: &mut Errors) {
        let word = key.to_string();
        let known = Key::named(&word);
        let Some(meant) = known.or_else(|| Key::guessed(&word)) else {
            return errors.at(key, unknown_key(&word));
        };
        if known.is_none() {
            errors.at(key, unknown_key(&word));
        } else if value.is_empty() {
            return self.valueless(key, errors);
        }
        let slot = self.slot(meant);
        if meant.is_flag() {
            return slot.break_if_absent();
        }
        match slot {
            Slot::Given(_) if known.is_some() => {
                errors.at(key, duplicate(&word));
            }
            Slot::Given(_) => {}
            Slot::Absent | Slot::Broken if value.is_empty() => *slot = Slot::Broken,
            Slot::Absent | Slot::Broken => {
                *slot = Slot::Given(Value { key: key.clone(), tokens: value.to_vec() });
            }
        }
    }

    /// `once`, after which nothing may follow.
    fn flag(&mut self, key: &Ident, rest: &[TokenTree], errors: &mut Errors) {
        let Some(named) = Key::named(&key.to_string()) else { return };
        let slot = self.slot(named);
        if !rest.is_empty() {
            let is_off = rest.last().is_some_and(|last| last.to_string() == "false");
            let instead = if is_off { "leave it out" } else { "write it alone" };
            errors.at(
                rest.iter().cloned().collect::<TokenStream>(),
                format!("`{key}` is a flag, without a value: {instead}"),
            );
            slot.break_if_absent();
        } else if matches!(slot, Slot::Given(_)) {
            errors.at(key, duplicate(&key.to_string()));
        } else {
            *slot = Slot::Given(Value { key: key.clone(), tokens: Vec::new() });
        }
    }

    /// `out` or `out =`.
    fn valueless(&mut self, key: &Ident, errors: &mut Errors) {
        let Some(meant) = Key::named(&key.to_string()) else { return };
        errors.at(key, format!("`{key}` has no value: write `{}`", meant.example()));
        self.slot(meant).break_if_absent();
    }

    /// `f16`, `"f16"`, `half::f16` or `(f16, f32)` without a key.
    fn keyless(&mut self, tokens: &[TokenTree], errors: &mut Errors) {
        let blamed: TokenStream = tokens.iter().cloned().collect();
        let shown = text(tokens);
        let word = shown.trim_matches('"').rsplit([':', '.']).next().unwrap_or_default();
        let dtype = Dtype::guessed(word).map(|dtype| dtype.name.to_owned());
        if matches!(tokens, [TokenTree::Ident(_)]) && dtype.is_none() {
            if matches!(&*shown, "strict" | "cast") {
                return errors.at(blamed, format!("a value needs a key: write `policy = {shown}`"));
            }
            if let Some(meant) = Key::guessed(&shown) {
                self.slot(meant).break_if_absent();
            }
            return errors.at(blamed, unknown_key(&shown));
        }
        let key = match (&self.out, &self.grad) {
            (Slot::Absent, _) => Key::Out,
            (_, Slot::Absent) => Key::Grad,
            _ => return errors.at(blamed, format!("unexpected `{shown}`: the keys are {}", Key::listed())),
        };
        let is_tuple = matches!(tokens, [TokenTree::Group(_)]);
        let instead = dtype.or(is_tuple.then_some(shown)).unwrap_or_else(|| "…".to_owned());
        errors.at(blamed, format!("a value needs a key: write `{} = {instead}`", key.name()));
        self.slot(key).break_if_absent();
    }

    /// `out(f16)`, `out: f16`, `out == f16` or `out f16`.
    fn unassigned(&mut self, key: &Ident, rest: &[TokenTree], errors: &mut Errors) {
        let signs = rest.iter().take_while(|token| matches!(token, TokenTree::Punct(_))).count();
        let (sign, value) = rest.split_at(signs);
        let wrong = if sign.is_empty() { &rest[..1] } else { sign };
        let shown = match value {
            [TokenTree::Group(group)] if !has_comma(&group.stream()) => group.stream().to_string(),
            _ => text(value),
        };
        errors.at(
            wrong.iter().cloned().collect::<TokenStream>(),
            format!("expected `=` after `{key}`: write `{key} = {shown}`"),
        );
        if let Some(meant) = Key::named(&key.to_string()).or_else(|| Key::guessed(&key.to_string())) {
            let slot = self.slot(meant);
            if matches!(slot, Slot::Absent | Slot::Broken) && !value.is_empty() {
                *slot = Slot::Given(Value { key: key.clone(), tokens: value.to_vec() });
            }
        }
    }

    fn slot(&mut self, key: Key) -> &mut Slot {
        match key {
            Key::Out => &mut self.out,
            Key::Grad => &mut self.grad,
            Key::Policy => &mut self.policy,
            Key::Materialize => &mut self.materialize,
            Key::Once => &mut self.once,
            Key::Backward => &mut self.backward,
            Key::Crate => &mut self.runtime,
        }
    }
}

impl Slot {
    fn break_if_absent(&mut self) {
        if matches!(self, Self::Absent) {
            *self = Self::Broken;
        }
    }
}

fn duplicate(word: &str) -> String {
    format!("duplicate key `{word}`: keep one of the two")
}

fn unknown_key(word: &str) -> String {
    match Key::guessed(word) {
        Some(key) => format!("unknown key `{word}`: write `{}`", key.name()),
        None => format!("unknown key `{word}`: the keys are {}", Key::listed()),
    }
}

/// Where in an entry a second `key =` begins, or a flag stands behind a complete value.
fn next_key(tokens: &[TokenTree]) -> Option<usize> {
    let is_key = |token: &TokenTree| {
        let word = token.to_string();
        matches!(token, TokenTree::Ident(_)) && Dtype::named(&word).is_none() && Key::guessed(&word).is_some()
    };
    let is_flag = |i: usize| {
        let after_a_value = !matches!(tokens[i - 1], TokenTree::Punct(_));
        after_a_value && Key::named(&tokens[i].to_string()).is_some_and(Key::is_flag)
    };
    (1..tokens.len()).find(|&i| (is_key(&tokens[i]) && starts_with_equals(&tokens[i + 1..])) || is_flag(i))
}

/// Whether what follows a word makes it a path: `half::f16`, `torch.float16`.
fn is_path(rest: &[TokenTree]) -> bool {
    is_punct(rest.first(), '.') || (is_punct(rest.first(), ':') && is_punct(rest.get(1), ':'))
}

fn has_comma(tokens: &TokenStream) -> bool {
    tokens.clone().into_iter().any(|token| is_punct(Some(&token), ','))
}
