//! Bytes that come by the ring.

use super::super::iov::Iov;
use super::super::{add, bell, cutover, ending};
use super::by_tcp::from_tcp;
use super::{broken, peeks_for_all, Once};
use crate::streams::Stream;
use core::sync::atomic::Ordering;
use libc::{MSG_PEEK, MSG_TRUNC};
use rdma_engine::doorbell;
use rdma_engine::ring::{Consumer, Peek, Pull};
use rdma_engine::segment::Segment;

/// Bytes after which the writer is told how far we are.
const ENOUGH: usize = 4096;

/// Takes bytes from the ring.
#[inline]
pub(super) fn from_ring(
    s: &Stream,
    fd: i32,
    segment: Segment,
    iov: &Iov,
    fl: i32,
    alone: bool,
) -> Once {
    let rx = &s.slot.rx;
    let d = segment.direction(s.into());
    let ring = segment.ring(s.into());
    let c = Consumer::new(&ring, &rx.consumer, &d.cursor.consumed).alone(alone);
    let want = iov.left();
    if fl & MSG_PEEK != 0 && want > 0 {
        // Asked first: else more could come between the look and the record.
        let cut_off = peeks_for_all(fl) && c.is_cut_off();
        let seen = match peek_ring(s, segment, iov) {
            Ok(seen) => seen,
            Err(e) => return Once::Failed(e),
        };
        if seen > 0 && seen < want && cut_off {
            // What TCP holds stands behind it.
            let mut behind = *iov;
            behind.advance(seen);
            return match from_tcp(fd, &behind, usize::MAX, fl) {
                Once::Got(n) => Once::Got(seen + n),
                _ => Once::Got(seen),
            };
        }
        if seen > 0 {
            return Once::Got(seen);
        }
        // What has come since must not be taken either.
        return match c.peek() {
            Peek::Data => Once::Again,
            Peek::Empty => ending::at_end(s, fd, segment),
            Peek::CutBack => {
                cutover::take_cut_back(s, &c, segment);
                Once::Again
            }
            Peek::Broken => {
                broken(s);
                Once::Failed(libc::ECONNRESET)
            }
        };
    }
    let discard = fl & MSG_TRUNC != 0;
    let mut total = 0usize;
    let mut turned = false;
    let mut records = 0;
    loop {
        if total == want && want > 0 {
            break;
        }
        let pulled = c.pull_many(want - total, ENOUGH, |mem, off, n, done| {
            records += 1;
            if discard {
                Ok(n)
            } else {
                iov.copy_out(mem, off, n, total + done)
            }
        });
        match pulled {
            Pull::Data(0) => return Once::Got(0),
            Pull::Data(n) => total += n,
            Pull::Fault(f) if total == 0 => return Once::Failed(f.0),
            Pull::Fault(_) => break,
            Pull::Empty => break,
            Pull::CutBack => {
                cutover::take_cut_back(s, &c, segment);
                turned = true;
                break;
            }
            Pull::Broken => {
                if total == 0 {
                    broken(s);
                    return Once::Failed(libc::ECONNRESET);
                }
                break;
            }
        }
    }
    if total == 0 {
        return if turned {
            Once::Again
        } else {
            ending::at_end(s, fd, segment)
        };
    }
    add(&rx.wire_bytes, total as u64);
    add(&rx.wire_messages, 1);
    s.local.records.store(records, Ordering::Relaxed);
    bell::ring_if(s, room_bell(s, segment), &rx.room_rung);
    if turned {
        return Once::Turn(total);
    }
    Once::Got(total)
}

/// Copies what the ring holds, and takes nothing. `Err` is an errno.
pub(super) fn peek_ring(s: &Stream, segment: Segment, iov: &Iov) -> Result<usize, i32> {
    let d = segment.direction(s.into());
    let ring = segment.ring(s.into());
    let c = Consumer::new(&ring, &s.slot.rx.consumer, &d.cursor.consumed);
    let mut fault = None;
    let seen = c.look_ahead(iov.left(), |mem, off, n, at| {
        if let Err(f) = iov.copy_out(mem, off, n, at) {
            fault = Some(f.0);
        }
    });
    fault.map_or(Ok(seen), Err)
}

/// After bytes were taken: does the sender wait for that room?
fn room_bell(s: &Stream, segment: Segment) -> Option<u32> {
    let d = segment.direction(s.into());
    // The position was published by a SeqCst read-modify-write.
    if d.sender.room_armed.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let at = d.sender.room_at.load(Ordering::Relaxed);
    let taken = s.slot.rx.consumer.count();
    let reached = rdma_engine::abi::record::count_sub(taken, at) < 1 << 39;
    let due = || doorbell::must_ring(&d.sender.room_armed, &s.slot.rx.room_rung);
    reached.then(due).flatten()
}
