//! Waiting for a child, with the signals that come meanwhile.
//!
//! What a terminal sends goes to the whole process group, the child included.
//! What was sent to the launcher alone (kill, timeout, a service manager) is
//! passed on.

use std::mem::MaybeUninit;

/// Passed on to the child.
const FORWARDED: [libc::c_int; 7] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGCONT,
];

/// The process's signals as they were, for the child to have.
#[derive(Clone, Copy)]
pub struct Inherited {
    mask: libc::sigset_t,
    child: libc::sigaction,
}

/// Blocks what [`wait`] is going to take.
pub fn hold() -> Inherited {
    // SAFETY: plain C structs on our stack, which the calls fill.
    unsafe {
        let mut mask = MaybeUninit::zeroed().assume_init();
        let mut child = MaybeUninit::zeroed().assume_init();
        let mut default: libc::sigaction = MaybeUninit::zeroed().assume_init();
        // An ignored SIGCHLD would let the child vanish without a status.
        default.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(libc::SIGCHLD, &default, &mut child);
        libc::sigprocmask(libc::SIG_BLOCK, &taken(), &mut mask);
        Inherited { mask, child }
    }
}

impl Inherited {
    /// Puts everything back, in the child. Async-signal-safe.
    pub fn restore(&self) {
        // SAFETY: plain C structs that live across the calls.
        unsafe {
            libc::sigaction(libc::SIGCHLD, &self.child, std::ptr::null_mut());
            libc::sigprocmask(libc::SIG_SETMASK, &self.mask, std::ptr::null_mut());
        }
    }
}

fn taken() -> libc::sigset_t {
    // SAFETY: fills a plain C struct on our stack.
    unsafe {
        let mut set = MaybeUninit::zeroed().assume_init();
        libc::sigemptyset(&mut set);
        for signal in FORWARDED.into_iter().chain([libc::SIGCHLD]) {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// Waits for `child`, passing signals on; [`hold`] came before its start.
pub fn wait(child: libc::pid_t) -> Ended {
    let set = taken();
    loop {
        if let Some(ended) = look(child) {
            return ended;
        }
        // SAFETY: a plain C struct on our stack, which the call fills.
        let (signal, info) = unsafe {
            let mut info: libc::siginfo_t = MaybeUninit::zeroed().assume_init();
            (libc::sigwaitinfo(&set, &mut info), info)
        };
        let by_a_process = info.si_code <= 0;
        if FORWARDED.contains(&signal) && by_a_process {
            // SAFETY: no memory; the child is not reaped yet, so the id is its.
            unsafe { libc::kill(child, signal) };
        }
    }
}

/// Has the child ended? When it has stopped, so do we, for the shell to see.
fn look(child: libc::pid_t) -> Option<Ended> {
    let mut status = 0;
    let options = libc::WNOHANG | libc::WUNTRACED;
    // SAFETY: `status` lives across the call.
    let r = unsafe { libc::waitpid(child, &mut status, options) };
    if r < 0 {
        return Some(Ended::Exited(crate::code::NOT_EXECUTABLE));
    }
    if r == 0 {
        return None;
    }
    if libc::WIFSTOPPED(status) {
        // SAFETY: no memory. SIGCONT, to us or to the group, ends the stop.
        unsafe { libc::raise(libc::SIGSTOP) };
        return None;
    }
    if libc::WIFSIGNALED(status) {
        Some(Ended::Killed(libc::WTERMSIG(status)))
    } else {
        Some(Ended::Exited(libc::WEXITSTATUS(status)))
    }
}

impl Ended {
    /// Ends this process in the same way, as far as that is possible; returns
    /// the exit code for when it is not.
    pub fn repeat(self) -> i32 {
        let signal = match self {
            Ended::Exited(code) => return code,
            Ended::Killed(signal) => signal,
        };
        // SAFETY: plain C structs on our stack; no core file of the launcher.
        unsafe {
            let none = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            libc::signal(signal, libc::SIG_DFL);
            let mut set = MaybeUninit::zeroed().assume_init();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, signal);
            libc::sigprocmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
            libc::raise(signal);
        }
        128 + signal
    }
}
