//! Promises, cuts and recalls: how a direction changes its wire.
//!
//! A direction changes only while no kernel transfer on it is in flight at
//! either end (invariant I2). The receiver sees to its own side before it
//! promises, the sender to its own before it cuts.

use super::tcp::{counts, read_from_tcp, urgent, ESTABLISHED};
use super::{bell, handback, seize};
use crate::streams::Stream;
use crate::threads::{self, Kind};
use crate::{startup, tls};
use core::sync::atomic::Ordering;
use rdma_engine::abi::arena::{flags, Phase, RxMode};
use rdma_engine::abi::log::Event;
use rdma_engine::abi::reason::Reason;
use rdma_engine::abi::segment::gate;
use rdma_engine::doorbell::must_ring_after_store;
use rdma_engine::ring::Producer;
use rdma_engine::sys;

/// States of `Tx::fast`.
pub mod tx {
    /// On TCP.
    pub const PLAIN: u32 = 0;
    /// On the wire.
    pub const FAST: u32 = 1;
    /// A cut-over is being made, with the lock held.
    pub const CUTTING: u32 = 2;
    /// The peer has returned the ring: what it has not taken goes by TCP, before
    /// anything else (see [`super::handback`]).
    pub const OWING: u32 = 3;
}

/// Every so many calls, a look at what may be done next. Cheap when nothing is.
#[inline]
pub fn progress(s: &Stream, fd: i32) {
    if s.phase() == Phase::Attached
        && s.slot.rx_mode() != RxMode::Plain
        && s.slot.tx.fast.load(Ordering::Relaxed) == tx::FAST
    {
        return;
    }
    step(s, fd);
}

/// Takes the next step, if it is time: of the offer, or of a promise.
#[cold]
fn step(s: &Stream, fd: i32) {
    // The call may have outlived the descriptor, and the stream.
    let fd = s.number(fd);
    if fd < 0 || !s.slot.is(s.generation) {
        return;
    }
    let calls = s.local.calls.fetch_add(1, Ordering::Relaxed);
    // 0, 1, 2, 4, 8, 16, 32, 64, 128, 192, 256, ...
    let due = calls & calls.wrapping_sub(1) == 0 || calls.is_multiple_of(64);
    if !due && startup::chaos() == 0 {
        return;
    }
    if s.phase() == Phase::Offered {
        crate::rendezvous::step(s, fd);
    }
    if s.phase() == Phase::Attached && s.slot.rx_mode() == RxMode::Plain {
        promise(s, fd);
        handback::detach(s);
    }
}

/// The receiver's promise: no thread of mine is inside a plain kernel receive
/// on this stream, and none will be.
pub fn promise(s: &Stream, fd: i32) {
    if s.pinned()
        || s.slot
            .has(flags::TCP_END | flags::PEER_GONE | flags::SHUT_RD)
    {
        return;
    }
    if !s.is_sole() {
        s.because(Reason::SharedEnd);
        return;
    }
    let Some(segment) = s.segment() else { return };
    let me = tls::tid();
    // A step in the midst of another of ours can wait.
    if !s.slot.control.try_acquire(me) {
        return;
    }
    let promised = sys::with_signals_blocked(|| {
        // Epoll sets first: their lock comes before the direction's.
        if !crate::readiness::epoll::take_over(s) {
            return false;
        }
        let clean = !seize(s, &s.slot.rx.lock);
        let r = clean
            && s.slot.rx_mode() == RxMode::Plain
            && handback::take_up(s, segment)
            && promise_locked(s, fd, segment);
        s.slot.rx.lock.release(me);
        r
    });
    s.slot.control.release(me);
    if promised {
        s.local.calls.store(0, Ordering::Relaxed);
        // Who sleeps on the stream in an old manner has to arm its bell.
        threads::wake_sleepers(s.index);
        crate::readiness::epoll::watch(s);
    }
}

