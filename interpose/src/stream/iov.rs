//! A cursor over the program's buffers.

use crate::faults;
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use libc::{iovec, msghdr};
use rdma_engine::ring::{Fault, RawMemory};

/// The buffers of one call: a scatter array, or a single one, which is handed on in
/// registers until somebody wants to see it as an array.
pub trait Parts: Copy {
    /// All of them.
    fn all(&self) -> &[iovec];

    /// Where control data is to go, if the call asks for any.
    fn control(&self) -> Option<&Control> {
        None
    }
}

impl Parts for &[iovec] {
    fn all(&self) -> &[iovec] {
        self
    }
}

/// A single buffer.
#[derive(Clone, Copy)]
pub struct One(iovec);

impl One {
    /// `len` bytes at `base`.
    #[inline(always)]
    pub fn new(base: *mut c_void, len: usize) -> One {
        One(iovec {
            iov_base: base,
            iov_len: len,
        })
    }
}

impl Parts for One {
    #[inline]
    fn all(&self) -> &[iovec] {
        core::slice::from_ref(&self.0)
    }
}

/// Room for the control data of recvmsg(2), and what TCP has put there: only the kernel
/// has any to give (SO_TIMESTAMP, TCP_INQ).
pub struct Control {
    at: *mut c_void,
    room: usize,
    used: Cell<usize>,
    flags: Cell<c_int>,
}

impl Control {
    /// `room` bytes at `at`, which the kernel will check.
    pub fn new(at: *mut c_void, room: usize) -> Control {
        Control {
            at,
            room,
            used: Cell::new(0),
            flags: Cell::new(0),
        }
    }

    /// Offers the room to a call of our own.
    pub fn lend(&self, msg: &mut msghdr) {
        msg.msg_control = self.at;
        msg.msg_controllen = self.room;
    }

    /// That call has succeeded.
    pub fn take_back(&self, msg: &msghdr) {
        self.used.set(msg.msg_controllen);
        self.flags.set(msg.msg_flags & libc::MSG_CTRUNC);
    }

    /// Bytes of control data, and MSG_CTRUNC if there was more.
    pub fn result(&self) -> (usize, c_int) {
        (self.used.get(), self.flags.get())
    }
}

/// The buffers of recvmsg(2).
#[derive(Clone, Copy)]
pub struct Message<'a>(pub &'a [iovec], pub &'a Control);

impl Parts for Message<'_> {
    fn all(&self) -> &[iovec] {
        self.0
    }

    fn control(&self) -> Option<&Control> {
        (self.1.room > 0).then_some(self.1)
    }
}

/// Buffers of one call, and how far it has come.
#[derive(Clone, Copy)]
pub struct Iov<'a> {
    parts: &'a [iovec],
    /// Bytes of the first part that are done.
    done: usize,
    /// Bytes left in all.
    left: usize,
    control: Option<&'a Control>,
}

