//! A stream that somebody will read who knows nothing of the wire: the program after an
//! exec, who gets the descriptor by SCM_RIGHTS, libc's stdio, the kernel's TLS.
//!
//! What the ring still holds then is no use there. Its reader closes the ring and
//! *returns* it (gate FAST to RETURNED); the sender, at its next call or when the bell
//! that comes with it wakes it, ends the epoch as for a cut-back and *owes* what was not
//! taken: it sends that again by TCP, before anything else. Nobody waits for the other. A
//! sender that never calls again keeps those bytes, and one that is killed then loses
//! them: that is what remains of the wire's promise.

use super::cutover::{self, tx};
use super::wait::call_ppoll;
use super::{bell, ready, receive, seize};
use crate::streams::{self, Stream};
use crate::{descriptors, threads, tls};
use core::sync::atomic::{AtomicBool, Ordering};
use rdma_engine::abi::arena::{flags, Phase, RxMode};
use rdma_engine::abi::log::Event;
use rdma_engine::abi::reason::Reason;
use rdma_engine::abi::segment::{gate, sender_flags, RETURNED};
use rdma_engine::lock::Acquired;
use rdma_engine::ring::{self, Consumer, Fault, Peek, Resent};
use rdma_engine::segment::Segment;
use rdma_engine::{sys, syscall};

/// Looks at a cut-back record that its sender is about to write.
const LOOKS: u32 = 1000;

/// For the reader: nothing is taken from the ring any more, and all input is TCP's
/// from now on. False if the sender has left the ring before, and unread bytes
/// stand there.
pub fn hand_back(s: &Stream) -> bool {
    let Some(segment) = s.segment().filter(|_| s.phase() == Phase::Attached) else {
        return true;
    };
    if s.slot.rx_mode() == RxMode::Plain {
        return true;
    }
    let done = sys::with_signals_blocked(|| {
        seize(s, &s.slot.rx.lock);
        let done = hand_back_locked(s, segment);
        s.slot.rx.lock.release(tls::tid());
        done
    });
    // The sender may be asleep, and our own sleepers listen to the wrong wire.
    bell::ring(s);
    threads::wake_sleepers(s.index);
    crate::readiness::epoll::watch(s);
    done
}

fn hand_back_locked(s: &Stream, segment: Segment) -> bool {
    let rx = &s.slot.rx;
    let d = segment.direction(s.into());
    match s.slot.rx_mode() {
        RxMode::Plain => return true,
        RxMode::Promised if cutover::withdraw_promise(s) => return true,
        RxMode::Promised if !receive::see_cut(s, segment) => return false,
        RxMode::Promised | RxMode::Fast => {}
    }
    let epoch = rx.epoch.load(Ordering::Relaxed);
    let place = rx.consumer.close();
    d.receiver.returned_at.store(place, Ordering::Relaxed);
    let (fast, returned) = (
        gate::word(epoch, gate::FAST),
        gate::word(epoch, gate::RETURNED),
    );
    let (ok, fail) = (Ordering::SeqCst, Ordering::Acquire);
    // Partner: the sender's, in `cutover::cut_back`, which reads the place behind it.
    if d.gate.compare_exchange(fast, returned, ok, fail).is_ok() {
        d.receiver.recall.store(RETURNED, Ordering::SeqCst);
        rx.mode.store(RxMode::Plain as u32, Ordering::SeqCst);
        s.log(Event::Returned, [epoch, 0]);
        return true;
    }
    rx.consumer.reopen();
    let ring = segment.ring(s.into());
    let c = Consumer::new(&ring, &rx.consumer, &d.cursor.consumed);
    for _ in 0..LOOKS {
        match c.peek() {
            Peek::CutBack => {
                cutover::take_cut_back(s, &c, segment);
                return true;
            }
            // Its FIN is TCP's last word, and all that comes yet.
            Peek::Empty if ready::peer_has_shut(s, segment) => {
                rx.mode.store(RxMode::Plain as u32, Ordering::SeqCst);
                return true;
            }
            Peek::Empty => sys::sched_yield(),
            _ => return false,
        }
    }
    false
}

