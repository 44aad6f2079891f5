//! The ends of streams: shutdown, close, exit.
//!
//! The kernel's own shutdown and close do the work that the peer sees (FIN, RST,
//! EPIPE); what stands here is the order of our words around them. What `send`
//! has accepted lies in the segment, which the peer has mapped too: it arrives
//! whatever becomes of us.

use super::bell;
use super::leave::{self, LONG_NS};
use super::{handback, ready, settled};
use crate::fdtable::{self, Entry};
use crate::streams::{self, Stream};
use crate::{descriptors, process, real, threads};
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use rdma_engine::abi::arena::{flags, Phase, RxMode};
use rdma_engine::abi::log::Event;
use rdma_engine::abi::segment::sender_flags;
use rdma_engine::syscall;

/// shutdown(2) of a stream. Libc's convention.
pub fn shutdown(s: &Stream, fd: i32, how: i32) -> i32 {
    let write = how == libc::SHUT_WR || how == libc::SHUT_RDWR;
    let read = how == libc::SHUT_RD || how == libc::SHUT_RDWR;
    // The word comes before the FIN: a FIN without it is a death.
    if write {
        if !handback::close_gate(s, LONG_NS) {
            leave::dissolve(s);
        }
        tell(s, sender_flags::SHUT);
    }
    let deaf = (write || s.slot.has(flags::SHUT_WR)) && (read || s.slot.has(flags::SHUT_RD));
    if deaf {
        tell(s, sender_flags::DEAF);
    }
    // SAFETY: no memory is passed.
    let r = unsafe { real::shutdown(fd, how) };
    if r == 0 {
        let bits = if write { flags::SHUT_WR } else { 0 } | if read { flags::SHUT_RD } else { 0 };
        s.slot.flags.fetch_or(bits, Ordering::AcqRel);
    }
    if s.phase() != Phase::Plain {
        wake_peer(s);
        threads::wake_sleepers(s.index);
        crate::readiness::epoll::wake_sets(s);
    }
    r
}

/// Sets a word of ours in the segment.
fn tell(s: &Stream, bits: u32) {
    // Whoever has the connection now tells by TCP.
    if handback::is_away(s) {
        return;
    }
    if let Some(segment) = s.segment() {
        segment
            .direction(s.out())
            .sender
            .flags
            .fetch_or(bits, Ordering::AcqRel);
    }
}

/// Rings, whether armed or not: rare, and better once too often.
fn wake_peer(s: &Stream) {
    if s.phase() == Phase::Attached {
        bell::ring(s);
    }
}

/// A descriptor that is about to be closed, and what has to follow.
pub struct Closing {
    /// The stream, and whether its last holder has gone.
    stream: Option<(Stream, bool)>,
    /// Other threads are inside calls on it.
    busy: bool,
}

/// Before the kernel closes `fd` (close, dup2 onto it, fclose ...).
pub fn before(fd: i32) -> Closing {
    let entry = fdtable::get(fd);
    let none = Closing {
        stream: None,
        busy: false,
    };
    match entry {
        Entry::Unknown | Entry::Internal => return none,
        Entry::Other => {
            fdtable::set(fd, Entry::Unknown);
            return none;
        }
        _ if process::in_vfork_child() => return none,
        Entry::Socket => {
            crate::readiness::epoll::forget_fd(fd);
            fdtable::set(fd, Entry::Unknown);
            return none;
        }
        Entry::Epoll { index } => {
            fdtable::set(fd, Entry::Unknown);
            crate::readiness::epoll::close(index);
            return none;
        }
        Entry::Stream { .. } => {}
    }
    let Some(s) = super::of_entry(entry) else {
        fdtable::set(fd, Entry::Unknown);
        return none;
    };
    // Another thread may close the same number at the same time.
    if !fdtable::replace(fd, entry, Entry::Unknown) {
        return none;
    }
    if !s.remove_fd(fd) {
        // The kernel keeps a registration as long as any duplicate is open.
        return none;
    }
    crate::readiness::epoll::forget_fd(fd);
    let last = s.is_sole();
    if last {
        settled::count(&s, fd);
    }
    // A call that is blocked in another thread keeps the socket open
    // (close(2)): what the peer is told has to wait for it.
    let busy =
        s.phase() == Phase::Attached && threads::barrier() && threads::others_in_use(s.index);
    if busy {
        keep(&s, fd);
    } else if last {
        part(&s, fd);
    }
    Closing {
        stream: Some((s, last)),
        busy,
    }
}

/// A blocked call keeps the stream open, and so do we: what the call finds when it
/// wakes, and whether the peer sees an end or a reset, is settled when it is over.
fn keep(s: &Stream, fd: i32) {
    // SAFETY: no memory is passed.
    let copy = unsafe { syscall!(libc::SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, 0) };
    let kept = descriptors::adopt(copy as i32);
    s.local.kept.store(kept + 1, Ordering::Release);
}

/// The last descriptor of the last holder is about to go.
fn part(s: &Stream, fd: i32) {
    if s.phase() != Phase::Attached {
        return;
    }
    let all_sent = handback::close_gate(s, LONG_NS);
    if !all_sent || s.slot.rx_mode() != RxMode::Plain && ready::unread(s) > 0 {
        // As the kernel does on unread data: reset instead of FIN.
        reset_on_close(fd);
    }
    tell(s, sender_flags::SHUT | sender_flags::CLOSED);
}