impl<'a> Iov<'a> {
    /// A cursor over `parts`. As readv(2) has it: `EINVAL` if the sum overflows.
    pub fn new(parts: &'a [iovec]) -> Result<Iov<'a>, i32> {
        let mut left = 0usize;
        for p in parts {
            left = left.checked_add(p.iov_len).ok_or(libc::EINVAL)?;
        }
        if left > isize::MAX as usize {
            return Err(libc::EINVAL);
        }
        Ok(Iov {
            parts,
            done: 0,
            left,
            control: None,
        })
    }

    /// With control data for those that TCP serves.
    pub fn with_control(self, control: Option<&'a Control>) -> Iov<'a> {
        Iov { control, ..self }
    }

    /// Where control data is to go.
    pub fn control(&self) -> Option<&'a Control> {
        self.control
    }

    /// Bytes left.
    #[inline]
    pub fn left(&self) -> usize {
        self.left
    }

    /// Goes `n` bytes on.
    #[inline]
    pub fn advance(&mut self, mut n: usize) {
        self.left -= n.min(self.left);
        while let Some(first) = self.parts.first() {
            let rest = first.iov_len - self.done;
            if n < rest {
                self.done += n;
                return;
            }
            n -= rest;
            self.parts = &self.parts[1..];
            self.done = 0;
            if n == 0 && self.left > 0 {
                // Skip parts of no length lazily, in the next round.
                continue;
            }
            if n == 0 {
                return;
            }
        }
    }

    /// Calls `f` with the address and length of each piece of the next `n` bytes,
    /// until it says false: the address is bad.
    #[inline]
    fn pieces(&self, mut n: usize, mut f: impl FnMut(*mut u8, usize) -> bool) -> Result<(), Fault> {
        let mut done = self.done;
        for p in self.parts {
            if n == 0 {
                break;
            }
            let len = (p.iov_len - done).min(n);
            if len > 0 {
                let at = (p.iov_base as usize).wrapping_add(done);
                if !f(at as *mut u8, len) {
                    return Err(Fault(libc::EFAULT));
                }
            }
            n -= len;
            done = 0;
        }
        Ok(())
    }

    /// Copies `n` bytes, `skip` bytes behind the cursor, into the ring at `off`;
    /// the cursor stays.
    #[inline]
    pub fn copy_in_behind(
        &self,
        mem: &RawMemory,
        off: u32,
        n: u32,
        skip: usize,
    ) -> Result<u32, Fault> {
        let mut to = mem.bytes(off, n);
        let mut skip = skip;
        self.pieces(skip + n as usize, |from, len| {
            let over = skip.min(len);
            skip -= over;
            // SAFETY: the pieces behind `skip` add up to `n` at most, which the ring
            // has; `from` is the program's, whatever it is.
            unsafe {
                let ok = faults::copy(to, from.wrapping_add(over), len - over);
                to = to.add(len - over);
                ok
            }
        })?;
        Ok(n)
    }

    /// Copies `n` bytes from the ring at `off` to the program, `skip` bytes
    /// behind the cursor; the cursor stays.
    #[inline]
    pub fn copy_out(&self, mem: &RawMemory, off: u32, n: u32, skip: usize) -> Result<u32, Fault> {
        mem.will_read(off, n);
        let mut from = mem.bytes(off, n).cast_const();
        let mut skip = skip;
        self.pieces(skip + n as usize, |to, len| {
            let over = skip.min(len);
            skip -= over;
            // SAFETY: the pieces behind `skip` add up to `n` at most, which the ring
            // has; `to` is what the program wants written.
            unsafe {
                let ok = faults::copy(to.wrapping_add(over), from, len - over);
                from = from.add(len - over);
                ok
            }
        })?;
        Ok(n)
    }

    /// The buffers from the cursor on, bounded to `max` bytes, as an array for
    /// the kernel. Returns how many parts were filled in.
    pub fn rest(&self, max: usize, to: &mut [iovec]) -> usize {
        let mut left = max;
        let mut done = self.done;
        let mut n = 0;
        for p in self.parts {
            if n == to.len() || left == 0 {
                break;
            }
            let len = (p.iov_len - done).min(left);
            to[n] = iovec {
                iov_base: (p.iov_base as usize + done) as *mut _,
                iov_len: len,
            };
            left -= len;
            done = 0;
            n += 1;
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(b: &mut [u8]) -> iovec {
        iovec {
            iov_base: b.as_mut_ptr().cast(),
            iov_len: b.len(),
        }
    }

    #[test]
    fn the_cursor_crosses_empty_parts() {
        let (mut a, mut b, mut c) = ([1u8; 3], [2u8; 0], [3u8; 5]);
        let parts = [part(&mut a), part(&mut b), part(&mut c)];
        let mut iov = Iov::new(&parts).unwrap();
        assert_eq!(iov.left(), 8);
        iov.advance(2);
        let mut seen = Vec::new();
        iov.pieces(3, |p, n| {
            seen.push((p as usize, n));
            true
        })
        .unwrap();
        assert_eq!(
            seen,
            [
                (parts[0].iov_base as usize + 2, 1),
                (parts[2].iov_base as usize, 2)
            ]
        );
        iov.advance(1);
        iov.advance(5);
        assert_eq!(iov.left(), 0);
        iov.advance(0);
    }

    #[test]
    fn sums_that_overflow_are_refused() {
        let huge = iovec {
            iov_base: core::ptr::null_mut(),
            iov_len: usize::MAX,
        };
        assert!(Iov::new(&[huge, huge]).is_err());
    }
}
