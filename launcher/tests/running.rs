//! The program is what it would be without the launcher: status, signals,
//! environment, descriptors.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use support::{command, sidewire, state, stderr, stdout, wait_for, Scratch};

/// Without and with something to report: exec in place, or parent and child.
const WAYS: [&str; 2] = ["--", "--stats"];

fn shell(scratch: &Scratch, way: &str, script: &str) -> Command {
    sidewire(scratch, &["run", way, "sh", "-c", script])
}

#[test]
fn exit_status() {
    let scratch = Scratch::new();
    for way in WAYS {
        for code in [0, 1, 7, 125, 255] {
            let out = shell(&scratch, way, &format!("exit {code}")).output();
            assert_eq!(out.unwrap().status.code(), Some(code));
        }
        for signal in [libc::SIGKILL, libc::SIGTERM, libc::SIGSEGV, libc::SIGPIPE] {
            let script = format!("kill -{signal} $$");
            let out = shell(&scratch, way, &script).output().unwrap();
            assert_eq!(out.status.signal(), Some(signal), "{way}");
        }
    }
}

#[test]
fn one_word_prefix() {
    let scratch = Scratch::new();
    let library = scratch.library(rdma_engine::abi::VERSION);
    let mut run = command(env!("CARGO_BIN_EXE_sidewire-run"), &library);
    let out = run
        .args(["--stats", "echo", "--stats", "--", "-x"])
        .output()
        .unwrap();
    assert_eq!(stdout(&out), "--stats -- -x\n");
    assert_eq!(stderr(&out), "sidewire: 0 TCP streams, 0 fast\n");
}

#[test]
fn nothing_stays_in_between() {
    let scratch = Scratch::new();
    let mut run = shell(&scratch, "--", "echo $$");
    let child = run.stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let out = child.wait_with_output().unwrap();
    assert_eq!(stdout(&out), format!("{pid}\n"));
}

#[test]
fn preloads_are_kept() {
    let scratch = Scratch::new();
    for way in WAYS {
        let mut run = shell(&scratch, way, "echo $LD_PRELOAD");
        run.env("LD_PRELOAD", "libm.so.6 libdl.so.2");
        let out = run.output().unwrap();
        let text = stdout(&out);
        assert!(
            text.ends_with("/libstand-in.so:libm.so.6:libdl.so.2\n"),
            "{text}"
        );
    }
    // A launcher under the launcher adds nothing.
    let launcher = env!("CARGO_BIN_EXE_sidewire");
    let out = sidewire(
        &scratch,
        &["run", launcher, "run", "sh", "-c", "echo $LD_PRELOAD"],
    );
    let out = { out }.output().unwrap();
    assert_eq!(stdout(&out).matches("stand-in").count(), 1);
}

#[test]
fn settings_reach_the_library() {
    let scratch = Scratch::new();
    let show = "echo $SIDEWIRE_PROFILE $SIDEWIRE_TRANSPORT $SIDEWIRE_UPGRADE_AFTER $SIDEWIRE_LOG";
    let mut run = sidewire(
        &scratch,
        &[
            "run",
            "--profile",
            "latency",
            "--transport=shm",
            "--upgrade-after",
            "0",
            "--log",
            "warn",
            "sh",
            "-c",
            show,
        ],
    );
    assert_eq!(stdout(&run.output().unwrap()), "latency shm 0 warn\n");
    for way in WAYS {
        let mut run = shell(&scratch, way, show);
        assert_eq!(stdout(&run.output().unwrap()), "\n");
        run.env("SIDEWIRE_PROFILE", "frugal");
        assert_eq!(stdout(&run.output().unwrap()), "frugal\n");
    }
}

/// The output of `words SHOW` in a process with unusual signals.
fn odd_signals(scratch: &Scratch, words: &[&str]) -> String {
    let library = scratch.library(rdma_engine::abi::VERSION);
    let mut c = command(words[0], &library);
    c.args(&words[1..]);
    // SAFETY: system calls on memory of this frame, in the forked child.
    unsafe {
        c.pre_exec(|| {
            for signal in [libc::SIGPIPE, libc::SIGHUP, libc::SIGCHLD] {
                libc::signal(signal, libc::SIG_IGN);
            }
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in [libc::SIGUSR1, libc::SIGALRM, libc::SIGCONT] {
                libc::sigaddset(&mut set, signal);
            }
            libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
            Ok(())
        });
    }
    stdout(&c.output().unwrap())
}

