//! Manual pages and shell completions, made from the command line's definition.

use crate::{cli, complain, print};
use clap_complete::Shell;
use std::path::Path;

/// Prints completions for `shell`; returns the exit code.
pub fn completions(shell: Shell) -> i32 {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "sidewire", &mut text);
    print(&text).err().unwrap_or(0)
}

/// Writes `sidewire.1`, `sidewire-run.1` ... into `dir`; returns the exit code.
pub fn man(dir: &Path) -> i32 {
    match clap_mangen::generate_to(cli::command().disable_help_subcommand(true), dir) {
        Ok(()) => 0,
        Err(why) => {
            complain(&format!("{}: {why}", dir.display()));
            1
        }
    }
}