fn promise_locked(s: &Stream, fd: i32, segment: rdma_engine::segment::Segment) -> bool {
    let rx = &s.slot.rx;
    // From here on every receive takes the lock; those that began before show
    // in their marks.
    rx.mode.store(RxMode::Promised as u32, Ordering::SeqCst);
    let take_back = || {
        rx.mode.store(RxMode::Plain as u32, Ordering::SeqCst);
        false
    };
    if !threads::barrier() {
        crate::stream::open::pin(s, Reason::Kernel);
        return take_back();
    }
    // A fork names its child before it makes it; our word was published before.
    if !s.is_sole() || threads::anyone(&[Kind::PlainRecv, Kind::Many], s.index) {
        s.because(Reason::Attached);
        return take_back();
    }
    let Some(count) = read_from_tcp(fd).filter(|_| !urgent(fd)) else {
        s.because(Reason::Ended);
        return take_back();
    };
    rx.tcp_count.store(count, Ordering::Release);
    let d = segment.direction(s.into());
    d.receiver
        .buffer
        .store(receive_buffer(fd), Ordering::Relaxed);
    d.receiver.recall.store(0, Ordering::Relaxed);
    let epoch = rx.epoch.load(Ordering::Relaxed);
    let promised = d.gate.compare_exchange(
        gate::word(epoch, gate::IDLE),
        gate::word(epoch, gate::READY),
        Ordering::SeqCst,
        Ordering::Acquire,
    );
    if promised.is_err() {
        crate::stream::open::pin(s, Reason::Broken);
        return take_back();
    }
    s.log(Event::Promised, [epoch, count]);
    true
}

/// Bytes that the kernel would buffer for this receiver (SO_RCVBUF, socket(7)).
fn receive_buffer(fd: i32) -> u32 {
    sys::getsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, 0u32).unwrap_or(1 << 17)
}

/// Bytes that the kernel would buffer for this sender. The kernel tunes it up
/// to tcp_wmem's maximum, unless the program has fixed it (SO_BUF_LOCK).
fn send_buffer(fd: i32) -> u64 {
    const SO_BUF_LOCK: i32 = 72;
    const SNDBUF_LOCK: i32 = 1;
    const TCP_WMEM_MAX: u64 = 4 << 20;
    let now = u64::from(sys::getsockopt(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, 0u32).unwrap_or(0));
    match sys::getsockopt(fd, libc::SOL_SOCKET, SO_BUF_LOCK, 0i32) {
        Ok(locked) if locked & SNDBUF_LOCK != 0 => now,
        _ => now.max(TCP_WMEM_MAX),
    }
}

/// What may be in flight on the wire: what the two socket buffers would hold.
pub fn update_limit(s: &Stream, fd: i32) {
    const MOST: u64 = 24 << 20;
    let Some(segment) = s.segment() else { return };
    let d = segment.direction(s.out());
    let theirs = u64::from(d.receiver.buffer.load(Ordering::Relaxed));
    let limit = (send_buffer(fd) + theirs).clamp(4096, MOST);
    s.slot.tx.limit.store(limit, Ordering::Release);
}

/// The program has changed SO_RCVBUF: tells the sender.
pub fn tell_buffer(s: &Stream, fd: i32) {
    if let Some(segment) = s.segment() {
        let d = segment.direction(s.into());
        d.receiver
            .buffer
            .store(receive_buffer(fd), Ordering::Relaxed);
    }
}

/// Has the receiver promised, and may we cut over?
#[inline]
pub fn may_cut_over(s: &Stream) -> bool {
    let Some(segment) = s.segment() else {
        return false;
    };
    let d = segment.direction(s.out());
    gate::state(d.gate.load(Ordering::Acquire)) == gate::READY
        && d.receiver.recall.load(Ordering::Relaxed) == 0
        && !s.pinned()
}

/// Moves our sending direction to the wire, if nothing speaks against it.
#[cold]
pub fn cut_over(s: &Stream, fd: i32) -> bool {
    if s.slot
        .has(flags::TCP_END | flags::PEER_GONE | flags::SHUT_WR)
        || !s.is_sole()
    {
        return false;
    }
    let me = tls::tid();
    // No handler of ours may send between the count and the cut.
    let done = sys::with_signals_blocked(|| {
        let clean = !seize(s, &s.slot.tx.lock);
        let r =
            clean && s.slot.tx.fast.load(Ordering::Acquire) == tx::PLAIN && cut_over_locked(s, fd);
        s.slot.tx.lock.release(me);
        r
    });
    if done {
        crate::readiness::epoll::watch(s);
    }
    done
}

