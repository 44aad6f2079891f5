//! What a receiving call finds, without blocking.

use super::super::iov::Iov;
use super::super::{cutover, ending, hold, Held};
use super::by_ring::{from_ring, peek_ring};
use super::by_tcp::{before_cut, counted, from_tcp};
use super::{count_plain, peeks_for_all, Once};
use crate::streams::Stream;
use crate::threads::{Doing, Kind};
use core::sync::atomic::Ordering;
use libc::MSG_PEEK;
use rdma_engine::abi::arena::{flags, RxMode};
use rdma_engine::abi::log::Event;
use rdma_engine::abi::reason::Reason;
use rdma_engine::abi::segment::gate;
use rdma_engine::segment::Segment;
use rdma_engine::{sys, syscall};

/// One look, which never blocks.
#[inline]
pub(super) fn once(s: &Stream, fd: i32, iov: &Iov, fl: i32, doing: &Doing) -> Once {
    doing.now(Kind::PlainRecv, s.index);
    if s.slot.rx_mode() == RxMode::Plain {
        // A promise that begins now sees our mark and is taken back.
        let r = from_tcp(fd, iov, usize::MAX, fl);
        doing.now(Kind::Use, s.index);
        if let Once::Got(n @ 1..) = r {
            if fl & MSG_PEEK == 0 {
                count_plain(s, n);
            }
        }
        return match r {
            Once::Got(0) if iov.left() > 0 => ending::end_of_tcp(s),
            r => r,
        };
    }
    doing.now(Kind::Use, s.index);
    let Some(segment) = s.segment() else {
        return Once::Failed(libc::ECONNRESET);
    };
    let held = hold(s, &s.slot.rx.lock);
    locked(s, fd, segment, iov, fl, &held)
}

/// A receive with the direction's lock held, after a promise.
fn locked(s: &Stream, fd: i32, segment: Segment, iov: &Iov, fl: i32, held: &Held) -> Once {
    let rx = &s.slot.rx;
    match s.slot.rx_mode() {
        RxMode::Plain => return Once::Again,
        RxMode::Promised => {
            if !see_cut(s, segment) {
                let r = before_cut(s, fd, segment, iov, fl);
                let short = match r {
                    Once::Empty => true,
                    Once::Got(n) => n > 0 && n < iov.left() && fl & MSG_PEEK == 0,
                    _ => false,
                };
                // It may have cut in between.
                if short && see_cut(s, segment) {
                    return match r {
                        Once::Got(n) => Once::Turn(n),
                        _ => Once::Again,
                    };
                }
                if short && s.slot.has(flags::PEER_GONE) && cutover::withdraw_promise(s) {
                    return match r {
                        Once::Got(n) => Once::Turn(n),
                        _ => Once::Again,
                    };
                }
                return match r {
                    Once::Got(0) if iov.left() > 0 => ending::end_of_tcp(s),
                    r => r,
                };
            }
        }
        RxMode::Fast => {}
    }
    let left = rx
        .cut_at
        .load(Ordering::Relaxed)
        .wrapping_sub(rx.tcp_count.load(Ordering::Relaxed));
    if left > 0 {
        return match counted(s, fd, iov, left as usize, fl) {
            // A peek may be short, and stays on one wire, unless it has to wait for
            // all of its bytes.
            Once::Got(n) if n as u64 == left && n < iov.left() && peeks_for_all(fl) => {
                let mut behind = *iov;
                behind.advance(n);
                Once::Got(n + peek_ring(s, segment, &behind).unwrap_or(0))
            }
            Once::Got(n) if n as u64 == left && fl & MSG_PEEK == 0 => Once::Turn(n),
            r => r,
        };
    }
    from_ring(s, fd, segment, iov, fl, held.alone())
}

/// Has the sender cut over? Then its X is checked and taken.
pub fn see_cut(s: &Stream, segment: Segment) -> bool {
    let d = segment.direction(s.into());
    let state = gate::state(d.gate.load(Ordering::Acquire));
    if state != gate::FAST && state != gate::LEFT {
        return false;
    }
    // No handler may go further while we have not.
    sys::with_signals_blocked(|| see_cut_undisturbed(s, segment))
}

fn see_cut_undisturbed(s: &Stream, segment: Segment) -> bool {
    let rx = &s.slot.rx;
    let d = segment.direction(s.into());
    let epoch = rx.epoch.load(Ordering::Relaxed);
    // Partner: the sender's compare-and-swap of the gate.
    let word = d.gate.load(Ordering::Acquire);
    if word != gate::word(epoch, gate::FAST) && word != gate::word(epoch, gate::LEFT) {
        return false;
    }
    let cut_at = d.cut_at.load(Ordering::Relaxed);
    // What cannot be is treated as a broken peer: nothing more can be read.
    let ahead = cut_at.wrapping_sub(rx.tcp_count.load(Ordering::Relaxed));
    if ahead > 1 << 32 {
        broken(s);
    }
    rx.cut_at.store(cut_at, Ordering::Relaxed);
    rx.mode.store(RxMode::Fast as u32, Ordering::Release);
    s.slot.flags.fetch_or(flags::WAS_FAST, Ordering::AcqRel);
    s.log(Event::CutOverSeen, [epoch, cut_at]);
    true
}

/// The peer does what no honest library does: its stream ends in a reset, and
/// nothing else is harmed.
#[cold]
pub fn broken(s: &Stream) {
    s.slot.pin.store(Reason::Broken as u32, Ordering::Release);
    s.because(Reason::Broken);
    s.log(Event::Broken, [0, 0]);
    s.slot.flags.fetch_or(flags::RESET, Ordering::AcqRel);
    if let Some(fd) = s.any_fd() {
        // SAFETY: no memory is passed. The peer sees the end.
        unsafe { syscall!(libc::SYS_shutdown, fd, libc::SHUT_RDWR) };
    }
}
