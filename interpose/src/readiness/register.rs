//! The registrations of an epoll set, as the program made them.
//!
//! One record for each descriptor number, in a sparse mapping indexed by it.
//! While a stream is Plain the kernel's registration is the program's own. When
//! the stream is *taken over*, the kernel's is edge-triggered and carries a
//! token of ours, and the record is the truth: level, edge and one-shot are
//! re-created from the stream's own readiness.

use crate::fdtable;
use crate::stream::cutover::tx;
use crate::stream::{ending, ready};
use crate::streams::Stream;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use rdma_engine::abi::arena::RxMode;
use rdma_engine::abi::record::Pos;
use rdma_engine::ring::Consumer;

/// epoll's bits as unsigned numbers (epoll_ctl(2)).
pub mod bits {
    pub const IN: u32 = libc::EPOLLIN as u32;
    pub const OUT: u32 = libc::EPOLLOUT as u32;
    pub const PRI: u32 = libc::EPOLLPRI as u32;
    pub const RDHUP: u32 = libc::EPOLLRDHUP as u32;
    pub const ET: u32 = libc::EPOLLET as u32;
    pub const ONESHOT: u32 = libc::EPOLLONESHOT as u32;
    pub const EXCLUSIVE: u32 = libc::EPOLLEXCLUSIVE as u32;
    /// Does `mask` ask for EPOLLEXCLUSIVE, with nothing that excludes it
    /// (EPOLLEXCLUSIVE_OK_BITS of the kernel)?
    pub fn may_be_exclusive(mask: u32) -> bool {
        const WAKEUP: u32 = libc::EPOLLWAKEUP as u32;
        const ALWAYS: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
        mask & EXCLUSIVE != 0 && mask & !(EXCLUSIVE | IN | OUT | ALWAYS | WAKEUP | ET) == 0
    }
    /// What poll(2) and epoll(7) share.
    pub const POLL: u32 = 0xffff & !0x8000;
}

/// States of a registration.
pub const VALID: u32 = 1;
/// The kernel's registration carries our token.
pub const TAKEN: u32 = 2;
/// A one-shot has fired and waits for the program's MOD.
pub const FIRED: u32 = 4;
/// It stands in the set's list of hot ones.
pub const HOT: u32 = 8;
/// Not reported the last time, as the kernel had an event with the same data.
pub const PUT_OFF: u32 = 32;
/// An edge is due: it was (re)armed, or the kernel said so.
pub const EDGE: u32 = 16;

/// One registration. Guarded by the set's lock, but for a look at `state`.
#[repr(C, align(64))]
pub struct Registration {
    pub state: AtomicU32,
    /// The program's event mask, and its data.
    pub mask: AtomicU32,
    pub data: AtomicU64,
    /// The stream that was taken over.
    pub index: AtomicU32,
    pub generation: AtomicU32,
    /// Next hot descriptor, plus 1.
    pub next: AtomicU32,
    /// Where the ring ended at the last report ([`Pos`]), for edges.
    tail: AtomicU64,
    /// `Tx::full` at the last report of EPOLLOUT.
    full: AtomicU32,
    /// The bits of the last report.
    last: AtomicU32,
    /// `Rx::epoch` at the last report: TCP's bytes of a later one are news, even if
    /// they came while the ring had its turn.
    epoch: AtomicU64,
}

/// Registrations that a set can have: as many as descriptors are tracked.
pub const REGISTRATIONS: usize = fdtable::LIMIT;

impl Registration {
    /// Is `bit` of the state set?
    pub fn is(&self, bit: u32) -> bool {
        self.state.load(Ordering::Acquire) & bit != 0
    }
    /// Sets state bits.
    pub fn set(&self, bits: u32) {
        self.state.fetch_or(bits, Ordering::AcqRel);
    }
    /// Clears state bits.
    pub fn clear(&self, bits: u32) {
        self.state.fetch_and(!bits, Ordering::AcqRel);
    }

    /// The program's ADD or MOD.
    pub fn record(&self, mask: u32, data: u64) {
        self.mask.store(mask, Ordering::Relaxed);
        self.data.store(data, Ordering::Relaxed);
        self.set(VALID | EDGE);
        self.clear(FIRED);
    }

    /// The stream is ours from now on.
    pub fn take(&self, s: &Stream) {
        self.index.store(s.index, Ordering::Relaxed);
        self.generation.store(s.generation, Ordering::Relaxed);
        // What stands here is about an earlier stream of the same number.
        self.last.store(0, Ordering::Relaxed);
        self.tail.store(0, Ordering::Relaxed);
        self.full.store(0, Ordering::Relaxed);
        self.epoch.store(0, Ordering::Relaxed);
        self.set(TAKEN | EDGE);
    }

    /// Is it this stream that was taken over?
    pub fn is_of(&self, s: &Stream) -> bool {
        self.index.load(Ordering::Relaxed) == s.index
            && self.generation.load(Ordering::Relaxed) == s.generation
    }

    /// The stream that was taken over.
    pub fn stream(&self) -> Option<Stream> {
        crate::streams::get(
            self.index.load(Ordering::Relaxed),
            self.generation.load(Ordering::Relaxed),
        )
    }

