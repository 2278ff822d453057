//! What the command line of `compare` asks for.

use crate::Outcome;

/// How the program is called.
pub const HELP: &str = "\
cargo run --release -p gradpact-benches --bin compare -- [GROUP …] [--rounds N] [--list]

  GROUP       only groups whose name begins so; see --list
  --rounds N  how often everyone takes a turn; 11 if not given, at most 3 where a turn takes many seconds
  --list      the names of all groups
GRADPACT_PYTHON names a Python that has torch; see benches/torch_peer.py.";

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Beginnings of the names of groups; empty for all.
    pub groups: Vec<String>,
    /// How often everyone takes a turn.
    pub rounds: usize,
    /// Only to list the groups.
    pub list: bool,
    /// Only to say how the program is called.
    pub help: bool,
}

impl Options {
    /// Reads arguments, without the program's name.
    ///
    /// # Errors
    /// If one is not understood.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Outcome<Self> {
        let mut options = Self { groups: Vec::new(), rounds: 11, list: false, help: false };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--rounds" => {
                    let rounds = arguments.next().and_then(|rounds| rounds.parse().ok()).filter(|&r| r > 0);
                    options.rounds = rounds.ok_or("--rounds needs a number above 0")?;
                }
                "--list" => options.list = true,
                "--help" | "-h" => options.help = true,
                option if option.starts_with('-') => {
                    return Err(format!("unknown option `{option}`\n\n{HELP}").into());
                }
                group => options.groups.push(group.to_owned()),
            }
        }
        Ok(options)
    }

    /// Whether a group was asked for.
    pub fn wants(&self, name: &str) -> bool {
        self.groups.is_empty() || self.groups.iter().any(|group| name.starts_with(group.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Outcome<Options> {
        Options::parse(arguments.iter().map(|&argument| argument.to_owned()))
    }

    #[test]
    fn groups_are_chosen_by_the_beginnings_of_their_names() {
        let options = parse(&["matmul", "--rounds", "3", "mlp-64"]).unwrap();
        assert_eq!(options.rounds, 3);
        assert!(options.wants("matmul-f16") && options.wants("mlp-64"));
        assert!(!options.wants("mlp-1024") && !options.wants("node"));
        assert!(parse(&[]).unwrap().wants("node"));
    }

    #[test]
    fn mistakes_are_errors() {
        for wrong in [&["--rounds"][..], &["--rounds", "0"], &["--round", "3"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
