//! The rules for `backward`, `policy`, `materialize` and `once`: what each may be, and beside what it makes sense.

use proc_macro2::Span;

use super::choice::{Choice, choose};
use crate::errors::Errors;
use crate::key::Key;
use crate::parse::{Arguments, Slot, Value};
use crate::spec::{Output, Policy, Terms};

const POLICIES: [Choice<Policy>; 2] = [
    Choice { word: "cast", meaning: Policy::Cast, synonyms: &["convert", "round"] },
    Choice { word: "strict", meaning: Policy::Strict, synonyms: &["error", "refuse", "exact"] },
];

const MATERIALIZE: [Choice<bool>; 2] = [
    Choice { word: "true", meaning: true, synonyms: &["1", "yes", "on", "zeros"] },
    Choice { word: "false", meaning: false, synonyms: &["0", "no", "off", "none"] },
];

const BACKWARD: [Choice<()>; 1] =
    [Choice { word: "none", meaning: (), synonyms: &["no", "false", "off", "0", "never", "nil", "absent"] }];

/// Where it says `backward = none`, if it does.
pub(super) fn none(slot: &Slot, errors: &mut Errors) -> Option<Span> {
    let Slot::Given(value) = slot else { return None };
    let advice = "its one value is `none`, for a Function without a derivative; else remove the key, and write \
                  `backward` in `impl Op`";
    choose(Key::Backward, value, &BACKWARD, advice, errors)?;
    Some(span(value))
}

/// Refuses every key that is about backward where there is none.
pub(super) fn refuse_beside_none(arguments: &Arguments, errors: &mut Errors) {
    for slot in [&arguments.grad, &arguments.policy, &arguments.materialize, &arguments.once] {
        if let Slot::Given(value) = slot {
            let key = &value.key;
            errors.at(key, format!("there is no gradient with `backward = none`: remove `{key}`"));
        }
    }
}

/// What is said of backward, and where, to be measured by the outputs.
#[derive(Default)]
pub(super) struct Said {
    policy: Option<(Policy, Span)>,
    materialize: Option<(bool, Span)>,
    once: Option<Span>,
}

impl Said {
    pub(super) fn check(arguments: &Arguments, errors: &mut Errors) -> Self {
        let mut said = Self::default();
        if let Slot::Given(value) = &arguments.policy {
            let policy = choose(Key::Policy, value, &POLICIES, "write `cast` or `strict`", errors);
            said.policy = policy.map(|policy| (policy, span(value)));
        }
        if let Slot::Given(value) = &arguments.materialize {
            let word = choose(Key::Materialize, value, &MATERIALIZE, "write `true` or `false`", errors);
            said.materialize = word.map(|word| (word, span(value)));
        }
        if let Slot::Given(value) = &arguments.once {
            said.once = Some(value.key.span());
        }
        said
    }

    /// Refuses what would have no effect on any of these outputs.
    pub(super) fn check_against(&self, outputs: &[Output], errors: &mut Errors) {
        let differentiable = outputs.iter().any(Output::has_gradient);
        match self.policy {
            Some((Policy::Strict, span)) if !differentiable => {
                errors.on(span, "no output has a gradient to be strict about: remove `policy = strict`");
            }
            Some((Policy::Strict, span)) if !outputs.iter().any(Output::has_gradient_dtype) => {
                let instead = "declare a dtype in `grad`, or remove `policy = strict`";
                errors.on(span, format!("`any` takes every gradient as it comes: {instead}"));
            }
            _ => {}
        }
        if let Some((false, span)) = self.materialize
            && !differentiable
        {
            errors.on(span, "no output has a gradient that could be missing: remove `materialize = false`");
        }
        if let Some(span) = self.once.filter(|_| !differentiable) {
            errors
                .on(span, "no output has a gradient, so there is no derivative to take once: remove `once`");
        }
    }

    pub(super) fn into_terms(self, declared: bool) -> Terms {
        Terms {
            declared,
            policy: self.policy.map(|(policy, _)| policy),
            materialize: self.materialize.is_none_or(|(materialize, _)| materialize),
            once: self.once.is_some(),
        }
    }
}

fn span(value: &Value) -> Span {
    value.tokens.first().map_or_else(|| value.key.span(), proc_macro2::TokenTree::span)
}