    /// The bits that are to be reported now, 0 for nothing; and whether the
    /// stream is worth another look soon.
    pub fn report(&self, s: &Stream, fd: i32) -> u32 {
        let mask = self.mask.load(Ordering::Relaxed);
        if self.is(FIRED) {
            return 0;
        }
        let wanted = (mask & bits::POLL) as i16;
        if ready::is_quiet(s, wanted) {
            self.last.store(0, Ordering::Relaxed);
            return 0;
        }
        // Before the look: an edge that comes after it is the next report's.
        let due = self.state.fetch_and(!EDGE, Ordering::AcqRel) & EDGE != 0;
        let level = self.level(s, fd, mask);
        if level == 0 {
            self.last.store(0, Ordering::Relaxed);
            return 0;
        }
        if mask & bits::ET != 0 && !self.edge(s, level, due) {
            return 0;
        }
        self.last.store(level, Ordering::Relaxed);
        if mask & bits::ONESHOT != 0 {
            self.set(FIRED);
        }
        level
    }

    /// What poll would say. The number may be closed, while a duplicate keeps the
    /// registration alive.
    fn level(&self, s: &Stream, fd: i32, mask: u32) -> u32 {
        ready::bits(s, s.number(fd), (mask & bits::POLL) as i16) as u16 as u32
    }

    /// Has anything happened since the last report?
    fn edge(&self, s: &Stream, level: u32, due: bool) -> bool {
        let fresh = level & !self.last.swap(level, Ordering::Relaxed) != 0;
        let grew = level & bits::IN != 0 && self.grew(s);
        let epoch = s.slot.rx.epoch.load(Ordering::Relaxed);
        let turned = level & bits::IN != 0 && self.epoch.swap(epoch, Ordering::Relaxed) != epoch;
        let full = s.slot.tx.full.load(Ordering::Relaxed);
        let room = level & bits::OUT != 0 && self.full.swap(full, Ordering::Relaxed) != full;
        due || fresh || grew || turned || room
    }

    /// The kernel has reported `events` of the TCP descriptor: is that an edge of
    /// what the program asked for? What a ring carries is not TCP's to report.
    pub fn tcp_edge(&self, s: &Stream, events: u32) -> bool {
        const ALWAYS: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
        const INPUT: u32 = (libc::EPOLLIN | libc::EPOLLRDNORM | libc::EPOLLRDHUP) as u32;
        const OUTPUT: u32 = (libc::EPOLLOUT | libc::EPOLLWRNORM) as u32;
        let news = ending::note_tcp(s, events as i16);
        let mut asked = self.mask.load(Ordering::Relaxed) | ALWAYS;
        // Behind a cut-back record it does carry what comes next, though the ring
        // still has its turn.
        if ready::rx_is_on_ring(s) && !ready::ring_is_cut_off(s) {
            asked &= !INPUT;
        }
        if ready::tx_is_fast(s) {
            asked &= !OUTPUT;
        }
        let news = news && (events & ALWAYS != 0 || self.mask.load(Ordering::Relaxed) & INPUT != 0);
        news || events & asked != 0
    }

    /// Would [`Registration::report`] say something, to another thread too?
    pub fn is_due(&self, s: &Stream, fd: i32) -> bool {
        let mask = self.mask.load(Ordering::Relaxed);
        if self.is(FIRED) {
            return false;
        }
        let level = self.level(s, fd, mask);
        if level == 0 || mask & bits::ET == 0 {
            return level != 0;
        }
        let full = s.slot.tx.full.load(Ordering::Relaxed);
        self.is(EDGE)
            || level & !self.last.load(Ordering::Relaxed) != 0
            || level & bits::IN != 0 && self.tail(s).is_some_and(|t| t != self.tail_word())
            || level & bits::OUT != 0 && self.full.load(Ordering::Relaxed) != full
    }

    fn tail_word(&self) -> u64 {
        self.tail.load(Ordering::Relaxed)
    }

    /// Has the ring grown since the last report?
    fn grew(&self, s: &Stream) -> bool {
        self.tail(s)
            .is_some_and(|now| self.tail.swap(now, Ordering::Relaxed) != now)
    }

    /// Where the ring ends now, as a word of [`Pos`].
    fn tail(&self, s: &Stream) -> Option<u64> {
        let segment = s.segment()?;
        // What was put on the wire behind a cut that nobody has seen yet counts.
        if s.slot.rx_mode() == RxMode::Plain {
            return None;
        }
        let ring = segment.ring(s.into());
        let d = segment.direction(s.into());
        let _held = crate::stream::hold(s, &s.slot.rx.lock);
        let c = Consumer::new(&ring, &s.slot.rx.consumer, &d.cursor.consumed);
        Some(c.tail(Pos(self.tail_word())).0)
    }

    /// Does the stream's bell have to be armed before a sleep: for data, for
    /// room?
    pub fn bells(&self, s: &Stream) -> (bool, bool) {
        let mask = self.mask.load(Ordering::Relaxed);
        let data = s.slot.rx_mode() != RxMode::Plain;
        let room = mask & bits::OUT != 0 && s.slot.tx.fast.load(Ordering::Relaxed) != tx::PLAIN;
        (data, room)
    }
}