fn cut_over_locked(s: &Stream, fd: i32) -> bool {
    let t = &s.slot.tx;
    let Some(segment) = s.segment() else {
        return false;
    };
    let d = segment.direction(s.out());
    // Senders that begin now find CUTTING and wait for the lock; those that
    // began before show in their marks.
    t.fast.store(tx::CUTTING, Ordering::SeqCst);
    // A fork names its child before it makes it; our word was published before.
    let quiet = threads::barrier() && s.is_sole() && !threads::anyone(&[Kind::PlainSend], s.index);
    let cut = quiet
        .then(|| counts(fd))
        .flatten()
        .filter(|c| c.state == ESTABLISHED)
        .is_some_and(|c| {
            let epoch = t.epoch.load(Ordering::Relaxed);
            // Else the receiver may yet have to read where we cut the last time.
            if d.gate.load(Ordering::Acquire) != gate::word(epoch, gate::READY) {
                return false;
            }
            d.cut_at.store(c.sent, Ordering::Relaxed);
            // Partner: the receiver's acquire load of the gate.
            d.gate
                .compare_exchange(
                    gate::word(epoch, gate::READY),
                    gate::word(epoch, gate::FAST),
                    Ordering::SeqCst,
                    Ordering::Acquire,
                )
                .is_ok()
        });
    if cut {
        let epoch = t.epoch.load(Ordering::Relaxed);
        let at = d.cut_at.load(Ordering::Relaxed);
        s.log(Event::CutOver, [epoch, at]);
        update_limit(s, fd);
        s.because(Reason::None);
        s.slot.flags.fetch_or(flags::WAS_FAST, Ordering::AcqRel);
    }
    let state = if cut { tx::FAST } else { tx::PLAIN };
    t.fast.store(state, Ordering::SeqCst);
    cut
}

/// Moves our sending direction back to TCP: later bytes go there, behind those that the
/// receiver has returned ([`handback`]). False if that cannot be done now (the ring is
/// full).
#[cold]
pub fn cut_back(s: &Stream) -> bool {
    let Some(segment) = s.segment() else {
        return false;
    };
    let me = tls::tid();
    let d = segment.direction(s.out());
    let done = sys::with_signals_blocked(|| {
        let stolen = seize(s, &s.slot.tx.lock);
        let r = !stolen && cut_back_locked(s, segment);
        s.slot.tx.lock.release(me);
        r
    });
    if done {
        let rung = &s.slot.tx.data_rung;
        bell::ring_if(s, must_ring_after_store(&d.receiver.data_armed, rung), rung);
        crate::readiness::epoll::watch(s);
        threads::wake_sleepers(s.index);
    }
    done
}

fn cut_back_locked(s: &Stream, segment: rdma_engine::segment::Segment) -> bool {
    let t = &s.slot.tx;
    let d = segment.direction(s.out());
    let epoch = t.epoch.load(Ordering::Relaxed);
    if t.fast.load(Ordering::Acquire) != tx::FAST {
        return false;
    }
    let ring = segment.ring(s.out());
    let Some(p) = Producer::new(&ring, &t.producer, &d.cursor.consumed, false) else {
        return false;
    };
    let (fast, left) = (gate::word(epoch, gate::FAST), gate::word(epoch, gate::LEFT));
    let (ok, fail) = (Ordering::SeqCst, Ordering::Acquire);
    // Partner: the receiver's, in `handback`. Who comes first says whose the bytes are
    // that it has not taken.
    let returned = match d.gate.compare_exchange(fast, left, ok, fail) {
        Ok(_) => false,
        // An earlier attempt, or one who died there, did not get further.
        Err(now) if now == left => false,
        Err(now) if now == gate::word(epoch, gate::RETURNED) => true,
        Err(_) => return false,
    };
    if !p.push_cut_back() {
        return false;
    }
    if returned && !handback::owe(s, segment) {
        super::receive::broken(s);
    }
    t.epoch.store(epoch + 1, Ordering::Release);
    let state = if returned { tx::OWING } else { tx::PLAIN };
    t.fast.store(state, Ordering::SeqCst);
    let reason = match s.slot.pin.load(Ordering::Acquire) {
        0 => Reason::Forced as u32,
        pinned => pinned,
    };
    s.log(Event::CutBack, [epoch, u64::from(reason)]);
    true
}

