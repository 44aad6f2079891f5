//! Manual pages and shell completions, made from the command line's definition and
//! from the lists in [`manual`].

use crate::{cli, complain, manual, print, words};
use clap_complete::Shell;
use clap_mangen::roff::{bold, roman, Roff};
use clap_mangen::Man;
use std::io;
use std::path::Path;

/// Prints completions for `shell`; returns the exit code.
pub fn completions(shell: Shell) -> i32 {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "sidewire", &mut text);
    print(&text).err().unwrap_or(0)
}

/// Writes `sidewire.1`, `sidewire-run.1` ... into `dir`; returns the exit code.
pub fn man(dir: &Path) -> i32 {
    let mut command = cli::command().disable_help_subcommand(true);
    command.build();
    match pages(&command, dir) {
        Ok(()) => 0,
        Err(why) => {
            complain(&format!("{}: {why}", dir.display()));
            1
        }
    }
}

/// The page of this command, and those of the ones below it.
fn pages(command: &clap::Command, dir: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        pages(below, dir)?;
    }
    // What stands at the end of --help has a section of its own here.
    let man = Man::new(command.clone().after_help(None::<&str>));
    let mut page = Vec::new();
    man.render(&mut page)?;
    // Behind what clap knows, before the version.
    let end = b"\n.SH VERSION";
    let at = page.windows(end.len()).position(|w| w == end);
    let at = at.map_or(page.len(), |at| at + 1);
    let mut whole = page[..at].to_vec();
    sections(command.get_name()).to_writer(&mut whole)?;
    whole.extend_from_slice(&page[at..]);
    std::fs::write(dir.join(man.get_filename()), whole)
}

/// The sections that clap knows nothing of.
fn sections(command: &str) -> Roff {
    let mut roff = Roff::new();
    let run = command == "run";
    if run || command == "sidewire" {
        list(&mut roff, "ENVIRONMENT", manual::ENVIRONMENT);
        roff.control("PP", []);
        roff.text([roman(manual::ENVIRONMENT_ORDER)]);
    }
    if run || matches!(command, "sidewire" | "doctor" | "policy" | "check") {
        list(&mut roff, "FILES", manual::FILES);
    }
    let status = if run {
        manual::RUN_STATUS
    } else {
        manual::STATUS
    };
    list(&mut roff, "EXIT STATUS", status);
    if run {
        log_words(&mut roff);
    }
    roff
}

fn list(roff: &mut Roff, title: &str, entries: &[manual::Entry]) {
    roff.control("SH", [title]);
    for (name, text) in entries {
        item(roff, name, text);
    }
}

fn item(roff: &mut Roff, name: &str, text: &str) {
    roff.control("TP", []);
    roff.text([bold(name)]);
    roff.text([roman(text.replace('`', ""))]);
}

fn log_words(roff: &mut Roff) {
    roff.control("SH", ["LOG WORDS"]);
    roff.text([roman(words::LINE.replace('`', ""))]);
    for (level, text, meaning) in words::rows() {
        item(roff, &format!("{text} ({level})"), meaning);
    }
}
