//! Which modules a source file refers to, read from its tokens.

use std::collections::BTreeMap;
use std::path::Path;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A path that starts at the crate's root.
pub(crate) struct Reference {
    /// Its first segment: a module, or a name that the root re-exports.
    pub(crate) target: String,
    /// What the `cfg` attribute on the item says, if there is one.
    pub(crate) condition: Option<String>,
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All Rust files under `root`, as paths relative to it.
pub(crate) fn files(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(root).unwrap();
                files.push(relative.to_str().unwrap().replace(std::path::MAIN_SEPARATOR, "/"));
            }
        }
    }
    files.sort();
    files
}

/// The module under the root that a file belongs to.
pub(crate) fn module_of(file: &str) -> String {
    match path_of(file).into_iter().next() {
        Some(module) if module == "private" => "__private".to_owned(),
        Some(module) => module,
        None => "lib".to_owned(),
    }
}

/// `a/b.rs` is `a::b`, `a/mod.rs` is `a`, `lib.rs` is the root.
fn path_of(file: &str) -> Vec<String> {
    let mut path: Vec<_> = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    path.pop_if(|last| last == "mod" || last == "lib");
    path
}

/// The names that the root re-exports, each with the module it comes from.
pub(crate) fn reexports(lib: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let tokens: Vec<_> = tokens_of(lib).into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        if word(token).as_deref() == Some("use") {
            let end = tokens[at..].iter().position(|token| is(token, ';')).unwrap();
            let item = &tokens[at + 1..at + end];
            let module = word(&item[0]).unwrap();
            names.extend(
                words(item).into_iter().filter(|name| *name != module).map(|name| (name, module.clone())),
            );
        }
    }
    // A function and a module may share a name; then the path means either, both in that module.
    names.retain(|name, module| name != module);
    names
}

/// All references of a file, in order.
pub(crate) fn references(file: &str, text: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    let tokens: Vec<_> = tokens_of(text).into_iter().collect();
    search(&tokens, &path_of(file), None, &mut found);
    found
}

fn search(tokens: &[TokenTree], path: &[String], condition: Option<&str>, found: &mut Vec<Reference>) {
    let mut at = 0;
    let mut cfg = None;
    while at < tokens.len() {
        let rest = &tokens[at..];
        at += 1;
        if let Some(group) = attribute(rest) {
            at += 1;
            cfg = cfg_of(group).or(cfg);
            continue;
        }
        if cfg.as_deref() == Some("test") {
            at += item_length(rest) - 1;
            cfg = None;
            continue;
        }
        let inherited = cfg.as_deref().or(condition);
        match &rest[0] {
            TokenTree::Group(group) => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                search(&inner, &module_path(tokens, at - 1, path), inherited, found);
                if group.delimiter() == Delimiter::Brace {
                    cfg = None;
                }
            }
            token if is(token, ';') => cfg = None,
            token => {
                let (target, length) = root_path(word(token).as_deref(), rest, path);
                found.extend(
                    target
                        .into_iter()
                        .map(|target| Reference { target, condition: inherited.map(str::to_owned) }),
                );
                at += length;
            }
        }
    }
}

/// The first segments after the root that a path at the start of `tokens` names, and how many more tokens it takes.
fn root_path(first: Option<&str>, tokens: &[TokenTree], path: &[String]) -> (Vec<String>, usize) {
    let mut at = match first {
        Some("crate" | "gradpact" | "super") if follows(tokens, 1) => 3,
        _ => return (Vec::new(), 0),
    };
    let mut base = if first == Some("super") { &path[..path.len() - 1] } else { &[] };
    while word(&tokens[at]).as_deref() == Some("super") && follows(tokens, at + 1) {
        base = &base[..base.len() - 1];
        at += 3;
    }
    let targets = match base.first() {
        Some(module) => vec![module.clone()],
        None => first_segments(&tokens[at]),
    };
    (targets, at)
}

/// The first segment of each path in `{a::b, c}`, or the one segment.
fn first_segments(token: &TokenTree) -> Vec<String> {
    let TokenTree::Group(group) = token else { return word(token).into_iter().collect() };
    let tokens: Vec<_> = group.stream().into_iter().collect();
    let paths = tokens.split(|token| is(token, ','));
    paths.filter_map(|path| word(path.first()?)).collect()
}

/// The path of what is inside the group at `at`: one module deeper after `mod name`.
fn module_path(tokens: &[TokenTree], at: usize, path: &[String]) -> Vec<String> {
    let mut path = path.to_vec();
    if at >= 2 && word(&tokens[at - 2]).as_deref() == Some("mod") {
        path.extend(word(&tokens[at - 1]));
    }
    path
}

/// How many tokens an item takes: up to its braces or semicolon.
fn item_length(tokens: &[TokenTree]) -> usize {
    let ends = |token: &TokenTree| {
        is(token, ';') || matches!(token, TokenTree::Group(g) if g.delimiter() == Delimiter::Brace)
    };
    tokens.iter().position(ends).map_or(tokens.len(), |end| end + 1)
}

/// The brackets of an attribute at the start of `tokens`.
fn attribute(tokens: &[TokenTree]) -> Option<&Group> {
    match tokens {
        [hash, TokenTree::Group(group), ..] if is(hash, '#') => Some(group),
        _ => None,
    }
}

/// What stands in the parentheses of `cfg(…)`.
fn cfg_of(attribute: &Group) -> Option<String> {
    let tokens: Vec<_> = attribute.stream().into_iter().collect();
    match &tokens[..] {
        [name, TokenTree::Group(group)] if word(name)? == "cfg" => Some(group.stream().to_string()),
        _ => None,
    }
}

fn tokens_of(text: &str) -> TokenStream {
    text.parse().unwrap()
}

fn word(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    }
}

/// All identifiers, also those in groups.
fn words(tokens: &[TokenTree]) -> Vec<String> {
    let inner = |token: &TokenTree| match token {
        TokenTree::Group(group) => words(&group.stream().into_iter().collect::<Vec<_>>()),
        token => word(token).into_iter().collect(),
    };
    tokens.iter().flat_map(inner).collect()
}

fn is(token: &TokenTree, punct: char) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == punct)
}

/// Whether `::` stands at `at`.
fn follows(tokens: &[TokenTree], at: usize) -> bool {
    tokens.len() > at + 2 && is(&tokens[at], ':') && is(&tokens[at + 1], ':')
}
