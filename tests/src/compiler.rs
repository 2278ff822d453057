//! Which compiler runs the tests. What it says in its own words differs from version to version.

use std::process::Command;

/// Whether this is the compiler whose words the tests of its messages expect: the workspace's `rust-version`.
pub fn speaks_as_expected() -> bool {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(compiler).arg("--version").output();
    let expected = concat!("rustc ", env!("CARGO_PKG_RUST_VERSION"), ".");
    version.is_ok_and(|version| version.stdout.starts_with(expected.as_bytes()))
}
