//! Running a program as a child, with an arena that shows what became of its
//! streams and those of its descendants.

use super::environment::names;
use super::signals::{self, Ended};
use super::{cannot_run, logs, report, Argv};
use crate::cli::RunArgs;
use crate::view::totals::Totals;
use crate::view::View;
use crate::{code, complain};
use rdma_engine::arena;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Runs the program and reports; returns the exit code. `obstacles` were printed
/// already, and are the reasons if nothing is accelerated.
pub fn run(args: &RunArgs, argv: &Argv, obstacles: &[String]) -> i32 {
    let arena = new_arena();
    let log = match (args.log, &arena) {
        (Some(level), Some(fd)) => logs::Log::open(fd.as_fd(), level),
        _ => None,
    };
    let inherited = signals::hold();
    let child = match start(argv, inherited) {
        Ok(pid) => pid,
        Err(errno) => {
            inherited.restore();
            let name = args.command.first().map(|n| n.as_os_str());
            return cannot_run(name.unwrap_or_default(), errno);
        }
    };
    let printer = log.and_then(logs::Log::print);
    let ended = signals::wait(child);
    drop(printer);
    let view = arena.and_then(|fd| View::new(File::from(fd)));
    let totals = view.map(|v| Totals::of(&v)).unwrap_or_default();
    finish(args, child, ended, &totals, obstacles)
}

/// Makes the arena and names it to the library. `None`: no memory; the program
/// runs all the same, and nothing is seen of it.
fn new_arena() -> Option<OwnedFd> {
    match arena::create() {
        Ok(fd) => {
            let path = format!("/proc/{}/fd/{fd}", std::process::id());
            std::env::set_var(names::ARENA, path);
            // SAFETY: the new descriptor is nobody else's.
            Some(unsafe { OwnedFd::from_raw_fd(fd) })
        }
        Err(errno) => {
            let why = std::io::Error::from_raw_os_error(errno);
            complain(&format!("cannot watch the program: {why}"));
            None
        }
    }
}

fn finish(
    args: &RunArgs,
    child: libc::pid_t,
    ended: Ended,
    totals: &Totals,
    obstacles: &[String],
) -> i32 {
    if args.stats {
        report::print(totals);
    }
    if let Some(path) = &args.stats_file {
        if let Err(why) = report::write(path, child, totals) {
            complain(&format!("{}: {why}", path.display()));
        }
    }
    if args.require && totals.fast == 0 {
        report::nothing_accelerated(totals, obstacles);
        return code::REQUIRE;
    }
    ended.repeat()
}

/// Starts the program; returns its process id, or the errno of fork(2) or
/// execvp(3).
fn start(argv: &Argv, inherited: signals::Inherited) -> Result<libc::pid_t, i32> {
    let (mut said, tell) = pipe()?;
    // SAFETY: this process has one thread, so that the child may do anything.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(errno());
    }
    if pid == 0 {
        inherited.restore();
        let errno = argv.exec();
        // Close-on-exec: the parent reads something only if exec failed.
        let bytes = errno.to_ne_bytes();
        // SAFETY: the bytes live across the call; _exit ends the process.
        unsafe {
            libc::write(tell.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
            libc::_exit(code::NOT_FOUND);
        }
    }
    drop(tell);
    let mut failure = [0; 4];
    match said.read_exact(&mut failure) {
        Err(_) => Ok(pid),
        Ok(()) => {
            signals::wait(pid);
            Err(i32::from_ne_bytes(failure))
        }
    }
}

/// A close-on-exec pipe: reading end, writing end. Both lie above the standard
/// streams, which may be closed.
fn pipe() -> Result<(File, OwnedFd), i32> {
    let mut low = [-1; 2];
    // SAFETY: an array of two, as pipe2(2) wants it.
    if unsafe { libc::pipe2(low.as_mut_ptr(), libc::O_CLOEXEC) } < 0 {
        return Err(errno());
    }
    let raise = |fd: RawFd| {
        // SAFETY: `fd` is new and ours; F_DUPFD_CLOEXEC gives another new one.
        unsafe {
            let _low = OwnedFd::from_raw_fd(fd);
            let high = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 10);
            if high < 0 {
                Err(errno())
            } else {
                Ok(OwnedFd::from_raw_fd(high))
            }
        }
    };
    let (read, write) = (raise(low[0]), raise(low[1]));
    Ok((File::from(read?), write?))
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
