//! sendfile(2) and splice(2) to and from streams.

use super::send::{self, Once, Room};
use super::wait::{Waiter, Want};
use super::{enter, ready, receive, settings, Inside};
use crate::streams::Stream;
use crate::threads::{Doing, Kind};
use crate::{errno, faults, real};
use rdma_engine::abi::arena::{Phase, RxMode};
use rdma_engine::ring::{Fault, RawMemory};
use rdma_engine::{sys, syscall};

/// A call that finds the wire changed under it begins anew, so often.
pub const TRIES: u32 = 64;

/// The wire changed again and again: as if a signal had come.
pub fn refused() -> isize {
    errno::result(-(libc::EINTR as isize))
}

/// sendfile(2) to a stream on the wire: the file is read straight into the ring.
/// `None`: not a stream on the wire; the kernel's own call serves.
pub fn sendfile(out: i32, from: i32, offset: Option<*mut i64>, want: usize) -> Option<isize> {
    let (s, doing) = enter(out, Kind::Use)?.stream()?;
    if s.phase() != Phase::Attached || !on_wire(&s, out) {
        return None;
    }
    // A pipe or a socket as the source, or none at all: the kernel's errors.
    if !has_position(from) {
        let o = offset.unwrap_or(core::ptr::null_mut());
        // SAFETY: the program's own arguments.
        let r = unsafe { syscall!(libc::SYS_sendfile, out, from, o, want) };
        return Some(errno::result(r));
    }
    let at = match offset {
        None => None,
        Some(o) if faults::writable(o as usize, 8) => faults::load(o),
        Some(_) => {
            errno::set(libc::EFAULT);
            return Some(-1);
        }
    };
    if at.is_some_and(|at| at < 0) {
        errno::set(libc::EINVAL);
        return Some(-1);
    }
    // By position, so that a piece can be read again if it has to be.
    let start = at.unwrap_or_else(|| position(from, 0, libc::SEEK_CUR));
    let moved = feed(&s, out, want, false, &doing, |mem, off, n, done| {
        let to = mem.bytes(off, n);
        // SAFETY: `to` is valid for `n` bytes of the ring.
        filled(unsafe { syscall!(libc::SYS_pread64, from, to, n, start + done as i64) })
    });
    if let Fed::Moved(n) = &moved {
        let end = start + *n as i64;
        match offset {
            // SAFETY: writable a moment ago, and the program's own.
            Some(o) => unsafe { *o = end },
            None => {
                position(from, end, libc::SEEK_SET);
            }
        }
    }
    moved.result()
}

/// Is the sending direction on the wire, or can it be put there?
fn on_wire(s: &Stream, fd: i32) -> bool {
    ready::tx_is_fast(s) || (super::cutover::may_cut_over(s) && super::cutover::cut_over(s, fd))
}

fn has_position(fd: i32) -> bool {
    position(fd, 0, libc::SEEK_CUR) >= 0
}

/// lseek(2): the position, or a negated errno.
fn position(fd: i32, to: i64, whence: i32) -> i64 {
    // SAFETY: no memory is passed.
    unsafe { syscall!(libc::SYS_lseek, fd, to, whence) as i64 }
}

/// Is `fd` a pipe?
pub fn is_pipe(fd: i32) -> bool {
    // SAFETY: F_GETPIPE_SZ passes no memory, and only a pipe has a size.
    unsafe { syscall!(libc::SYS_fcntl, fd, libc::F_GETPIPE_SZ) > 0 }
}

fn filled(r: isize) -> Result<u32, Fault> {
    if r < 0 {
        Err(Fault(-r as i32))
    } else {
        Ok(r as u32)
    }
}

fn finish(moved: Result<usize, i32>) -> isize {
    errno::result(match moved {
        Ok(n) => n as isize,
        Err(e) => -(e as isize),
    })
}

