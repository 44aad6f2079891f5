//! Streams that stay on TCP for good, whose calls are not followed any more.
//!
//! To follow a call on a Plain stream (to mark the thread, to count) costs more than the
//! rest of the hook: it is for streams that may leave TCP yet. Where that is out of the
//! question a data call is one look at the descriptor table, and what the stream has
//! carried is the kernel's to say, when it ends or when `sidewire ps` asks.

use crate::streams::Stream;
use crate::{fdtable, tls};
use core::sync::atomic::Ordering;
use rdma_engine::abi::arena::{flags, Phase};

/// Stops following the calls on descriptor `fd`, if the stream is Plain for good.
pub fn settle(s: &Stream, fd: i32) -> bool {
    let may = || s.pinned() && s.phase() == Phase::Plain;
    let me = tls::tid();
    if !may() || !s.slot.control.try_acquire(me) {
        return false;
    }
    // Offers are made under this lock, and for no pinned stream.
    let settled = may();
    if settled {
        s.slot.flags.fetch_or(flags::SETTLED, Ordering::AcqRel);
        fdtable::settle(fd, s.entry());
    }
    s.slot.control.release(me);
    settled
}

/// Before `fd`, the last descriptor, is closed: what the stream has carried.
pub fn count(s: &Stream, fd: i32) {
    if !s.slot.has(flags::SETTLED) {
        return;
    }
    if let Some((sent, received)) = super::tcp::carried(fd) {
        s.slot.tcp.sent.store(sent, Ordering::Relaxed);
        s.slot.tcp.received.store(received, Ordering::Relaxed);
    }
}
