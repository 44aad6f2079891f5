//! Which signal handlers ran in this thread.
//!
//! recv, send and their kin are restarted after a handler with SA_RESTART, and
//! end with EINTR after one without it (signal(7)); poll(2), in which we sleep,
//! ends in both cases. So the program's handlers are called by one of ours,
//! which notes what kind it was. What the program asks about its handlers is
//! answered as if they were installed directly.

use crate::{errno, process, real, tls};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use libc::{sigaction, siginfo_t, SIG_DFL, SIG_IGN};

/// Signals of Linux, and one for «none».
const SIGNALS: usize = 65;

/// The program's handlers: address and flags.
struct Slot {
    handler: AtomicUsize,
    flags: AtomicU64,
}

static TABLE: [Slot; SIGNALS] = [const {
    Slot {
        handler: AtomicUsize::new(0),
        flags: AtomicU64::new(0),
    }
}; SIGNALS];

/// What this thread has seen so far; see [`interrupted`].
#[derive(Clone, Copy)]
pub struct Seen(u32, u32);

/// Takes a snapshot.
pub fn seen() -> Seen {
    let t = tls::get();
    Seen(t.interrupts.get(), t.restarts.get())
}

/// A kernel wait ended with EINTR: must the call that waited end too? Not if
/// all handlers that ran since `before` have SA_RESTART.
pub fn interrupted(before: Seen) -> bool {
    let now = seen();
    // A handler that we don't know of (installed past us) counts as one without.
    now.0 != before.0 || now.1 == before.1
}

/// Notes the handler's kind and runs it.
extern "C-unwind" fn run(sig: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's own context.
    if unsafe { crate::faults::mend(sig, context) } {
        return;
    }
    let slot = &TABLE[(sig as usize).min(SIGNALS - 1)];
    let handler = slot.handler.load(Ordering::Acquire);
    let flags = slot.flags.load(Ordering::Acquire) as c_int;
    let t = tls::get();
    if flags & libc::SA_RESTART != 0 {
        t.restarts.set(t.restarts.get().wrapping_add(1));
    } else {
        t.interrupts.set(t.interrupts.get().wrapping_add(1));
    }
    if handler == SIG_DFL || handler == SIG_IGN {
        // Only a guarded signal comes here: the program left it alone.
        return default(sig, info);
    }
    if flags & libc::SA_RESETHAND != 0 && guarded(sig) {
        slot.handler.store(SIG_DFL, Ordering::Release);
    }
    let saved = errno::get();
    // SAFETY: the address is what the program gave to sigaction(2) with these
    // flags; a handler without SA_SIGINFO takes the first argument only, and on
    // this ABI may be passed the others.
    unsafe {
        let f: extern "C-unwind" fn(c_int, *mut siginfo_t, *mut c_void) =
            core::mem::transmute(handler);
        // The handler finds errno as it was, and what it leaves there stays.
        errno::set(saved);
        f(sig, info, context);
    }
}

/// A guarded signal that the program does not handle: as if we were not there.
/// A fault happens again when the instruction is repeated; a sent one is sent
/// again.
#[cold]
fn default(sig: c_int, info: *mut siginfo_t) {
    // SAFETY: all zero is SIG_DFL; `info` is the kernel's.
    unsafe {
        let act: sigaction = core::mem::zeroed();
        real::sigaction(sig, &act, core::ptr::null_mut());
        if info.is_null() || (*info).si_code <= 0 {
            let (pid, tid) = (rdma_engine::sys::getpid(), rdma_engine::sys::gettid());
            rdma_engine::syscall!(libc::SYS_tgkill, pid, tid, sig);
        }
    }
}

/// Signals that we have to see first (bit per signal).
static GUARDED: AtomicU64 = AtomicU64::new(0);

fn guarded(sig: c_int) -> bool {
    (1..64).contains(&sig) && GUARDED.load(Ordering::Acquire) >> sig & 1 == 1
}

/// Puts our handler in front of whatever the program has, or will have, for
/// `sig`.
pub fn guard(sig: c_int) {
    // SAFETY: all zero is a valid sigaction; both are our own.
    unsafe {
        let mut now: sigaction = core::mem::zeroed();
        if real::sigaction(sig, core::ptr::null(), &mut now) != 0 {
            return;
        }
        GUARDED.fetch_or(1 << sig, Ordering::AcqRel);
        if now.sa_sigaction != ours() {
            install(sig, &now);
        }
    }
}

/// Notes the program's handler and installs ours, with its flags and mask.
///
/// # Safety
/// `act` is what a program may pass to sigaction(2).
unsafe fn install(sig: c_int, act: &sigaction) {
    let slot = &TABLE[sig as usize];
    slot.flags.store(act.sa_flags as u64, Ordering::Release);
    slot.handler.store(act.sa_sigaction, Ordering::Release);
    let mut a = *act;
    a.sa_sigaction = ours();
    a.sa_flags = (a.sa_flags | libc::SA_SIGINFO) & !libc::SA_RESETHAND;
    if act.sa_sigaction == SIG_DFL || act.sa_sigaction == SIG_IGN {
        // A fault may be one of a stack that is nearly used up.
        a.sa_flags |= libc::SA_ONSTACK | libc::SA_NODEFER;
    }
    // SAFETY: our own struct.
    unsafe { real::sigaction(sig, &a, core::ptr::null_mut()) };
}

