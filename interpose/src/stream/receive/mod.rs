//! The receiving calls.
//!
//! * [`look`] – what is there now, on the wire that has its turn.
//! * [`by_tcp`], [`by_ring`] – bytes of the one and of the other.

mod by_ring;
mod by_tcp;
mod look;

pub use look::{broken, see_cut};

use super::iov::{Iov, Parts};
use super::ready;
use super::wait::{Waiter, Want};
use super::{add, close, cutover, enter, enter_first, flag_list, First, Inside};
use crate::errno;
use crate::streams::Stream;
use crate::threads::{self, Doing, Kind};
use libc::{MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL};
use look::once;

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