/// Puts up to `want` bytes from `fill` on the wire; blocks as send does. A
/// source that gives nothing is at its end. With `once`, a first success is all.
fn feed<F>(s: &Stream, fd: i32, want: usize, once: bool, doing: &Doing, mut fill: F) -> Fed
where
    F: FnMut(&RawMemory, u32, u32, usize) -> Result<u32, Fault>,
{
    let mut total = 0usize;
    let mut room = Room::new(fd);
    while total < want {
        let mut dry = false;
        let r = send::once(
            s,
            room.fd(),
            want - total,
            room.window_only,
            |mem, off, n, done| {
                let got = fill(mem, off, n, total + done)?;
                dry |= got == 0;
                Ok(got)
            },
        );
        match r {
            Once::Put(n) => {
                total += n;
                room.window_only = true;
                if dry || once {
                    break;
                }
            }
            // An empty record is none: the source has ended.
            Once::Full if dry => break,
            Once::Full => {
                if let Err(e) = room.wait(s, false, doing) {
                    return ended(total, e);
                }
            }
            // The direction went back to TCP: a short count is the answer.
            Once::OnTcp if total > 0 => break,
            Once::OnTcp => return Fed::OnTcp,
            Once::Failed(e) => return ended(total, e),
        }
    }
    Fed::Moved(total)
}

fn ended(total: usize, e: i32) -> Fed {
    if total > 0 {
        Fed::Moved(total)
    } else {
        Fed::Failed(e)
    }
}

/// What [`feed`] came to.
enum Fed {
    Moved(usize),
    Failed(i32),
    /// The direction is on TCP: the kernel's own call serves.
    OnTcp,
}

impl Fed {
    /// Libc's convention, `None` for the kernel's own call.
    fn result(self) -> Option<isize> {
        match self {
            Fed::Moved(n) => Some(finish(Ok(n))),
            Fed::Failed(e) => Some(finish(Err(e))),
            Fed::OnTcp => None,
        }
    }
}

/// The kernel's own sendfile or splice on a stream that is on TCP, with the
/// thread marked: `kind` says which way the bytes go. `None`: the direction has
/// just left TCP.
pub fn by_kernel(fd: i32, kind: Kind, call: impl Fn() -> isize) -> Option<isize> {
    let Some((s, doing)) = enter(fd, kind).and_then(Inside::stream) else {
        return Some(call());
    };
    // A change that begins now sees our mark and is given up.
    let left = match kind {
        Kind::PlainSend => ready::tx_is_fast(&s) && !send::gone(&s),
        _ => s.slot.rx_mode() != RxMode::Plain,
    };
    if left {
        return None;
    }
    let n = call();
    drop(doing);
    if n > 0 {
        if kind == Kind::PlainSend {
            send::count_plain(&s, n as usize);
        } else {
            receive::count_plain(&s, n as usize);
        }
        if s.phase() != Phase::Attached {
            super::heat::after_plain(s.slot, s.generation, fd, n as usize);
        }
    }
    Some(n)
}

