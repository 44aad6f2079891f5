//! Every wrong use has a clear answer, and the program runs wherever it can.

mod support;

use std::fs;
use std::os::unix::fs::{chown, PermissionsExt};
use std::path::Path;
use std::process::Output;
use support::{assert_line, command, sidewire, stderr, stdout, Scratch};

const LAUNCHER: &str = env!("CARGO_BIN_EXE_sidewire");

fn run(scratch: &Scratch, args: &[&str]) -> Output {
    let mut words = vec!["run"];
    words.extend(args);
    sidewire(scratch, &words).output().unwrap()
}

fn utf8(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn no_such_program() {
    let scratch = Scratch::new();
    for options in [&["--"][..], &["--stats"], &["--require"]] {
        for name in ["no-such-program", "/no/such/program"] {
            let out = run(&scratch, &[options, &[name]].concat());
            assert_eq!(out.status.code(), Some(127));
            assert_line(
                &stderr(&out),
                &format!("sidewire: {name}: No such file or directory"),
            );
        }
    }
}

#[test]
fn not_executable() {
    let scratch = Scratch::new();
    let plain = scratch.file("plain", "#!/bin/sh\n", 0o644);
    for path in [utf8(&plain), "/"] {
        for option in ["--", "--stats"] {
            let out = run(&scratch, &[option, path]);
            assert_eq!(out.status.code(), Some(126), "{path}");
            assert_line(
                &stderr(&out),
                &format!("sidewire: {path}: Permission denied"),
            );
        }
    }
}

/// The program runs, unaccelerated, and stderr has one line.
fn assert_unaccelerated(library: &Path, line: &str) {
    for option in ["--", "--require"] {
        let mut launcher = command(LAUNCHER, library);
        launcher.args(["run", option, "sh", "-c", "echo out$LD_PRELOAD"]);
        let out = launcher.output().unwrap();
        assert_eq!(stdout(&out), "out\n");
        if option == "--" {
            assert_eq!(out.status.code(), Some(0));
            assert_line(&stderr(&out), line);
        } else {
            assert_eq!(out.status.code(), Some(125));
        }
    }
}

#[test]
fn library_missing() {
    assert_unaccelerated(
        Path::new("/no/such/library.so"),
        "sidewire: SIDEWIRE_LIBRARY names no file: /no/such/library.so; \
         the program runs unaccelerated",
    );
    // Not named, and not beside the launcher.
    let scratch = Scratch::new();
    let copy = scratch.path("sidewire");
    fs::copy(LAUNCHER, &copy).unwrap();
    let mut launcher = command(&copy, Path::new(""));
    let out = launcher.args(["run", "echo", "out"]).output().unwrap();
    assert_eq!(stdout(&out), "out\n");
    assert_line(
        &stderr(&out),
        "sidewire: libsidewire.so not found beside *; the program runs unaccelerated",
    );
}

#[test]
fn library_of_another_version() {
    let scratch = Scratch::new();
    assert_unaccelerated(
        &scratch.library(4711),
        "sidewire: *libstand-in.so is of another version (4711, this launcher has *); \
         the program runs unaccelerated",
    );
}

#[test]
fn not_a_library_at_all() {
    let scratch = Scratch::new();
    let text = scratch.file("text.so", "no ELF", 0o755);
    for path in [&text, Path::new("/bin/sh")] {
        assert_unaccelerated(
            path,
            "sidewire: * is not a libsidewire.so for this machine; *",
        );
    }
    let blank = scratch.path("with blank");
    fs::create_dir(&blank).unwrap();
    let moved = blank.join("l.so");
    fs::rename(scratch.library(rdma_engine::abi::VERSION), &moved).unwrap();
    assert_unaccelerated(
        &moved,
        "sidewire: * cannot be preloaded: a blank or colon in its path; *",
    );
}

#[test]
fn the_library_is_found_in_an_install_prefix() {
    let scratch = Scratch::new();
    let library = scratch.library(rdma_engine::abi::VERSION);
    let launcher = scratch.path("usr/bin/sidewire");
    fs::create_dir_all(launcher.parent().unwrap()).unwrap();
    fs::copy(LAUNCHER, &launcher).unwrap();
    for place in ["usr/lib/sidewire", "usr/lib/x86_64-linux-gnu/sidewire"] {
        let place = place.replace("x86_64", std::env::consts::ARCH);
        let dir = scratch.path(&place);
        fs::create_dir_all(&dir).unwrap();
        let installed = dir.join("libsidewire.so");
        fs::copy(&library, &installed).unwrap();
        let mut c = command(&launcher, Path::new(""));
        let out = c
            .args(["run", "sh", "-c", "echo $LD_PRELOAD"])
            .output()
            .unwrap();
        assert_eq!(stdout(&out), format!("{}\n", utf8(&installed)));
        fs::remove_file(installed).unwrap();
    }
}

#[test]
fn static_program() {
    let scratch = Scratch::new();
    let program = scratch.compile("static", "int main(void) { return 7; }", &["-static"]);
    let out = run(&scratch, &[utf8(&program)]);
    assert_eq!(out.status.code(), Some(7));
    let line = "sidewire: *static is statically linked: it runs on plain TCP";
    assert_line(&stderr(&out), line);

    // A script is as good as its interpreter, and so on.
    let inner = scratch.file("inner", format!("#! {}\n", utf8(&program)), 0o755);
    let outer = scratch.file("outer", format!("#!{} -x\n", utf8(&inner)), 0o755);
    let out = run(&scratch, &[utf8(&outer)]);
    assert_eq!(out.status.code(), Some(7));
    assert_line(&stderr(&out), line);

    let out = run(&scratch, &["--require", utf8(&program)]);
    assert_eq!(out.status.code(), Some(125));
    assert!(stderr(&out).contains("nothing was accelerated\n"));
}

#[test]
fn scripts_that_never_end() {
    let scratch = Scratch::new();
    let path = scratch.path("loop");
    let path = scratch.file("loop", format!("#!{}\n", utf8(&path)), 0o755);
    let out = run(&scratch, &[utf8(&path)]);
    assert_eq!(out.status.code(), Some(126));
}

/// The program is there, and what it asks for is not: as a shell says it.
#[test]
fn interpreter_missing() {
    let scratch = Scratch::new();
    let plain = scratch.file("plain", "", 0o644);
    let inner = scratch.file("inner", "#!/no/such/interpreter -x\n", 0o755);
    for (line, interpreter, why, code) in [
        ("/no/such", "/no/such", "No such file or directory", 127),
        ("/bin/sh\r", "/bin/sh^M", "No such file or directory", 127),
        (utf8(&plain), utf8(&plain), "Permission denied", 126),
        // The script's own interpreter is there; that one's isn't.
        (
            utf8(&inner),
            "/no/such/interpreter",
            "No such file or directory",
            127,
        ),
    ] {
        let script = scratch.file("script", format!("#! {line}\n"), 0o755);
        for option in ["--", "--stats"] {
            let out = run(&scratch, &[option, utf8(&script)]);
            let name = utf8(&script);
            let expected = format!("sidewire: {name}: bad interpreter: {interpreter}: {why}");
            assert_line(&stderr(&out), &expected);
            assert_eq!(out.status.code(), Some(code), "{line}");
        }
    }
}

#[test]
fn set_uid_program() {
    let scratch = Scratch::new();
    let program = scratch.path("set-uid");
    fs::copy("/bin/true", &program).unwrap();
    if let Err(why) = chown(&program, Some(1), Some(1)) {
        println!("skipped: cannot give a file away: {why}");
        return;
    }
    for (mode, what) in [(0o4755, "set-uid"), (0o2755, "set-gid")] {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let out = run(&scratch, &[utf8(&program)]);
        assert_eq!(out.status.code(), Some(0));
        let line = format!("sidewire: * is {what}: it runs on plain TCP");
        assert_line(&stderr(&out), &line);
    }
}

#[test]
fn program_for_another_machine() {
    let scratch = Scratch::new();
    let mut bytes = fs::read("/bin/true").unwrap();
    for (at, value, what) in [
        (4, 1, "is a 32-bit program"),
        (18, 0xf7, "is for another kind of machine"),
    ] {
        let good = bytes[at];
        bytes[at] = value;
        let program = scratch.file("program", &bytes, 0o755);
        bytes[at] = good;
        let out = run(&scratch, &[utf8(&program)]);
        let text = stderr(&out);
        let first = text.lines().next().unwrap();
        assert_line(
            &format!("{first}\n"),
            &format!("sidewire: * {what}: it runs on plain TCP"),
        );
    }
}

/// Preloading a library of glibc's into a program of another C library's would
/// keep it from starting.
#[test]
fn program_of_another_c_library() {
    let scratch = Scratch::new();
    let flags = ["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"];
    let program = scratch.compile("musl", "int main(void) { return 0; }", &flags);
    let out = run(&scratch, &["--stats", utf8(&program)]);
    // The interpreter is not there, so that the program cannot start.
    assert_eq!(out.status.code(), Some(127));
    let line = "musl uses another C library: it runs on plain TCP\n";
    assert!(stderr(&out).contains(line), "{}", stderr(&out));
    let line = "musl: bad interpreter: /lib/ld-musl-x86_64.so.1: No such file or directory\n";
    assert!(stderr(&out).contains(line), "{}", stderr(&out));
}

#[test]
fn nothing_to_accelerate() {
    let scratch = Scratch::new();
    for end in ["true", "exit 3"] {
        let out = run(&scratch, &["--require", "sh", "-c", end]);
        assert_eq!(out.status.code(), Some(125));
        let expected = "sidewire: nothing was accelerated\n\
             sidewire: the program opened no TCP stream\n";
        assert_eq!(stderr(&out), expected);
    }
}

#[test]
fn wrong_command_lines() {
    let scratch = Scratch::new();
    for args in [
        &["run"][..],
        &["run", "--"],
        &["run", "--no-such-option", "true"],
        &["run", "--profile", "fast", "true"],
        &["run", "--upgrade-after", "-1", "true"],
        &["no-such-command"],
        &[],
    ] {
        let out = sidewire(&scratch, args).output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(!out.stderr.is_empty());
    }
}

/// `sidewire-run` speaks of itself by the name that it was called by.
#[test]
fn the_short_form_has_help_and_a_version_of_its_own() {
    let scratch = Scratch::new();
    let call = |option: &str| {
        let program = env!("CARGO_BIN_EXE_sidewire-run");
        let library = scratch.library(rdma_engine::abi::VERSION);
        let out = command(program, &library).arg(option).output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{option}: {}", stderr(&out));
        stdout(&out)
    };
    let help = call("--help");
    assert!(help.contains("Usage: sidewire-run [OPTIONS]"), "{help}");
    assert!(!help.contains("sidewire-run run"), "{help}");
    assert!(help.contains("Exit status"), "{help}");
    let rdma = "RDMA only, which this version does not have: everything stays on TCP";
    assert!(help.contains(rdma), "{help}");
    let version = format!("sidewire-run {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(call("--version"), version);
    assert_eq!(call("-V"), version);
}
