//! Asks the manifest of the crate being compiled whether it depends on the runtime.
//!
//! It looks at lines, not at TOML: whatever it cannot make sense of counts as a dependency, so that nobody is
//! ever told to add what is there.

use std::path::Path;

use proc_macro2::Ident;

/// How the crate being compiled depends on the runtime.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Dependency {
    /// As `gradpact`, or in some way that this module does not see through.
    Direct,
    /// Under this name.
    Renamed(Ident),
    /// Not at all.
    Missing,
}

/// Reads the manifest of the crate being compiled.
pub(super) fn dependency() -> Dependency {
    let Some(root) = std::env::var_os("CARGO_MANIFEST_DIR") else { return Dependency::Direct };
    let root = Path::new(&root);
    let Ok(manifest) = std::fs::read_to_string(root.join("Cargo.toml")) else { return Dependency::Direct };
    match in_manifest(&manifest) {
        Dependency::Missing if !has_plain_root(root) => Dependency::Direct,
        found => found,
    }
}

/// Whether the crate's root is where it usually is and names no other crate `gradpact`.
fn has_plain_root(root: &Path) -> bool {
    let sources = ["src/lib.rs", "src/main.rs"].map(|source| std::fs::read_to_string(root.join(source)));
    let mut sources = sources.into_iter().flatten().peekable();
    sources.peek().is_some() && !sources.any(|source| source.contains("as gradpact"))
}

fn in_manifest(manifest: &str) -> Dependency {
    let mut section = String::new();
    let mut found = Dependency::Missing;
    for line in manifest.lines() {
        let compact: String = line.split_whitespace().collect();
        if let Some(header) = compact.strip_prefix('[') {
            section = header.trim_end_matches(']').to_owned();
        }
        if let Some(name) = renamed(&section, &compact) {
            found = Dependency::Renamed(name);
        } else if mentions(line) {
            return Dependency::Direct;
        }
    }
    found
}

/// The name that a dependency on the package `gradpact` was given in this line.
fn renamed(section: &str, line: &str) -> Option<Ident> {
    let (before, _) = line.split_once("package=\"gradpact\"")?;
    let name = match before {
        "" => section.rsplit_once("dependencies.")?.1,
        _ if section.ends_with("dependencies") => before.split(['=', '.']).next()?,
        _ => return None,
    };
    if name == "gradpact" || section.starts_with("workspace") {
        return None;
    }
    syn::parse_str(&name.replace('-', "_")).ok()
}

/// Whether the word stands in this line, by itself.
fn mentions(line: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    line.match_indices("gradpact").any(|(start, word)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::{Dependency, in_manifest};

    #[test]
    fn every_way_to_write_the_dependency_counts() {
        for manifest in [
            "[dependencies]\ngradpact = \"0.1\"",
            "[dependencies]\ngradpact.workspace = true",
            "[dependencies]\n\"gradpact\" = { version = \"0.1\" }",
            "[target.'cfg(unix)'.dev-dependencies.gradpact]\nversion = \"0.1\"",
            "dependencies = { gradpact = \"0.1\" }",
            "[package]\nname = \"gradpact\"",
            "[package]\ndescription = \"uses gradpact\"",
        ] {
            assert_eq!(in_manifest(manifest), Dependency::Direct, "{manifest}");
        }
    }

    #[test]
    fn a_renamed_dependency_is_found_under_its_name() {
        for manifest in [
            "[dependencies]\nmixed-grad = { package = \"gradpact\", version = \"0.1\" }",
            "[dependencies]\nmixed-grad.package = \"gradpact\"",
            "[dependencies.mixed-grad]\nversion = \"0.1\"\npackage = \"gradpact\" # ours",
        ] {
            let Dependency::Renamed(name) = in_manifest(manifest) else { panic!("{manifest}") };
            assert_eq!(name, "mixed_grad");
        }
    }

    #[test]
    fn another_crates_name_that_contains_the_word_is_not_the_dependency() {
        let manifest = "[package]\nname = \"x\"\n[dependencies]\ngradpact-facade = \"1\"";
        assert_eq!(in_manifest(manifest), Dependency::Missing);
    }

    #[test]
    fn what_is_not_understood_counts_as_a_dependency() {
        let manifest =
            "[workspace.dependencies]\ng = { package = \"gradpact\" }\n[dependencies]\ng.workspace = true";
        assert_eq!(in_manifest(manifest), Dependency::Direct);
    }
}
