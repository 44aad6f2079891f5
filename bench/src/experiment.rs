//! One run of one piece of work on one side: the frame that every tool and micro program fits into.

use crate::child::Child;
use crate::side::{Accelerator, Side};
use crate::{machine, port};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Where the two ends run. Plain TCP is bimodal here: a wake-up across cores costs many times one on the same core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Placement {
    /// Wherever the scheduler likes.
    #[serde(rename = "unpinned")]
    Free,
    #[serde(rename = "one core")]
    OneCore,
    #[serde(rename = "two cores")]
    TwoCores,
}

impl Placement {
    pub fn name(self) -> &'static str {
        match self {
            Placement::Free => "unpinned",
            Placement::OneCore => "one core",
            Placement::TwoCores => "two cores",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Client,
    Server,
}

pub enum Failure {
    /// The program is missing; with the package that has it.
    NotInstalled {
        program: &'static str,
        package: &'static str,
    },
    Failed(String),
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure::Failed(text)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::Failed(error.to_string())
    }
}

/// The numbers of one run, by name.
pub type Values = BTreeMap<&'static str, f64>;

pub trait Experiment {
    fn run(&self, run: &Run) -> Result<Values, Failure>;
}

/// Everything that a run needs to know: its side and placement, its own directory, how long to measure.
pub struct Run<'a> {
    pub accelerator: &'a Accelerator,
    pub side: Side,
    pub placement: Placement,
    pub seconds: u32,
    pub dir: &'a Path,
}

impl Run<'_> {
    pub fn stats_file(&self) -> PathBuf {
        self.dir.join("stats.jsonl")
    }

    /// `program` on this run's side, not yet started.
    pub fn command(&self, program: &Path) -> Command {
        self.accelerator
            .command(self.side, program, &self.stats_file())
    }

    /// Start one end where the placement wants it. The limit is generous: it is there to end what hangs.
    pub fn start(&self, command: Command, name: &str, end: End) -> Result<Child, Failure> {
        let limit = Duration::from_secs(u64::from(self.seconds) * 3 + 30);
        Ok(Child::start(command, name, self.dir, self.cpu(end), limit)?)
    }

    /// Start a server and wait until it listens on `port`.
    pub fn serve(&self, command: Command, name: &str, port: u16) -> Result<Child, Failure> {
        let server = self.start(command, name, End::Server)?;
        if port::wait_listening(port, Duration::from_secs(5)) {
            return Ok(server);
        }
        let said = server
            .stop()
            .map(|output| output.last_words())
            .unwrap_or_default();
        Err(Failure::Failed(format!(
            "{name} does not listen on port {port}: {said}"
        )))
    }

    pub fn cpu(&self, end: End) -> Option<usize> {
        let cpus = machine::cpus();
        let first = cpus.first().copied();
        match (self.placement, end) {
            (Placement::Free, _) => None,
            (Placement::OneCore, _) | (Placement::TwoCores, End::Server) => first,
            (Placement::TwoCores, End::Client) => cpus.get(1).copied().or(first),
        }
    }
}

/// Look for a program as a shell does, and in the places where daemons live.
pub fn find_program(program: &'static str, package: &'static str) -> Result<PathBuf, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
        .ok_or(Failure::NotInstalled { program, package })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_its_package() {
        match find_program("no-such-program-here", "some-package") {
            Err(Failure::NotInstalled { program, package }) => {
                assert_eq!((program, package), ("no-such-program-here", "some-package"));
            }
            _ => panic!("found what is not there"),
        }
        assert!(find_program("sh", "dash").is_ok());
    }
}
