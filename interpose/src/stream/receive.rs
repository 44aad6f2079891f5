//! The receiving calls.

use super::bell;
use super::iov::{Iov, Parts};
use super::wait::{Waiter, Want};
use super::{add, close, cutover, enter, enter_first, flag_list, hold, First, Held, Inside};
use super::{ending, ready};
use crate::errno;
use crate::streams::Stream;
use crate::threads::{self, Doing, Kind};
use core::sync::atomic::Ordering;
use libc::{iovec, MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC, MSG_WAITALL};
use rdma_engine::abi::arena::{flags, RxMode};
use rdma_engine::abi::log::Event;
use rdma_engine::abi::reason::Reason;
use rdma_engine::abi::segment::gate;
use rdma_engine::doorbell;
use rdma_engine::ring::{Consumer, Peek, Pull};
use rdma_engine::segment::Segment;
use rdma_engine::{sys, syscall};

/// Bytes after which the writer is told how far we are.
const ENOUGH: usize = 4096;

/// A receiving call that is served in the first place: how the message header,
/// if any, is filled in is the hook's business.
///
/// `plain` is the program's own call, made when the stream is Plain. Returns
/// libc's convention: a count, or -1 and errno.
#[inline(always)]
pub fn receive(fd: i32, parts: impl Parts, fl: i32, plain: impl Fn() -> isize) -> isize {
    match enter_first(fd, Kind::PlainRecv) {
        First::Other => plain(),
        First::Stream(inside) => begun(inside, fd, parts, fl, plain),
        First::Unusual => unusual(fd, parts, fl, plain),
    }
}

/// [`receive`] in a handler, as the thread's first call, or on a new descriptor.
#[cold]
#[inline(never)]
fn unusual(fd: i32, parts: impl Parts, fl: i32, plain: impl Fn() -> isize) -> isize {
    match enter(fd, Kind::PlainRecv) {
        Some(inside) => begun(inside, fd, parts, fl, plain),
        None => plain(),
    }
}

/// [`receive`] on a stream.
#[inline(always)]
fn begun(inside: Inside, fd: i32, parts: impl Parts, fl: i32, plain: impl Fn() -> isize) -> isize {
    if inside.is_attached() {
        return attached(inside, fd, parts, fl, plain);
    }
    inside.plainly(fd, plain, |tcp| (&tcp.received, &tcp.receives))
}

/// [`receive`] for a stream whose ends have found each other.
#[inline(never)]
fn attached(
    inside: Inside,
    fd: i32,
    parts: impl Parts,
    fl: i32,
    plain: impl FnOnce() -> isize,
) -> isize {
    threads::cancellation_point();
    if fl & flag_list::KERNEL_RECEIVES != 0 {
        return plain();
    }
    let Some((s, doing)) = inside.stream() else {
        return plain();
    };
    let mut iov = match Iov::new(parts.all()) {
        Ok(iov) => iov.with_control(parts.control()),
        Err(_) => return plain(),
    };
    doing.now(Kind::Use, s.index);
    let n = merged(&s, fd, &mut iov, fl, &doing);
    drop(doing);
    if close::any_grave() {
        close::dig();
    }
    errno::result(n)
}

/// Counts bytes that came by TCP.
#[inline]
pub fn count_plain(s: &Stream, n: usize) {
    add(&s.slot.tcp.received, n as u64);
    add(&s.slot.tcp.receives, 1);
}

/// What one look at the stream came to.
pub enum Once {
    /// So many bytes; 0 is the end of the stream, or an empty buffer.
    Got(usize),
    /// So many bytes, behind which the direction changes its wire. What the other
    /// wire holds belongs to the same call: a short count says «that was all» to
    /// readers that wait for an edge next.
    Turn(usize),
    /// Nothing there now.
    Empty,
    /// The direction has just changed its wire: look again.
    Again,
    /// An errno.
    Failed(i32),
}

/// A receive in the merged manner; `-errno` or a count.
fn merged(s: &Stream, fd: i32, iov: &mut Iov, fl: i32, doing: &Doing) -> isize {
    cutover::progress(s, fd);
    let mut total = 0usize;
    let mut waiter = Waiter::new(fd, Want::In);
    let whole = fl & MSG_WAITALL != 0 && fl & MSG_PEEK == 0;
    if fl & MSG_DONTWAIT == 0 {
        waiter.gather(s);
    }
    loop {
        match once(s, waiter.fd, iov, fl, doing) {
            Once::Again => {}
            Once::Turn(n) => {
                total += n;
                iov.advance(n);
                waiter.served(s);
                if iov.left() == 0 || !whole && !ready::more(s, waiter.fd) {
                    return total as isize;
                }
            }
            Once::Got(0) => return total as isize,
            Once::Got(n) if peeks_for_all(fl) && n < iov.left() => {
                // What is there stays there, and more is wanted.
                if waiter.wait_for_more(s, fl & MSG_DONTWAIT != 0).is_err() {
                    return n as isize;
                }
            }
            Once::Got(n) => {
                total += n;
                iov.advance(n);
                if fl & MSG_PEEK == 0 {
                    waiter.got(s, n, iov.left());
                }
                if !whole || iov.left() == 0 {
                    return total as isize;
                }
            }
            Once::Failed(e) => {
                return if total > 0 {
                    total as isize
                } else {
                    -(e as isize)
                }
            }
            Once::Empty if total > 0 && !whole => return total as isize,
            Once::Empty => {
                if let Err(e) = waiter.wait(s, fl & MSG_DONTWAIT != 0, doing) {
                    return if total > 0 {
                        total as isize
                    } else {
                        -(e as isize)
                    };
                }
            }
        }
    }
}

