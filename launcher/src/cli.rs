//! The command line.

use crate::policy::file::Verdict;
use crate::Call;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Moves the TCP streams of ordinary programs onto shared memory
#[derive(Parser, Debug)]
#[command(name = "sidewire", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a program with its TCP streams accelerated
    Run(RunArgs),
    /// List the streams of this host: where they run, and why not faster
    Ps(PsArgs),
    /// Say what this machine offers, and whether a test connection accelerates
    Doctor,
    /// Look at the policy rules
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Print the completions for a shell
    Completions { shell: clap_complete::Shell },
    /// Write the manual pages into a directory
    #[command(hide = true)]
    Man { dir: PathBuf },
    /// One end of the doctor's test connection
    #[command(hide = true)]
    Pair(PairArgs),
}

#[derive(Args, Debug, Default)]
#[command(after_help = crate::manual::run_status_help())]
pub struct RunArgs {
    /// How to wait: spin longer (latency), learn (adaptive), or hardly at all (frugal)
    #[arg(long, value_enum)]
    pub profile: Option<Profile>,
    /// Which wires may be used; this version has shared memory only, so that rdma means tcp
    #[arg(long, value_enum)]
    pub transport: Option<Verdict>,
    /// Messages on a stream before it looks for a faster wire; 0 is at once
    #[arg(long, value_name = "N")]
    pub upgrade_after: Option<u64>,
    /// When the program has ended, print streams, bytes and reasons to stderr
    #[arg(long)]
    pub stats: bool,
    /// When the program has ended, write the same as one line of JSON to FILE
    #[arg(long, value_name = "FILE")]
    pub stats_file: Option<PathBuf>,
    /// Exit with 125 if no stream of the program was accelerated
    #[arg(long)]
    pub require: bool,
    /// Print what becomes of each stream to stderr, while the program runs; sidewire-run(1) explains each word
    #[arg(long, value_name = "LEVEL", value_enum)]
    pub log: Option<LogLevel>,
    /// Rules that come before the user's and the system's, and before those of a run around this one
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The program, looked for in PATH, and its arguments
    #[arg(required = true, num_args = 1.., value_names = ["PROGRAM", "ARGS"])]
    pub command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub struct PsArgs {
    /// Print an array of objects; what could not be looked into is said on stderr
    #[arg(long)]
    pub json: bool,
    /// Show what dead processes have left behind, too
    #[arg(long)]
    pub all: bool,
}

#[derive(Subcommand, Debug)]
pub enum PolicyCommand {
    /// Check the rule files and print their rules with the numbers that reasons name
    Check {
        /// A file whose rules come first, as with `run --policy`
        file: Option<PathBuf>,
    },
}

#[derive(Args, Debug)]
pub struct PairArgs {
    /// 127.0.0.1:PORT to connect to; without it, listen and print the address
    pub connect: Option<std::net::SocketAddr>,
}

/// `--profile`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    Latency,
    Adaptive,
    Frugal,
}

/// `--log`; each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

/// The name that a value has on the command line.
pub fn name_of<V: ValueEnum>(value: V) -> String {
    value
        .to_possible_value()
        .map_or_else(String::new, |v| v.get_name().to_owned())
}

/// The command line as `sidewire` understands it.
pub fn command() -> clap::Command {
    Cli::command()
}

/// The command line of `sidewire-run`: `run` under a name of its own.
pub fn run_command() -> clap::Command {
    let bare = clap::Command::new("sidewire-run")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Runs a program with its TCP streams accelerated; the same as `sidewire run`")
        .max_term_width(100);
    RunArgs::augment_args(bare)
}

/// Parses the process's own arguments. `Err` is an exit code: an error, help or
/// the version has been printed.
pub fn parse(call: Call) -> Result<Command, i32> {
    parse_words(call, std::env::args_os().collect()).map_err(|e| {
        let _ = e.print();
        e.exit_code()
    })
}

fn parse_words(call: Call, mut words: Vec<OsString>) -> Result<Command, clap::Error> {
    match call {
        Call::Sidewire => {
            if words.get(1).is_some_and(|w| w == "run") {
                guard_program(&mut words, 2);
            }
            Cli::try_parse_from(words).map(|cli| cli.command)
        }
        Call::Run => {
            guard_program(&mut words, 1);
            let found = run_command().try_get_matches_from(words)?;
            RunArgs::from_arg_matches(&found).map(Command::Run)
        }
    }
}

/// Puts a `--` before the program of `run`, whose options start at the word `at`,
/// so that the program's own options are never taken for ours.
fn guard_program(words: &mut Vec<OsString>, mut at: usize) {
    let run = run_command();
    let takes_value = |option: &str| {
        let mut options = run.get_opts();
        options.any(|a| a.get_long() == Some(option) && a.get_action().takes_values())
    };
    while let Some(word) = words.get(at) {
        let text = word.to_string_lossy();
        if text == "--" {
            return;
        }
        let Some(option) = text.strip_prefix("--") else {
            if !text.starts_with('-') {
                words.insert(at, "--".into());
                return;
            }
            at += 1;
            continue;
        };
        at += if takes_value(option) { 2 } else { 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(words: &[&str]) -> RunArgs {
        let words = words.iter().map(OsString::from).collect();
        match parse_words(Call::Sidewire, words).unwrap() {
            Command::Run(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
        run_command().debug_assert();
    }

    #[test]
    fn the_programs_options_are_its_own() {
        let a = run(&["sidewire", "run", "prog", "--stats", "-x"]);
        assert!(!a.stats);
        assert_eq!(a.command, ["prog", "--stats", "-x"]);
        let a = run(&[
            "sidewire",
            "run",
            "--upgrade-after",
            "3",
            "prog",
            "--",
            "-h",
        ]);
        assert_eq!(a.upgrade_after, Some(3));
        assert_eq!(a.command, ["prog", "--", "-h"]);
        let a = run(&[
            "sidewire",
            "run",
            "--profile=frugal",
            "--stats",
            "--",
            "-odd",
        ]);
        assert_eq!((a.profile, a.stats), (Some(Profile::Frugal), true));
        assert_eq!(a.command, ["-odd"]);
    }

    #[test]
    fn unknown_options_are_errors() {
        let parse =
            |call, words: &[&str]| parse_words(call, words.iter().map(OsString::from).collect());
        assert!(parse(Call::Sidewire, &["sidewire", "run", "--stat", "prog"]).is_err());
        assert!(parse(Call::Run, &["sidewire-run", "--stat", "prog"]).is_err());
    }
}
