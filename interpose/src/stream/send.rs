//! The sending calls.

use super::bell;
use super::cutover::{self, tx};
use super::iov::{Iov, Parts};
use super::leave::leave_wire;
use super::receive::broken;
use super::wait::{Waiter, Want};
use super::{
    add, close, ending, enter, enter_first, flag_list, handback, hold, ready, First, Held, Inside,
};
use crate::streams::Stream;
use crate::threads::{self, Doing, Kind};
use crate::{errno, real};
use core::sync::atomic::Ordering;
use libc::{iovec, MSG_DONTWAIT};
use rdma_engine::abi::arena::flags;
use rdma_engine::abi::reason::Reason;
use rdma_engine::abi::segment::{gate, RETURNED};
use rdma_engine::doorbell;
use rdma_engine::ring::{Fault, Producer, Push, RawMemory};
use rdma_engine::segment::Segment;

/// Large writes are published in pieces, so that the two copies overlap.
pub const PIECE: usize = 8192;
/// A message that is shorter lies in one line, which the reader polls: there is nothing
/// to hand over.
const SHORT: usize = 57;
/// Sends after which the peer is looked for, if none of them had to wait.
const UNCHECKED: u32 = 256;

/// A sending call. `plain` is the program's own call, made when the direction
/// is on TCP. Returns libc's convention: a count, or -1 and errno.
#[inline(always)]
pub fn send(fd: i32, parts: impl Parts, fl: i32, plain: impl Fn() -> isize) -> isize {
    match enter_first(fd, Kind::PlainSend) {
        First::Other => plain(),
        First::Stream(inside) => begun(inside, fd, parts, fl, plain),
        First::Unusual => unusual(fd, parts, fl, plain),
    }
}

/// [`send`] in a handler, as the thread's first call, or on a new descriptor.
#[cold]
#[inline(never)]
fn unusual(fd: i32, parts: impl Parts, fl: i32, plain: impl Fn() -> isize) -> isize {
    match enter(fd, Kind::PlainSend) {
        Some(inside) => begun(inside, fd, parts, fl, plain),
        None => plain(),
    }
}

/// [`send`] on a stream.
#[inline(always)]
fn begun(inside: Inside, fd: i32, parts: impl Parts, fl: i32, plain: impl Fn() -> isize) -> isize {
    if inside.is_attached() {
        return attached(inside, fd, parts, fl, plain);
    }
    inside.plainly(fd, plain, |tcp| (&tcp.sent, &tcp.sends))
}

/// [`send`] for a stream whose ends have found each other.
#[inline(never)]
fn attached(
    inside: Inside,
    fd: i32,
    parts: impl Parts,
    fl: i32,
    plain: impl FnOnce() -> isize,
) -> isize {
    threads::cancellation_point();
    let Some((s, doing)) = inside.stream() else {
        return plain();
    };
    let n = marked(&s, &doing, fd, parts.all(), fl, plain);
    drop(doing);
    if close::any_grave() {
        close::dig();
    }
    n
}

#[inline]
fn marked(
    s: &Stream,
    doing: &Doing,
    fd: i32,
    parts: &[iovec],
    fl: i32,
    plain: impl FnOnce() -> isize,
) -> isize {
    let Ok(mut iov) = Iov::new(parts) else {
        return plain();
    };
    doing.now(Kind::Use, s.index);
    if let Some(reason) = flag_list::pins_sender(fl) {
        if !leave_wire(s, reason) {
            // The peer has not seen the last change of wire yet, and order goes
            // before everything.
            errno::set(libc::ENOBUFS);
            return -1;
        }
        return plain();
    }
    merged(s, fd, &mut iov, fl, doing, plain)
}

/// Counts bytes that went by TCP.
#[inline]
pub fn count_plain(s: &Stream, n: usize) {
    add(&s.slot.tcp.sent, n as u64);
    add(&s.slot.tcp.sends, 1);
}

/// What one attempt came to.
pub enum Once {
    /// So many bytes are on the wire.
    Put(usize),
    /// No room.
    Full,
    /// The direction is on TCP (now).
    OnTcp,
    /// An errno.
    Failed(i32),
}

