//! The doorbells of a stream: armed before a sleep, rung on the side channel, answered
//! by whoever finds them there.

use super::wait::Want;
use super::{handback, ready};
use crate::streams::Stream;
use crate::threads;
use core::sync::atomic::{AtomicU32, Ordering};
use rdma_engine::abi::arena::flags;
use rdma_engine::abi::log::Event;
use rdma_engine::abi::message::WAKE;
use rdma_engine::abi::record::count_add;
use rdma_engine::doorbell::Bell;
use rdma_engine::sys;

/// Arms the bell of what is waited for. The caller looks once more afterwards.
pub fn arm(s: &Stream, want: Want) {
    let Some(segment) = s.segment() else { return };
    match want {
        Want::In => {
            let d = segment.direction(s.into());
            Bell::new(&d.receiver.data_armed, &s.slot.rx.data_number).arm();
        }
        Want::Out => {
            let d = segment.direction(s.out());
            let t = &s.slot.tx;
            // Ring when a third is free: streaming must not wake per message.
            let limit = t.limit.load(Ordering::Relaxed);
            let ring = segment.ring(s.out());
            // The reader's place first: what has been taken since only makes the
            // goal a nearer one.
            let taken = d.cursor.consumed.load(Ordering::Relaxed);
            let flight = t.producer.in_flight(&ring, &d.cursor.consumed);
            let goal = flight.saturating_sub(limit * 2 / 3).max(1);
            let at = count_add(taken, goal);
            d.sender.room_at.store(at, Ordering::Relaxed);
            Bell::new(&d.sender.room_armed, &t.room_number).arm();
        }
    }
}

/// Takes the bell down, and looks after others of this process that may sleep
/// on it.
pub fn disarm(s: &Stream, want: Want) {
    let Some(segment) = s.segment() else { return };
    match want {
        Want::In => {
            let d = segment.direction(s.into());
            Bell::new(&d.receiver.data_armed, &s.slot.rx.data_number).disarm();
        }
        Want::Out => {
            let d = segment.direction(s.out());
            Bell::new(&d.sender.room_armed, &s.slot.tx.room_number).disarm();
        }
    }
    rdma_engine::sync::fence(Ordering::SeqCst);
    threads::wake_sleepers(s.index);
    crate::readiness::epoll::wake_sets(s);
}

/// The side channel has something: doorbells, or its end.
pub fn answer_side(s: &Stream, revents: i16) {
    answer_side_with(s, revents, 64);
}

/// The same, where `most` doorbells are taken. Each that comes is an edge to a set, and
/// a set takes many at once, so that the channel does not stay full behind its back.
pub fn answer_side_with(s: &Stream, revents: i16, most: u32) {
    drain(s, most);
    if revents & (libc::POLLHUP | libc::POLLERR) != 0 {
        peer_gone(s);
    }
    if handback::is_due(s) {
        handback::serve(s);
    }
    threads::wake_sleepers(s.index);
    crate::readiness::epoll::wake_sets(s);
}

/// Takes doorbells that have come, `most` at the most: what remains keeps the
/// descriptor readable.
fn drain(s: &Stream, most: u32) {
    let mut b = [0u8; 8];
    for _ in 0..most {
        match sys::recv_nowait(s.side(), &mut b) {
            1.. => {}
            0 => return peer_gone(s),
            _ => return,
        }
    }
}

/// The side channel has ended: the peer has closed, or is dead.
pub fn peer_gone(s: &Stream) {
    let before = s.slot.flags.fetch_or(flags::PEER_GONE, Ordering::AcqRel);
    if before & flags::PEER_GONE == 0 {
        let orderly = s.segment().is_some_and(|g| ready::peer_has_shut(s, g));
        s.log(Event::PeerGone, [u64::from(orderly), 0]);
    }
}

/// Rings the peer for the arming that is `due`, if any, and notes that in `rung`.
#[inline]
pub fn ring_if(s: &Stream, due: Option<u32>, rung: &AtomicU32) {
    if let Some(arming) = due {
        ring(s);
        rung.store(arming, Ordering::Relaxed);
    }
}

/// Rings the peer, armed or not.
#[cold]
pub fn ring(s: &Stream) {
    let r = sys::send_nowait(s.side(), &WAKE);
    // A full channel has rings enough under way.
    if r < 0 && r != -(libc::EAGAIN as isize) {
        peer_gone(s);
    }
}