/// Should the sender leave the wire now: asked by the receiver, pinned, or
/// forced by a test?
#[inline]
pub fn should_cut_back(s: &Stream, recall: u32) -> bool {
    recall != 0 || s.pinned() || (startup::chaos() != 0 && tls::chance(startup::chaos()))
}

/// Asks both directions off the wire: takes a promise back, recalls the
/// peer's sender, and cuts our own direction back. Whether they return is up to
/// [`Stream::is_sole`], and to pins.
pub fn recall(s: &Stream) {
    let Some(segment) = s.segment() else { return };
    let d = segment.direction(s.into());
    let (ok, fail) = (Ordering::SeqCst, Ordering::Relaxed);
    if d.receiver.recall.compare_exchange(0, 1, ok, fail).is_ok() {
        s.log(Event::Recalled, [0, 0]);
    }
    take_back_promise(s);
    if s.slot.tx.fast.load(Ordering::Acquire) == tx::FAST {
        cut_back(s);
    }
}

/// Ready to Idle, unless the sender was faster.
fn take_back_promise(s: &Stream) {
    let me = tls::tid();
    let back = sys::with_signals_blocked(|| {
        if seize(s, &s.slot.rx.lock) {
            s.slot.rx.lock.release(me);
            return false;
        }
        let back = withdraw_promise(s);
        s.slot.rx.lock.release(me);
        back
    });
    if back {
        threads::wake_sleepers(s.index);
    }
}

/// [`take_back_promise`] with the direction's lock held. False if there was none,
/// or the sender was faster.
pub fn withdraw_promise(s: &Stream) -> bool {
    let Some(segment) = s.segment() else {
        return false;
    };
    let d = segment.direction(s.into());
    let epoch = s.slot.rx.epoch.load(Ordering::Relaxed);
    let back = d.gate.compare_exchange(
        gate::word(epoch, gate::READY),
        gate::word(epoch, gate::IDLE),
        Ordering::SeqCst,
        Ordering::Acquire,
    );
    if back.is_ok() {
        let plain = RxMode::Plain as u32;
        s.slot.rx.mode.store(plain, Ordering::SeqCst);
        s.log(Event::Revoked, [epoch, 0]);
    }
    back.is_ok()
}

/// The receiver, with its lock held, has found the cut-back record at the head
/// of the ring: takes it, and TCP carries on. No handler comes in between, and
/// where one was faster nothing is done twice.
pub fn take_cut_back(
    s: &Stream,
    c: &rdma_engine::ring::Consumer<'_, rdma_engine::ring::RawMemory>,
    segment: rdma_engine::segment::Segment,
) {
    sys::with_signals_blocked(|| {
        if c.pass_cut_back() {
            received_cut_back(s, segment);
        }
    });
}

pub(super) fn received_cut_back(s: &Stream, segment: rdma_engine::segment::Segment) {
    let rx = &s.slot.rx;
    let d = segment.direction(s.into());
    let next = rx.epoch.load(Ordering::Relaxed) + 1;
    rx.epoch.store(next, Ordering::Release);
    s.log(Event::CutBackSeen, [(next - 1), 0]);
    rx.mode.store(RxMode::Plain as u32, Ordering::SeqCst);
    d.gate.store(gate::word(next, gate::IDLE), Ordering::SeqCst);
    s.local.calls.store(0, Ordering::Relaxed);
    super::heat::set(s, 0);
    // Who sleeps on the wire has to listen to TCP again.
    threads::wake_sleepers(s.index);
}