fn ours() -> usize {
    run as *const () as usize
}

/// sigaction(2) with our handler in between.
///
/// # Safety
/// As sigaction(2): the pointers are null or valid.
pub unsafe fn set(sig: c_int, act: *const sigaction, old: *mut sigaction) -> c_int {
    // A vfork child has handlers of its own, but our table is its parent's.
    if !(1..SIGNALS as c_int).contains(&sig) || process::in_vfork_child() {
        // SAFETY: the caller's promise.
        return unsafe { real::sigaction(sig, act, old) };
    }
    let slot = &TABLE[sig as usize];
    let was = slot.handler.load(Ordering::Acquire);
    let was_flags = slot.flags.load(Ordering::Acquire);
    let mut mine = None;
    if !act.is_null() {
        let Some(mut a) = crate::faults::load(act) else {
            errno::set(libc::EFAULT);
            return -1;
        };
        if guarded(sig) {
            // SAFETY: the caller's promise.
            return unsafe { set_guarded(sig, &a, old) };
        }
        if a.sa_sigaction != SIG_DFL && a.sa_sigaction != SIG_IGN && a.sa_sigaction != ours() {
            // The table first: the handler may run before the call returns.
            slot.flags.store(a.sa_flags as u64, Ordering::Release);
            slot.handler.store(a.sa_sigaction, Ordering::Release);
            a.sa_sigaction = ours();
            a.sa_flags |= libc::SA_SIGINFO;
        }
        mine = Some(a);
    }
    let p = mine.as_ref().map_or(core::ptr::null(), |a| a as *const _);
    // SAFETY: `p` is null or valid across the call; `old` as the caller says.
    let r = unsafe { real::sigaction(sig, p, old) };
    if r != 0 {
        slot.flags.store(was_flags, Ordering::Release);
        slot.handler.store(was, Ordering::Release);
    } else if !old.is_null() {
        // SAFETY: `old` has just been written.
        let o = unsafe { &mut *old };
        if o.sa_sigaction == ours() {
            o.sa_sigaction = was;
            o.sa_flags = was_flags as c_int;
        }
    }
    r
}

/// [`set`] for a guarded signal: the program's wish is noted, ours stays.
///
/// # Safety
/// As [`set`].
unsafe fn set_guarded(sig: c_int, act: &sigaction, old: *mut sigaction) -> c_int {
    // SAFETY: the caller's promise; a query changes nothing.
    let r = unsafe { set(sig, core::ptr::null(), old) };
    if r == 0 {
        // SAFETY: the caller's promise.
        unsafe { install(sig, act) };
    }
    r
}

/// signal(3) in its BSD manner (SA_RESTART), as glibc has it, or with other
/// flags. Returns the old handler, or SIG_ERR and errno.
///
/// # Safety
/// `handler` is SIG_DFL, SIG_IGN or a function that takes an int.
pub unsafe fn signal(sig: c_int, handler: usize, flags: c_int) -> usize {
    // SAFETY: all zero is a valid sigaction.
    let (mut act, mut old): (sigaction, sigaction) =
        unsafe { (core::mem::zeroed(), core::mem::zeroed()) };
    act.sa_sigaction = handler;
    act.sa_flags = flags;
    if handler == libc::SIG_ERR {
        errno::set(libc::EINVAL);
        return libc::SIG_ERR;
    }
    // SAFETY: both structs are our own; the handler is the caller's promise.
    if unsafe { set(sig, &act, &mut old) } != 0 {
        return libc::SIG_ERR;
    }
    old.sa_sigaction
}

/// siginterrupt(3): takes SA_RESTART off a signal's handler, or puts it on.
pub fn interrupt(sig: c_int, on: bool) -> c_int {
    // SAFETY: all zero is a valid sigaction, both structs are our own, and what
    // is installed is what was installed before.
    unsafe {
        let mut act: sigaction = core::mem::zeroed();
        if set(sig, core::ptr::null(), &mut act) != 0 {
            return -1;
        }
        if on {
            INTERRUPTING.fetch_or(1 << (sig & 63), Ordering::Relaxed);
            act.sa_flags &= !libc::SA_RESTART;
        } else {
            INTERRUPTING.fetch_and(!(1 << (sig & 63)), Ordering::Relaxed);
            act.sa_flags |= libc::SA_RESTART;
        }
        set(sig, &act, core::ptr::null_mut())
    }
}

/// Signals that siginterrupt(3) was called for: then signal(3) leaves SA_RESTART
/// out, as glibc does.
static INTERRUPTING: AtomicU64 = AtomicU64::new(0);

/// The flags that signal(3) uses for `sig`.
pub fn bsd_flags(sig: c_int) -> c_int {
    let on = (0..64).contains(&sig) && INTERRUPTING.load(Ordering::Relaxed) >> sig & 1 == 1;
    if on {
        0
    } else {
        libc::SA_RESTART
    }
}