/// splice(2) from a pipe to a stream on the wire.
pub fn splice_in(from: i32, out: i32, want: usize, flags: u32) -> Option<isize> {
    if !is_pipe(from) {
        return None;
    }
    let (s, doing) = enter(out, Kind::Use)?.stream()?;
    if s.phase() != Phase::Attached || !on_wire(&s, out) {
        return None;
    }
    // The pipe decides whether there is anything to wait for, before the lock.
    let mut p = [libc::pollfd {
        fd: from,
        events: libc::POLLIN,
        revents: 0,
    }];
    let nowait = flags & libc::SPLICE_F_NONBLOCK != 0 || settings::ask_nonblocking(from);
    if super::wait::call_ppoll(&mut p, nowait.then_some(0)) <= 0 {
        errno::set(if nowait { libc::EAGAIN } else { libc::EINTR });
        return Some(-1);
    }
    let refuses = settings::ask_nonblocking(out) || flags & libc::SPLICE_F_NONBLOCK != 0;
    if refuses && !ready::now(&s, Want::Out) {
        errno::set(libc::EAGAIN);
        return Some(-1);
    }
    // By way of a buffer: what a pipe has given it does not give again.
    let mut buffer = [0u8; 16384];
    let most = want.min(buffer.len());
    // SAFETY: our own buffer.
    let r = unsafe { syscall!(libc::SYS_read, from, buffer.as_mut_ptr(), most) };
    let Ok(got) = usize::try_from(r) else {
        return Some(errno::result(r));
    };
    drop(doing);
    let mut done = 0;
    while done < got {
        let rest = &mut buffer[done..got];
        let part = libc::iovec {
            iov_base: rest.as_mut_ptr().cast(),
            iov_len: rest.len(),
        };
        // As send(2), which blocks as the socket does, and goes by whichever wire
        // is in force.
        let n = send::send(out, &[part][..], 0, || {
            // SAFETY: our own buffer.
            unsafe { real::send(out, part.iov_base, part.iov_len, 0) }
        });
        if n < 0 && matches!(errno::get(), libc::EAGAIN | libc::EINTR) {
            // Taken is taken: the reader will make room.
            super::wait::call_ppoll(&mut [], Some(1_000_000));
            continue;
        }
        if n <= 0 {
            break;
        }
        done += n as usize;
    }
    Some(if done > 0 || got == 0 {
        done as isize
    } else {
        -1
    })
}

/// splice(2) from a stream whose input is on the ring to a pipe.
pub fn splice_out(from: i32, out: i32, want: usize, flags: u32) -> Option<isize> {
    if !is_pipe(out) {
        return None;
    }
    let (s, doing) = enter(from, Kind::Use)?.stream()?;
    if s.phase() != Phase::Attached || s.slot.rx_mode() == RxMode::Plain {
        return None;
    }
    let nowait = flags & libc::SPLICE_F_NONBLOCK != 0;
    let mut waiter = Waiter::new(from, Want::In);
    loop {
        if ready::now(&s, Want::In) || !ready::rx_is_on_ring(&s) {
            return Some(finish(pump(from, out, want, nowait)));
        }
        if let Err(e) = waiter.wait(&s, nowait, &doing) {
            return Some(finish(Err(e)));
        }
    }
}

/// Moves bytes by way of a buffer: as much as the pipe takes at once, so that
/// nothing that was taken from the ring is left over.
fn pump(from: i32, out: i32, want: usize, nowait: bool) -> Result<usize, i32> {
    let mut buffer = [0u8; 4096];
    let mut p = [libc::pollfd {
        fd: out,
        events: libc::POLLOUT,
        revents: 0,
    }];
    // A pipe that polls writable takes PIPE_BUF (4096) bytes whole, pipe(7).
    if super::wait::call_ppoll(&mut p, nowait.then_some(0)) <= 0 {
        return Err(if nowait { libc::EAGAIN } else { libc::EINTR });
    }
    let part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: want.min(buffer.len()),
    };
    let n = receive::receive(from, &[part][..], libc::MSG_DONTWAIT, || {
        // SAFETY: our own buffer.
        errno::result(unsafe {
            syscall!(
                libc::SYS_recvfrom,
                from,
                part.iov_base,
                part.iov_len,
                libc::MSG_DONTWAIT
            )
        })
    });
    if n < 0 {
        return Err(errno::get());
    }
    let mut done = 0usize;
    while done < n as usize {
        let rest = &buffer[done..n as usize];
        // SAFETY: the slice is valid for its length.
        let r = unsafe { syscall!(libc::SYS_write, out, rest.as_ptr(), rest.len()) };
        if r <= 0 {
            if r == -(libc::EINTR as isize) || r == -(libc::EAGAIN as isize) {
                sys::sched_yield();
                continue;
            }
            return Err(-r as i32);
        }
        done += r as usize;
    }
    Ok(done)
}
