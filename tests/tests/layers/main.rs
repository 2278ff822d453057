//! No module of the runtime knows of a higher layer.
//!
//! Reads the sources, not the compiled crate: every path that starts at `crate` or `super`, outside `#[cfg(test)]`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod source;

use std::collections::BTreeMap;
use std::path::Path;

use source::{Reference, files, read, reexports};

/// The layers, lowest first, by the name of the module under `runtime/src`.
const LAYERS: [&[&str]; 7] = [
    &["error", "dtype", "shape", "list"],
    &["contract", "observe"],
    &["engine"],
    &["autograd"],
    &["function", "typed", "ops", "audit"],
    &["cpu", "optim", "testing"],
    &["__private", "prelude", "lib"],
];

/// Upward references that are there on purpose: file, module named, the condition they stand under, and why.
const EXCEPTIONS: [(&str, &str, &str, &str); 1] = [(
    "engine.rs",
    "cpu",
    "feature = \"cpu\"",
    "the marker `Cpu` is every type's default engine, so layer 2 must say which array it stands for",
)];

fn layer(module: &str) -> usize {
    let found = LAYERS.iter().position(|layer| layer.contains(&module));
    found.unwrap_or_else(|| panic!("`{module}` is in no layer: add it to the table, as low as it can be"))
}

fn runtime() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../runtime/src"))
}

/// What each file refers to, with the names that `lib.rs` re-exports resolved to the modules they come from.
fn references() -> BTreeMap<String, Vec<Reference>> {
    let root = reexports(&read(&runtime().join("lib.rs")));
    let mut references = BTreeMap::new();
    for file in files(runtime()) {
        let mut found = source::references(&file, &read(&runtime().join(&file)));
        for reference in &mut found {
            if let Some(module) = root.get(&reference.target) {
                reference.target.clone_from(module);
            }
        }
        // The attribute is another crate, below all of these.
        found.retain(|reference| reference.target != "gradpact_macros");
        references.insert(file, found);
    }
    references
}

#[test]
fn no_module_of_the_runtime_names_a_module_of_a_higher_layer() {
    let mut upward = Vec::new();
    for (file, references) in references() {
        let own = layer(&source::module_of(&file));
        for Reference { target, condition } in references {
            let allowed = EXCEPTIONS.iter().any(|&(from, to, under, _)| {
                from == file && to == target && condition.as_deref() == Some(under)
            });
            if layer(&target) > own && !allowed {
                upward.push(format!("{file} (layer {own}) names `{target}` (layer {})", layer(&target)));
            }
        }
    }
    assert!(upward.is_empty(), "lower layers know nothing of higher ones:\n{}", upward.join("\n"));
}

#[test]
fn every_exception_is_still_needed() {
    let references = references();
    for (file, target, under, reason) in EXCEPTIONS {
        let used =
            references[file].iter().filter(|r| r.target == target && r.condition.as_deref() == Some(under));
        assert_eq!(used.count(), 1, "{file} names `{target}` under `{under}` once: {reason}");
    }
}

#[test]
fn the_reader_sees_paths_in_groups_macros_attributes_and_nested_modules_but_not_in_tests() {
    let text = r#"
        //! Doc comments such as [`crate::doc`] are no imports.
        use crate::{first::A, second::{B, C}};
        use super::super::{third as other, inner::D};
        #[cfg(feature = "x")]
        fn f() -> crate::fourth::E { let text = "crate::text"; g!(crate::fifth::F) }
        macro_rules! m { () => { $crate::sixth::G } }
        mod nested { use super::neighbour::H; use super::super::super::seventh::I; }
        #[cfg(test)]
        mod tests { use crate::tested::J; }
        #[cfg(test)]
        use crate::tested::K;
        fn last(_: gradpact::eighth::L) {}
        pub(crate) fn visible() {}
    "#;
    let found: Vec<_> =
        source::references("a/b.rs", text).into_iter().map(|r| (r.target, r.condition)).collect();
    let plain = |name: &str| (name.to_owned(), None);
    assert_eq!(
        found,
        [
            plain("first"),
            plain("second"),
            plain("third"),
            plain("inner"),
            ("fourth".to_owned(), Some("feature = \"x\"".to_owned())),
            ("fifth".to_owned(), Some("feature = \"x\"".to_owned())),
            plain("sixth"),
            plain("a"),
            plain("seventh"),
            plain("eighth"),
        ]
    );
}