#[test]
fn signals_are_inherited() {
    let scratch = Scratch::new();
    let show = ["grep", "-E", "Sig(Blk|Ign|Cgt)", "/proc/self/status"];
    let expected = odd_signals(&scratch, &show);
    let line = |name: &str| expected.lines().find(|l| l.starts_with(name)).unwrap();
    assert_ne!(line("SigBlk").matches('0').count(), 16, "{expected}");
    assert_ne!(line("SigIgn").matches('0').count(), 16, "{expected}");
    for way in WAYS {
        let launcher = [env!("CARGO_BIN_EXE_sidewire"), "run", way];
        let got = odd_signals(&scratch, &[&launcher[..], &show].concat());
        assert_eq!(got, expected, "{way}");
    }
}

/// Descriptors, also where the standard ones are closed; group and session.
#[test]
fn descriptors_are_inherited() {
    let scratch = Scratch::new();
    let library = scratch.library(rdma_engine::abi::VERSION);
    let show = "readlink /proc/self/fd/* >&9; cut -d' ' -f5,6 /proc/self/stat >&9";
    let out = scratch.path("out");
    for closed in ["", "<&-", "<&- >&- 2>&-"] {
        let run = |words: &[&str]| {
            let name = out.to_str().unwrap();
            let script = format!("exec 9>{name} {closed}; exec \"$@\" sh -c \"{show}\"");
            let mut c = command("sh", &library);
            c.args(["-c", &script, "sh"]).args(words);
            c.stdout(Stdio::null()).stderr(Stdio::null());
            c.status().unwrap();
            fs::read_to_string(&out).unwrap()
        };
        let expected = run(&["env"]);
        assert!(expected.contains("/out\n"), "{expected}");
        for way in WAYS {
            let launcher = env!("CARGO_BIN_EXE_sidewire");
            assert_eq!(run(&[launcher, "run", way]), expected, "{way} {closed}");
        }
    }
}

/// Starts a program under a watching launcher and waits for its «ready».
fn ready(scratch: &Scratch, script: &str) -> Child {
    let mut run = shell(scratch, "--stats", script);
    let mut child = run
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = child.stdout.take().unwrap();
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

fn kill(pid: u32, signal: i32) {
    // SAFETY: kill(2) touches no memory.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

#[test]
fn signals_to_the_launcher_reach_the_program() {
    let scratch = Scratch::new();
    for signal in [
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGHUP,
        libc::SIGQUIT,
        libc::SIGUSR1,
        libc::SIGUSR2,
    ] {
        let script =
            format!("trap 'exit {signal}' {signal}; echo ready; while :; do sleep 0.02; done");
        let mut child = ready(&scratch, &script);
        kill(child.id(), signal);
        assert_eq!(child.wait().unwrap().code(), Some(signal));
    }
    let mut child = ready(&scratch, "echo ready; exec sleep 60");
    kill(child.id(), libc::SIGTERM);
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
}

/// A shell must see that its job has stopped, and must be able to go on with it.
#[test]
fn a_stopped_program_stops_the_launcher() {
    let scratch = Scratch::new();
    let mut child = ready(&scratch, "echo ready; kill -STOP $$; exit 6");
    wait_for("the launcher's stop", || {
        (state(child.id()) == Some('T')).then_some(())
    });
    kill(child.id(), libc::SIGCONT);
    assert_eq!(child.wait().unwrap().code(), Some(6));
}

#[test]
fn a_stats_file_is_one_line() {
    let scratch = Scratch::new();
    let file = scratch.path("stats.json");
    fs::write(&file, "old\nold\n").unwrap();
    let name = file.to_str().unwrap();
    let out = sidewire(
        &scratch,
        &["run", "--stats-file", name, "sh", "-c", "echo $$; exit 4"],
    );
    let out = { out }.output().unwrap();
    assert_eq!(out.status.code(), Some(4));
    assert_eq!(stderr(&out), "");
    let pid = stdout(&out);
    let expected = format!(
        "{{\"pid\":{},\"streams\":0,\"fast\":0,\"shm_in\":0,\"shm_out\":0,\
         \"tcp_in\":0,\"tcp_out\":0,\"reasons\":{{}}}}\n",
        pid.trim()
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), expected);

    let out = sidewire(&scratch, &["run", "--stats-file", "/no/such/dir/f", "true"]);
    let out = { out }.output().unwrap();
    assert_eq!(out.status.code(), Some(0));
    assert!(stderr(&out).contains("/no/such/dir/f: "));
}