/// Before the socket gets its FIN: what the peer has returned until now goes first, for
/// which `patience` ns are waited at the most; from now on it can return nothing. False if
/// something is owed still: then the end must not look like one.
pub fn close_gate(s: &Stream, patience: u64) -> bool {
    let deadline = sys::now_ns().saturating_add(patience);
    loop {
        settle(s, deadline.saturating_sub(sys::now_ns()));
        let Some(segment) = s.segment() else {
            return true;
        };
        if s.slot.tx.fast.load(Ordering::Acquire) != tx::FAST {
            return !is_owing(s);
        }
        let epoch = s.slot.tx.epoch.load(Ordering::Relaxed);
        let gate = &segment.direction(s.out()).gate;
        let (fast, left) = (gate::word(epoch, gate::FAST), gate::word(epoch, gate::LEFT));
        let (ok, fail) = (Ordering::SeqCst, Ordering::Acquire);
        // Partner: the reader's, in `hand_back`.
        match gate.compare_exchange(fast, left, ok, fail) {
            // At this very moment.
            Err(now) if gate::state(now) == gate::RETURNED => {
                serve(s);
                if sys::now_ns() >= deadline {
                    return !is_owing(s) && s.slot.tx.fast.load(Ordering::Acquire) == tx::PLAIN;
                }
            }
            _ => return true,
        }
    }
}

/// For the reader, with its lock held, before it promises anew: passes what was returned.
/// False if the sender has not done with it.
pub fn take_up(s: &Stream, segment: Segment) -> bool {
    let rx = &s.slot.rx;
    let d = segment.direction(s.into());
    // Partner: the sender's, in `flush`.
    let word = d.gate.load(Ordering::Acquire);
    match gate::state(word) {
        gate::RETURNED | gate::LEFT => return false,
        gate::RESENT => {}
        _ => return true,
    }
    let ring = segment.ring(s.into());
    let c = Consumer::new(&ring, &rx.consumer, &d.cursor.consumed);
    if gate::epoch(word) != rx.epoch.load(Ordering::Relaxed) || !ring::skip(&c, &rx.consumer) {
        crate::stream::open::pin(s, Reason::Broken);
        return false;
    }
    cutover::received_cut_back(s, segment);
    true
}

/// Says that from now on only TCP's word counts about this end.
pub fn go_away(s: &Stream) {
    if let Some(segment) = s.segment() {
        let words = &segment.direction(s.out()).sender.flags;
        words.fetch_or(sender_flags::AWAY, Ordering::AcqRel);
    }
}

/// Have we said so?
pub fn is_away(s: &Stream) -> bool {
    s.segment().is_some_and(|g| {
        let words = &g.direction(s.out()).sender.flags;
        words.load(Ordering::Relaxed) & sender_flags::AWAY != 0
    })
}

/// When the other end is away: takes apart what the two had in common, so that calls are
/// plain again, and the program that it has become may be looked for. Not beside another
/// thread's call, and not while an epoll set holds the side channel.
#[cold]
pub fn detach(s: &Stream) {
    let may = || {
        s.phase() == Phase::Attached
            && s.segment().is_some_and(|g| ready::peer_is_away(s, g))
            && s.slot.rx_mode() == RxMode::Plain
            && s.slot.tx.fast.load(Ordering::Acquire) == tx::PLAIN
            && s.local.epolls.load(Ordering::Acquire) == 0
            && s.is_sole()
    };
    let me = tls::tid();
    if !may() || !s.slot.control.try_acquire(me) {
        return;
    }
    sys::with_signals_blocked(|| {
        if may() {
            // Who begins now finds a plain stream; who began before shows in a mark.
            s.slot.phase.store(Phase::Plain as u32, Ordering::SeqCst);
            if threads::barrier() && !threads::others_in_use(s.index) {
                take_apart(s);
            } else {
                let attached = Phase::Attached as u32;
                s.slot.phase.store(attached, Ordering::SeqCst);
            }
        }
    });
    s.slot.control.release(me);
}

fn take_apart(s: &Stream) {
    descriptors::close(s.local.side.swap(0, Ordering::AcqRel) - 1);
    if let Some(segment) = s.take_segment() {
        // SAFETY: no other thread's mark names the stream, and we do not use the mapping
        // after this.
        unsafe { segment.unmap() };
    }
    s.slot.flags.fetch_and(!flags::PEER_GONE, Ordering::AcqRel);
    s.slot.offers.store(0, Ordering::Relaxed);
    s.because(Reason::Cold);
    s.log(Event::Detached, [0, 0]);
    super::heat::set(s, 0);
}

/// For the sender, with its lock held, when it has ended an epoch whose ring was
/// returned. False if the place is none.
pub fn owe(s: &Stream, segment: Segment) -> bool {
    let d = segment.direction(s.out());
    OWING.store(true, Ordering::Release);
    let place = d.receiver.returned_at.load(Ordering::Relaxed);
    s.slot.tx.owed.begin_where(place)
}