/// A MSG_PEEK that waits for all of its bytes?
fn peeks_for_all(fl: i32) -> bool {
    fl & MSG_PEEK != 0 && fl & MSG_WAITALL != 0
}

/// One look, which never blocks.
fn once(s: &Stream, fd: i32, iov: &Iov, fl: i32, doing: &Doing) -> Once {
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

/// Reads from TCP without blocking, `most` bytes at the most.
fn from_tcp(fd: i32, iov: &Iov, most: usize, fl: i32) -> Once {
    let mut parts = [iovec {
        iov_base: core::ptr::null_mut(),
        iov_len: 0,
    }; 64];
    let n = iov.rest(most, &mut parts);
    // SAFETY: all zero is a valid header; the parts are the program's own.
    let r = unsafe {
        let mut msg: libc::msghdr = core::mem::zeroed();
        msg.msg_iov = parts.as_mut_ptr();
        msg.msg_iovlen = n;
        if let Some(control) = iov.control() {
            control.lend(&mut msg);
        }
        let fl = (fl & !MSG_WAITALL) | MSG_DONTWAIT;
        let r = syscall!(libc::SYS_recvmsg, fd, &mut msg as *mut libc::msghdr, fl);
        if let (0.., Some(control)) = (r, iov.control()) {
            control.take_back(&msg);
        }
        r
    };
    match r {
        n if n >= 0 => Once::Got(n as usize),
        r if r == -(libc::EAGAIN as isize) => Once::Empty,
        r => Once::Failed(-r as i32),
    }
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

/// Reads from TCP after a promise, as long as no cut is seen. The sender may cut over, and
/// back again, at any time: only what stood in the queue when there was no cut yet is
/// sure to come before it.
fn before_cut(s: &Stream, fd: i32, segment: Segment, iov: &Iov, fl: i32) -> Once {
    if iov.left() == 0 {
        return counted(s, fd, iov, usize::MAX, fl);
    }
    let queued = super::tcp::queued(fd);
    if see_cut(s, segment) {
        return Once::Again;
    }
    if queued > 0 {
        return counted(s, fd, iov, queued as usize, fl);
    }
    // Nothing, or the end: a look that takes nothing.
    let mut byte = 0u8;
    let flags = libc::MSG_PEEK | MSG_DONTWAIT;
    // SAFETY: one byte of our own stack.
    match unsafe { syscall!(libc::SYS_recvfrom, fd, &mut byte as *mut u8, 1, flags, 0, 0) } {
        0 => {
            if !s.slot.has(flags::SHUT_RD) {
                s.slot.flags.fetch_or(flags::TCP_END, Ordering::AcqRel);
            }
            Once::Got(0)
        }
        1 => {
            // At the urgent mark the kernel counts none of what it has.
            if super::tcp::queued(fd) == 0 {
                cutover::withdraw_promise(s);
            }
            Once::Again
        }
        e if e == -(libc::EAGAIN as isize) => Once::Empty,
        e => Once::Failed(-e as i32),
    }
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

/// Reads from TCP and keeps the count of its bytes exact.
fn counted(s: &Stream, fd: i32, iov: &Iov, most: usize, fl: i32) -> Once {
    let rx = &s.slot.rx;
    if s.slot.has(flags::UNCOUNTED) {
        // The holder has died, perhaps between reading and counting. If the kernel
        // cannot say now, the next read asks again.
        sys::with_signals_blocked(|| {
            if let Some(n) = super::tcp::read_from_tcp(fd) {
                rx.tcp_count.store(n, Ordering::Release);
                s.slot.flags.fetch_and(!flags::UNCOUNTED, Ordering::AcqRel);
            }
        });
    }
    // No handler of ours may read between reading and counting.
    let r = sys::with_signals_blocked(|| {
        let r = from_tcp(fd, iov, most, fl);
        if let Once::Got(n) = r {
            if fl & MSG_PEEK == 0 {
                rx.tcp_count.fetch_add(n as u64, Ordering::AcqRel);
            }
        }
        r
    });
    match r {
        Once::Got(n) if n > 0 && fl & MSG_PEEK == 0 => count_plain(s, n),
        Once::Got(0) if iov.left() > 0 && !s.slot.has(flags::SHUT_RD) => {
            if s.slot.rx_mode() == RxMode::Fast {
                // TCP ends before the sender's own X: bytes are missing.
                broken(s);
                return Once::Failed(libc::ECONNRESET);
            }
            s.slot.flags.fetch_or(flags::TCP_END, Ordering::AcqRel);
        }
        _ => {}
    }
    r
}

/// Takes bytes from the ring.
fn from_ring(s: &Stream, fd: i32, segment: Segment, iov: &Iov, fl: i32, alone: bool) -> Once {
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
fn peek_ring(s: &Stream, segment: Segment, iov: &Iov) -> Result<usize, i32> {
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
