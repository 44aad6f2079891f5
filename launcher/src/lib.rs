//! The launcher: `sidewire run`, `ps`, `doctor`, `policy`.
//!
//! * [`cli`] – the command line.
//! * [`run`] – running a program with the library before it.
//! * [`view`] – reading an arena that somebody else writes to.
//! * [`ps`], [`doctor`] – what there is.
//! * [`diag`] – the kernel's word on a connection.
//! * [`policy`] – rule files, and their compiled form for the library.
//! * [`manual`], [`words`], [`pages`] – what the manual says, and how it becomes pages.
//! * [`library`], [`elf`] – finding the library; what can be preloaded where.

pub mod cli;
pub mod diag;
pub mod doctor;
pub mod elf;
pub mod library;
pub mod manual;
pub mod pages;
pub mod policy;
pub mod ps;
pub mod run;
pub mod view;
pub mod words;

use std::io::{ErrorKind, Write};

/// By which name we were called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `sidewire COMMAND ...`
    Sidewire,
    /// `sidewire-run PROGRAM ...`
    Run,
}

/// Exit codes of our own, as env(1), timeout(1) and the shell use them.
pub mod code {
    /// The output could not be written.
    pub const OUTPUT: i32 = 1;
    /// The command line, or a rule file, is wrong.
    pub const USAGE: i32 = 2;
    /// `--require`, and nothing was accelerated.
    pub const REQUIRE: i32 = 125;
    /// The program was found but cannot be executed.
    pub const NOT_EXECUTABLE: i32 = 126;
    /// No such program.
    pub const NOT_FOUND: i32 = 127;
}

/// Runs the command line; returns the exit code.
pub fn main(call: Call) -> i32 {
    use cli::Command;
    match cli::parse(call) {
        Err(code) => code,
        Ok(Command::Run(args)) => run::run(&args),
        Ok(Command::Ps(args)) => ps::ps(&args),
        Ok(Command::Doctor) => doctor::doctor(),
        Ok(Command::Policy(command)) => policy::command(&command),
        Ok(Command::Completions { shell }) => pages::completions(shell),
        Ok(Command::Man { dir }) => pages::man(&dir),
        Ok(Command::Pair(args)) => doctor::pair::end(&args),
    }
}

/// Prints one line about ourselves to stderr, whatever becomes of it.
pub fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "sidewire: {text}");
}

/// Prints to stdout. `Err` is the exit code if that fails; the user has been told why,
/// unless it is a reader who has seen enough (`| head`, with SIGPIPE ignored).
pub fn print(text: &[u8]) -> Result<(), i32> {
    let mut out = std::io::stdout();
    out.write_all(text)
        .and_then(|()| out.flush())
        .map_err(|why| {
            if why.kind() != ErrorKind::BrokenPipe {
                complain(&format!("cannot write the output: {why}"));
            }
            code::OUTPUT
        })
}
