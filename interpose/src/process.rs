//! Which process we are, and what happens to streams when it forks.

use crate::stream::{leave, open};
use crate::streams;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use rdma_engine::abi::arena::{flags, Phase};
use rdma_engine::abi::log::Event;
use rdma_engine::abi::reason::Reason;
use rdma_engine::sys;

static PID: AtomicU32 = AtomicU32::new(0);

/// Not 0: an attached stream may have another holder, since a fork.
static SHARES: AtomicU32 = AtomicU32::new(0);

/// Does another process share an attached stream with us, and so its doorbell?
pub fn shares_wakes() -> bool {
    if SHARES.load(Ordering::Acquire) == 0 {
        return false;
    }
    let shared = streams::ours().any(|s| s.phase() == Phase::Attached && !s.is_sole());
    if !shared {
        SHARES.store(0, Ordering::Release);
    }
    shared
}

/// A holder that is being born: fork(2) has been called, the child has not yet
/// put its own name in. Never a process id (pid_max is at most 2^22).
const UNBORN: u32 = u32::MAX >> 1;

/// Is this the name of a child that is about to be born?
pub fn is_unborn(pid: u32) -> bool {
    pid == UNBORN
}

/// May process `pid`, named as a holder, still hold the end?
pub fn may_live(pid: u32) -> bool {
    is_unborn(pid) || is_confined() || sys::process_alive(pid)
}

/// This process's id, as of its last fork.
#[inline]
pub fn pid() -> u32 {
    match PID.load(Ordering::Relaxed) {
        0 => {
            let pid = sys::getpid();
            PID.store(pid, Ordering::Relaxed);
            pid
        }
        pid => pid,
    }
}

/// Are we in a child that shares its parent's memory (vfork(2))? Such a child
/// closes and dups descriptors of its own; the parent's table is not its to
/// touch.
pub fn in_vfork_child() -> bool {
    sys::getpid() != pid()
}

/// Set for ever by the program's first seccomp filter.
static CONFINED: AtomicBool = AtomicBool::new(false);

/// May we make no system calls but the program's own?
pub fn is_confined() -> bool {
    CONFINED.load(Ordering::Relaxed)
}

/// The program is about to set a seccomp filter: its streams go back to TCP, and
/// stay there as long as it holds them.
pub fn confine() {
    if is_confined() || in_vfork_child() {
        return;
    }
    crate::startup::disable();
    streams::log(Event::Disabled, [Reason::Seccomp as u64, 0]);
    leave::all_leave(streams::ours, leave::LONG_NS, |s| match s.phase() {
        Phase::Plain => {}
        Phase::Offered => crate::rendezvous::retract(s),
        Phase::Attached => open::pin(s, Reason::Seccomp),
    });
    crate::stats::before_confinement();
    CONFINED.store(true, Ordering::Relaxed);
}

/// Before fork(2): every stream gets an unborn holder, so that none of them is
/// offered or promised while nobody can say who holds it.
pub fn before_fork() {
    if streams::ours().any(|s| s.phase() == Phase::Attached) {
        if forks_into_another_namespace() {
            // Locks name threads by ids, which mean something else there.
            leave::all_leave(streams::ours, leave::LONG_NS, |s| {
                open::pin(s, Reason::SharedEnd)
            });
        }
        SHARES.store(1, Ordering::Release);
    }
    for s in streams::ours() {
        announce(&s);
    }
}

/// Will children be in another PID namespace (unshare(2), setns(2))?
fn forks_into_another_namespace() -> bool {
    let of = |name: &core::ffi::CStr| sys::inode(name);
    let own = of(c"/proc/self/ns/pid");
    own.is_some() && own != of(c"/proc/self/ns/pid_for_children")
}

/// A child is about to be born that will hold this stream. An offer is taken
/// back: whoever comes would find two that answer, or none.
pub fn announce(s: &streams::Stream) {
    if s.phase() == Phase::Offered {
        crate::rendezvous::retract(s);
    }
    s.add_unborn(UNBORN);
}

/// After fork(2), in the parent. The child has its own name in place of the
/// unborn one as soon as it runs; if the fork failed nobody will.
pub fn after_fork_in_parent(child: i32) {
    if child > 0 {
        streams::log(Event::Fork, [child as u64, 0]);
    }
    for s in streams::ours() {
        if child < 0 {
            unborn(&s);
        } else {
            born(&s, child as u32);
        }
    }
}

/// The child that was announced holds this stream.
pub fn born(s: &streams::Stream, child: u32) {
    s.name_unborn(UNBORN, child);
}

/// The child that was announced does not hold this stream.
pub fn unborn(s: &streams::Stream) {
    s.remove_holder(UNBORN);
}

/// After fork(2), in the child.
pub fn after_fork_in_child() {
    let pid = sys::getpid();
    PID.store(pid, Ordering::Relaxed);
    crate::threads::after_fork();
    // In a PID namespace of our own, the parent's id is none, and the ids of holders
    // do not mean the same here and there: the end is a crowd's.
    let foreign = sys::getppid() == 0;
    if foreign {
        crate::slots::forbid_reclaiming();
    }
    for s in streams::ours() {
        if foreign {
            s.slot.flags.fetch_or(flags::CROWD, Ordering::AcqRel);
        }
        s.name_unborn(UNBORN, pid);
    }
    crate::stream::close::after_fork();
    crate::readiness::epoll::after_fork();
}
