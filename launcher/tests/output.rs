//! Output that cannot be written: said and counted, unless the reader has gone.

mod support;

use std::fs::OpenOptions;
use std::io::pipe;
use std::os::unix::process::CommandExt;
use std::process::Command;
use support::{assert_line, sidewire, stderr, Scratch};

const COMMANDS: [&[&str]; 5] = [
    &["ps"],
    &["ps", "--all"],
    &["doctor"],
    &["policy", "check"],
    &["completions", "bash"],
];

#[test]
fn a_full_disk() {
    let scratch = Scratch::new();
    for args in COMMANDS {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let out = sidewire(&scratch, args).stdout(full).output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{args:?}");
        assert_line(
            &stderr(&out),
            "sidewire: cannot write the output: No space left on device*",
        );
    }
}

/// The launcher's start-up code leaves SIGPIPE alone, so that it ends by the signal;
/// where that is ignored, it must be as quiet.
#[test]
fn a_closed_pipe() {
    let scratch = Scratch::new();
    for args in COMMANDS {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let mut command = sidewire(&scratch, args);
        ignore_sigpipe(&mut command);
        let out = command.stdout(writer).output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{args:?}");
        assert_eq!(stderr(&out), "", "{args:?}");
    }
}

fn ignore_sigpipe(command: &mut Command) {
    // SAFETY: signal(2) is async-signal-safe, and touches no memory.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            Ok(())
        });
    }
}