fn merged(
    s: &Stream,
    fd: i32,
    iov: &mut Iov,
    fl: i32,
    doing: &Doing,
    plain: impl FnOnce() -> isize,
) -> isize {
    cutover::progress(s, fd);
    let mut total = 0usize;
    let mut plain = Some(plain);
    let mut room = Room::new(fd);
    loop {
        let left = iov.left();
        let r = if left == 0 {
            Once::OnTcp
        } else {
            once(s, room.fd(), left, room.window_only, |mem, off, n, done| {
                iov.copy_in_behind(mem, off, n, done)
            })
        };
        match r {
            Once::Put(n) => {
                total += n;
                iov.advance(n);
                room.window_only = true;
                if iov.left() == 0 {
                    return total as isize;
                }
            }
            Once::Full => {
                if let Err(e) = room.wait(s, fl & MSG_DONTWAIT != 0, doing) {
                    return ended(total, e);
                }
            }
            Once::Failed(e) => return ended(total, e),
            Once::OnTcp => {
                if room.fd() != fd {
                    // Closed while we slept: the number may name something else.
                    plain = None;
                }
                if let Some(n) = by_tcp(s, room.fd(), iov, fl, total, doing, &mut plain) {
                    return n;
                }
            }
        }
    }
}

fn ended(total: usize, e: i32) -> isize {
    if total > 0 {
        return total as isize;
    }
    errno::set(e);
    -1
}

/// Sends what is left by TCP. `None`: the direction has just been cut over.
fn by_tcp(
    s: &Stream,
    fd: i32,
    iov: &Iov,
    fl: i32,
    total: usize,
    doing: &Doing,
    plain: &mut Option<impl FnOnce() -> isize>,
) -> Option<isize> {
    doing.now(Kind::PlainSend, s.index);
    // A cut-over that begins now sees our mark and is given up.
    if s.slot.tx.fast.load(Ordering::Acquire) != tx::PLAIN && !gone(s) && iov.left() > 0 {
        doing.now(Kind::Use, s.index);
        return None;
    }
    let n = match plain.take() {
        Some(f) if total == 0 => f(),
        _ => rest_by_tcp(fd, iov, fl),
    };
    doing.now(Kind::Use, s.index);
    if n > 0 {
        count_plain(s, n as usize);
    }
    Some(match n {
        n if n >= 0 => total as isize + n,
        _ if total > 0 => total as isize,
        n => n,
    })
}

fn rest_by_tcp(fd: i32, iov: &Iov, fl: i32) -> isize {
    let mut parts = [iovec {
        iov_base: core::ptr::null_mut(),
        iov_len: 0,
    }; 64];
    let n = iov.rest(usize::MAX, &mut parts);
    // SAFETY: all zero is a valid header; the parts are the program's own.
    unsafe {
        let mut msg: libc::msghdr = core::mem::zeroed();
        msg.msg_iov = parts.as_mut_ptr();
        msg.msg_iovlen = n;
        real::sendmsg(fd, &msg, fl)
    }
}

/// Is there nobody to read the ring any more? Then TCP gives the errors that it
/// would have given.
#[inline]
pub fn gone(s: &Stream) -> bool {
    s.slot
        .has(flags::PEER_GONE | flags::SHUT_WR | flags::RESET | flags::TCP_DEAD)
        || s.segment().is_some_and(|g| ready::peer_has_closed(s, g))
}

/// One attempt to put up to `want` bytes on the wire, which never blocks.
/// `fill(mem, off, n, done)` copies the next piece, `done` bytes behind the
/// call's beginning.
#[inline]
pub fn once<F>(s: &Stream, fd: i32, want: usize, window_only: bool, fill: F) -> Once
where
    F: FnMut(&RawMemory, u32, u32, usize) -> Result<u32, Fault>,
{
    if s.slot.tx.fast.load(Ordering::Acquire) == tx::PLAIN
        && !(cutover::may_cut_over(s) && cutover::cut_over(s, fd))
    {
        return Once::OnTcp;
    }
    let Some(segment) = s.segment() else {
        return Once::OnTcp;
    };
    let recall = segment
        .direction(s.out())
        .receiver
        .recall
        .load(Ordering::Relaxed);
    if recall == RETURNED || handback::is_owing(s) {
        return if handback::serve(s) {
            Once::OnTcp
        } else {
            Once::Full
        };
    }
    if gone(s) {
        return if ending::meets_reset(s, segment) {
            Once::Failed(libc::ECONNRESET)
        } else {
            Once::OnTcp
        };
    }
    if cutover::should_cut_back(s, recall) && cutover::cut_back(s) {
        // The peer may have returned the ring at this very moment.
        return if handback::serve(s) {
            Once::OnTcp
        } else {
            Once::Full
        };
    }
    let unchecked = s.local.unchecked.load(Ordering::Relaxed) + 1 + (want >> 12) as u32;
    s.local.unchecked.store(unchecked, Ordering::Relaxed);
    if unchecked >= UNCHECKED {
        s.local.unchecked.store(0, Ordering::Relaxed);
        if s.slot.tx.producer.is_worn() {
            crate::stream::open::pin(s, Reason::Resources);
        }
        ending::check_peer(s, fd);
        cutover::update_limit(s, fd);
    }
    let held = hold(s, &s.slot.tx.lock);
    locked(s, segment, want, window_only, &held, fill)
}