fn reset_on_close(fd: i32) {
    let now = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let size = core::mem::size_of::<libc::linger>();
    // SAFETY: the struct lives across the call.
    unsafe {
        syscall!(
            libc::SYS_setsockopt,
            fd,
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            &now as *const libc::linger,
            size
        )
    };
}

/// After the kernel has closed the descriptor.
pub fn after(c: Closing) {
    let Some((s, last)) = c.stream else { return };
    if s.phase() != Phase::Plain && !c.busy {
        wake_peer(&s);
    }
    s.remove_holder(process::pid());
    log_end(&s);
    crate::stats::count(s);
    bury(s, last);
    if any_grave() {
        dig();
    }
}

/// Gives up a stream that is Plain, and that no entry names any more.
pub fn abandon(s: Stream) {
    s.remove_holder(process::pid());
    free(s, true);
}

fn log_end(s: &Stream) {
    let (tx, rx, tcp) = (&s.slot.tx, &s.slot.rx, &s.slot.tcp);
    let sum = |a: &AtomicU64, b: &AtomicU64| a.load(Ordering::Relaxed) + b.load(Ordering::Relaxed);
    let wire = sum(&tx.wire_bytes, &rx.wire_bytes);
    s.log(Event::Closed, [wire, sum(&tcp.sent, &tcp.received)]);
}

/// Frees what the stream has in this process, now or when no thread uses it any
/// more.
fn bury(s: Stream, last: bool) {
    if s.phase() == Phase::Plain || (threads::barrier() && !threads::in_use(s.index)) {
        return free(s, last);
    }
    let word = u64::from(s.generation) << 32 | u64::from(s.index) << 1 | u64::from(last) | 1 << 31;
    for grave in &GRAVES {
        if grave
            .compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
        {
            BURIED.fetch_add(1, Ordering::AcqRel);
            return;
        }
    }
    // No grave: the mapping and the slot stay until the process ends.
}

/// Streams that wait to be freed: generation, a set bit, index, last.
static GRAVES: [AtomicU64; 32] = [const { AtomicU64::new(0) }; 32];

/// Is any stream waiting to be freed?
#[inline]
pub fn any_grave() -> bool {
    BURIED.load(Ordering::Relaxed) != 0
}

static BURIED: AtomicU64 = AtomicU64::new(0);

/// In a forked child: nobody here uses them, and the last word is the parent's.
pub fn after_fork() {
    for grave in &GRAVES {
        let word = grave.swap(0, Ordering::AcqRel);
        if word == 0 {
            continue;
        }
        let index = (word as u32 & 0x7fff_ffff) >> 1;
        if let Some(s) = streams::get(index, (word >> 32) as u32) {
            free(s, false);
        }
    }
    BURIED.store(0, Ordering::Release);
}

/// Frees the streams whose last users have left meanwhile.
#[cold]
pub fn dig() {
    for grave in &GRAVES {
        let word = grave.load(Ordering::Acquire);
        if word == 0 {
            continue;
        }
        let index = (word as u32 & 0x7fff_ffff) >> 1;
        if !threads::barrier() || threads::in_use(index) {
            continue;
        }
        let taken = grave.compare_exchange(word, 0, Ordering::AcqRel, Ordering::Acquire);
        if taken.is_err() {
            continue;
        }
        BURIED.fetch_sub(1, Ordering::AcqRel);
        if let Some(s) = streams::get(index, (word >> 32) as u32) {
            free(s, word & 1 == 1);
        }
    }
}

fn free(s: Stream, last: bool) {
    let kept = take(&s.local.kept);
    if last && kept >= 0 {
        part(&s, kept);
    } else if last {
        // Said already, unless there was no descriptor for a duplicate.
        tell(&s, sender_flags::SHUT | sender_flags::CLOSED);
    }
    // Before the side channel, whose end says that the last word has been spoken.
    descriptors::close(kept);
    descriptors::close(take(&s.local.side));
    descriptors::close(take(&s.local.listener));
    if let Some(segment) = s.take_segment() {
        // SAFETY: no thread's mark names the stream, and its entry is gone.
        unsafe { segment.unmap() };
    }
    if last {
        crate::slots::release(s);
    }
}

/// Takes one of our descriptors out of its place; -1 if there is none, which most
/// streams find without a locked instruction.
fn take(place: &AtomicI32) -> i32 {
    if place.load(Ordering::Acquire) == 0 {
        return -1;
    }
    place.swap(0, Ordering::AcqRel) - 1
}

/// exit(3): streams that this process alone holds end in good order. The kernel
/// closes the descriptors; what it cannot know is said here.
pub fn at_exit() {
    for s in streams::ours() {
        if let Some(fd) = s.any_fd() {
            settled::count(&s, fd);
        }
        log_end(&s);
        if s.phase() != Phase::Attached || !s.is_sole() {
            continue;
        }
        if let Some(fd) = s.any_fd() {
            part(&s, fd);
            wake_peer(&s);
        }
    }
}