/// Has the peer returned the ring, and have we not done with that yet?
#[inline]
pub fn is_due(s: &Stream) -> bool {
    s.segment().is_some_and(|g| {
        let d = g.direction(s.out());
        d.receiver.recall.load(Ordering::Relaxed) == RETURNED
    }) && s.slot.tx.fast.load(Ordering::Acquire) != tx::PLAIN
}

/// Does our sending direction owe bytes to TCP?
#[inline]
pub fn is_owing(s: &Stream) -> bool {
    s.slot.tx.fast.load(Ordering::Acquire) == tx::OWING
}

/// Is any stream of ours owing, perhaps?
static OWING: AtomicBool = AtomicBool::new(false);

/// Sends what is owed, as far as TCP takes it now. True if nothing is left, and the
/// direction is on TCP.
#[cold]
pub fn serve(s: &Stream) -> bool {
    if s.slot.tx.fast.load(Ordering::Acquire) == tx::FAST {
        cutover::cut_back(s);
    }
    if is_owing(s) && sys::with_signals_blocked(|| flush(s)) {
        // Who sleeps on the wire has to listen to TCP.
        threads::wake_sleepers(s.index);
        crate::readiness::epoll::watch(s);
    }
    s.slot.tx.fast.load(Ordering::Acquire) == tx::PLAIN
}

/// True if the direction has just come to TCP.
fn flush(s: &Stream) -> bool {
    let t = &s.slot.tx;
    let me = tls::tid();
    // Taken in any case: a thread that died here may have sent, and not have noted it.
    let how = t.lock.acquire(me);
    let done = is_owing(s) && {
        if how == Acquired::Orphaned {
            receive::broken(s);
        }
        flush_locked(s)
    };
    t.lock.release(me);
    done
}

fn flush_locked(s: &Stream) -> bool {
    let t = &s.slot.tx;
    let (Some(segment), Some(fd)) = (s.segment(), s.any_fd()) else {
        return false;
    };
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    let sent = ring::resend(&segment.ring(s.out()), &t.owed, |mem, off, n| {
        // SAFETY: `n` bytes of the ring.
        match unsafe { syscall!(libc::SYS_sendto, fd, mem.bytes(off, n), n, flags, 0, 0) } {
            n @ 1.. => Ok(n as u32),
            e => Err(Fault(-e as i32)),
        }
    });
    match sent {
        Resent::Blocked(Fault(libc::EAGAIN)) => return false,
        Resent::Broken => receive::broken(s),
        // A connection that has ended: TCP tells.
        Resent::All | Resent::Blocked(_) => {}
    }
    let epoch = t.epoch.load(Ordering::Relaxed).wrapping_sub(1);
    let d = segment.direction(s.out());
    let (ok, fail) = (Ordering::SeqCst, Ordering::Relaxed);
    let (from, to) = (
        gate::word(epoch, gate::RETURNED),
        gate::word(epoch, gate::RESENT),
    );
    // Partner: the reader's, in `take_up`.
    let _ = d.gate.compare_exchange(from, to, ok, fail);
    t.fast.store(tx::PLAIN, Ordering::SeqCst);
    s.log(Event::Resent, [epoch, 0]);
    true
}

/// Before a sleep that does not listen for TCP's room on all of them: serves all streams
/// that owe something. True if some do still.
#[inline]
pub fn serve_all() -> bool {
    OWING.load(Ordering::Relaxed) && try_all()
}

#[cold]
fn try_all() -> bool {
    OWING.store(false, Ordering::Release);
    let mut left = false;
    for s in streams::ours().filter(is_owing) {
        left |= !serve(&s);
    }
    if left {
        OWING.store(true, Ordering::Release);
    }
    left
}

/// Waits until nothing is owed, for `patience` ns at the most.
fn settle(s: &Stream, patience: u64) {
    if !is_due(s) && !is_owing(s) {
        return;
    }
    let deadline = sys::now_ns().saturating_add(patience);
    while !serve(s) {
        let Some(left) = deadline.checked_sub(sys::now_ns()).filter(|n| *n > 0) else {
            return;
        };
        let fd = s.any_fd().unwrap_or(-1);
        let mut p = [libc::pollfd {
            fd,
            events: libc::POLLOUT,
            revents: 0,
        }];
        call_ppoll(&mut p, Some(left.min(10_000_000)));
    }
}