fn locked<F>(
    s: &Stream,
    segment: Segment,
    want: usize,
    window_only: bool,
    held: &Held,
    mut fill: F,
) -> Once
where
    F: FnMut(&RawMemory, u32, u32, usize) -> Result<u32, Fault>,
{
    let t = &s.slot.tx;
    let d = segment.direction(s.out());
    match t.fast.load(Ordering::Acquire) {
        tx::FAST => {}
        tx::OWING => return Once::Full,
        _ if resolve(s, segment) => {}
        _ => return Once::OnTcp,
    }
    let ring = segment.ring(s.out());
    let Some(p) = Producer::new(&ring, &t.producer, &d.cursor.consumed, held.stolen) else {
        broken(s);
        return Once::Failed(libc::ECONNRESET);
    };
    let turns = (SHORT..=PIECE).contains(&want)
        && s.local.awaited.load(Ordering::Relaxed) != 0
        && s.local.answered.load(Ordering::Relaxed) == 0;
    let p = p.alone(held.alone()).awaited(turns);
    let limit = t.limit.load(Ordering::Relaxed) as usize;
    let mut total = 0;
    while total < want {
        let piece = (want - total).min(PIECE);
        match p.push(piece, limit, window_only, |mem, off, n| {
            fill(mem, off, n, total)
        }) {
            Push::Done(0) => break,
            Push::Done(n) => {
                total += n;
                let due = doorbell::must_ring(&d.receiver.data_armed, &t.data_rung);
                bell::ring_if(s, due, &t.data_rung);
            }
            Push::Full => break,
            Push::Fault(f) if total == 0 => return Once::Failed(f.0),
            Push::Fault(_) => break,
            Push::Broken => {
                broken(s);
                return Once::Failed(libc::ECONNRESET);
            }
        }
    }
    if total == 0 {
        t.full.fetch_add(1, Ordering::Relaxed);
        let at = d.cursor.consumed.load(Ordering::Relaxed);
        s.local.full_at.store(at | ready::FULL, Ordering::Relaxed);
        return Once::Full;
    }
    add(&t.wire_bytes, total as u64);
    add(&t.wire_messages, 1);
    let answered = u32::try_from(total).unwrap_or(u32::MAX);
    s.local.answered.store(answered, Ordering::Relaxed);
    Once::Put(total)
}

/// A holder died in the midst of a cut-over: did it get through?
#[cold]
fn resolve(s: &Stream, segment: Segment) -> bool {
    let t = &s.slot.tx;
    if t.fast.load(Ordering::Acquire) == tx::PLAIN {
        return false;
    }
    let word = segment.direction(s.out()).gate.load(Ordering::Acquire);
    let epoch = t.epoch.load(Ordering::Relaxed);
    let through = [gate::FAST, gate::LEFT, gate::RETURNED]
        .iter()
        .any(|state| word == gate::word(epoch, *state));
    let state = if through { tx::FAST } else { tx::PLAIN };
    t.fast.store(state, Ordering::SeqCst);
    through
}

/// A sending call's waiting for room: first within the window, whose memory is
/// warm in the cache, then in the whole ring.
pub struct Room {
    waiter: Waiter,
    pub window_only: bool,
    tries: u32,
}

impl Room {
    /// A call on `fd` that has not had to wait yet.
    pub fn new(fd: i32) -> Room {
        Room {
            waiter: Waiter::new(fd, Want::Out),
            window_only: true,
            tries: 0,
        }
    }

    /// The number by which the stream is reached.
    pub fn fd(&self) -> i32 {
        self.waiter.fd
    }

    /// The ring was full: waits, or widens. `Err` is an errno.
    pub fn wait(&mut self, s: &Stream, dontwait: bool, doing: &Doing) -> Result<(), i32> {
        if !self.window_only {
            let r = self.waiter.wait(s, dontwait, doing);
            self.tries = 0;
            return r;
        }
        self.tries += 1;
        let patient = !dontwait && self.tries < 8 && self.waiter.wait_for_window(s);
        self.window_only = patient;
        Ok(())
    }
}
