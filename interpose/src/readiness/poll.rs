//! poll(2) and ppoll(2), merged.

use crate::fdtable::{self, Entry};
use crate::patience::{self, SPINS};
use crate::stream::bell;
use crate::stream::wait::{self, Want};
use crate::stream::{cutover, ending, handback, ready};
use crate::streams::Stream;
use crate::threads::{self, DoingMany, Kind};
use crate::{descriptors, errno, real};
use core::sync::atomic::Ordering;
use libc::{pollfd, POLLIN, POLLRDHUP};
use rdma_engine::abi::arena::{Phase, RxMode};
use rdma_engine::sys;

/// Entries that a merged poll has on the stack; more go by a mapping.
const ON_STACK: usize = 257;

/// What a look over the descriptors found.
#[derive(Default)]
pub struct Census {
    /// Bits of the streams among them (see [`threads::bit`]).
    pub streams: u64,
    /// Is any of them more than Plain?
    pub merged: bool,
}

/// Looks over the descriptors of a poll or select.
pub fn census(fds: impl Iterator<Item = i32>) -> Census {
    let mut c = Census::default();
    for fd in fds {
        if fdtable::is_other(fd) {
            continue;
        }
        match fdtable::get(fd) {
            Entry::Epoll { .. } => super::epoll::is_nested(fd),
            entry => {
                if let Some(s) = crate::stream::of_entry(entry) {
                    c.streams |= threads::bit(s.index);
                    c.merged |= s.phase() == Phase::Attached;
                }
            }
        }
    }
    c
}

/// The kernel's mask of a ppoll, passed through.
pub type Mask = *const libc::sigset_t;

/// poll(2) and ppoll(2). `plain` is the program's own call. Libc's convention.
pub fn poll(
    fds: &mut [pollfd],
    timeout_ns: Option<u64>,
    mask: Mask,
    plain: impl FnOnce() -> i32,
) -> i32 {
    let mut c = census(fds.iter().map(|p| p.fd));
    if !c.merged {
        if c.streams == 0 {
            return plain();
        }
        let _doing = DoingMany::begin(Kind::Many, c.streams);
        // A promise that begins now sees the mark; one that was made meanwhile
        // is seen here.
        c = census(fds.iter().map(|p| p.fd));
        if !c.merged {
            return plain();
        }
    }
    merged_poll(fds, timeout_ns, mask, c.streams)
}

/// A poll in which at least one of `streams` is more than Plain.
pub fn merged_poll(fds: &mut [pollfd], timeout_ns: Option<u64>, mask: Mask, streams: u64) -> i32 {
    threads::cancellation_point();
    let doing = DoingMany::begin(Kind::SleepMany, streams);
    let wake = doing.wake_fd();
    let r = with_scratch(fds.len() * 2 + 1, |scratch| match scratch {
        Some(scratch) => Poll {
            fds,
            mask,
            wake,
            deadline: timeout_ns.map(|t| sys::now_ns().saturating_add(t)),
        }
        .run(scratch),
        None => {
            errno::set(libc::ENOMEM);
            -1
        }
    });
    drop(doing);
    // A stream that was closed under us was kept for our sake.
    if crate::stream::close::any_grave() {
        crate::stream::close::dig();
    }
    r
}

/// Gives `f` room for `n` entries.
fn with_scratch<R>(n: usize, f: impl FnOnce(Option<&mut [pollfd]>) -> R) -> R {
    const EMPTY: pollfd = pollfd {
        fd: -1,
        events: 0,
        revents: 0,
    };
    if n <= ON_STACK {
        let mut room = [EMPTY; ON_STACK];
        return f(Some(&mut room[..n]));
    }
    let size = n * core::mem::size_of::<pollfd>();
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous range.
    let Some(p) = (unsafe { sys::mmap(core::ptr::null_mut(), size, flags, -1) }) else {
        return f(None);
    };
    // SAFETY: mapped for `size` bytes, and all zero is a valid entry.
    let r = f(Some(unsafe {
        core::slice::from_raw_parts_mut(p.cast::<pollfd>(), n)
    }));
    // SAFETY: `f` has returned its borrow.
    unsafe { sys::munmap(p, size) };
    r
}

struct Poll<'a> {
    fds: &'a mut [pollfd],
    mask: Mask,
    wake: i32,
    deadline: Option<u64>,
}

/// The stream of a descriptor, if it is attached.
fn merged(fd: i32) -> Option<Stream> {
    if fdtable::is_other(fd) {
        return None;
    }
    crate::stream::of_entry(fdtable::get(fd)).filter(|s| s.phase() == Phase::Attached)
}

/// Is part of the stream's readiness known to us alone?
fn ours(s: &Stream) -> bool {
    s.slot.rx_mode() != RxMode::Plain || ready::tx_is_fast(s)
}

impl Poll<'_> {
    fn run(mut self, scratch: &mut [pollfd]) -> i32 {
        for p in self.fds.iter() {
            if let Some(s) = merged(p.fd) {
                cutover::progress(&s, p.fd);
            }
        }
        loop {
            if self.look() > 0 {
                return self.finish(scratch);
            }
            if self.expired() {
                return self.kernel(scratch, Some(0)).unwrap_or_else(|e| e);
            }
            if self.spin() && self.look() > 0 {
                self.note_come();
                return self.finish(scratch);
            }
            self.arm();
            if self.look() > 0 {
                return self.finish(scratch);
            }
            let left = self.deadline.map(|d| d.saturating_sub(sys::now_ns()));
            match self.kernel(scratch, left) {
                Err(e) => return e,
                Ok(0) if self.expired() => return 0,
                Ok(0) => {}
                Ok(n) => return n,
            }
        }
    }

    fn expired(&self) -> bool {
        self.deadline.is_some_and(|d| sys::now_ns() >= d)
    }

    /// Fills in what we know of our streams. Returns how many are ready.
    fn look(&mut self) -> i32 {
        let mut n = 0;
        for p in self.fds.iter_mut() {
            p.revents = 0;
            if let Some(s) = merged(p.fd).filter(ours) {
                p.revents = ready::bits(&s, p.fd, p.events);
                n += i32::from(p.revents != 0);
            }
        }
        n
    }

    /// Something of ours is ready: the kernel is asked about the others.
    fn finish(&mut self, scratch: &mut [pollfd]) -> i32 {
        // With RDHUP asked for, TCP's word is wanted too: a death gives no other sign.
        if self.fds.len() == 1 && self.fds[0].events & POLLRDHUP == 0 {
            return 1;
        }
        self.kernel(scratch, Some(0)).unwrap_or_else(|e| e)
    }

    fn spin(&self) -> bool {
        let by_ring = |fds: &[pollfd]| {
            fds.iter().any(|p| {
                merged(p.fd).is_some_and(|s| {
                    (p.events & POLLIN != 0
                        && ready::may_come_by_ring(&s, Want::In)
                        && patience::pays(s.slot.rx.sleeps.load(Ordering::Relaxed)))
                        || (p.events & libc::POLLOUT != 0 && ready::tx_is_fast(&s))
                })
            })
        };
        if !by_ring(self.fds) {
            return false;
        }
        for p in self.fds.iter() {
            if let Some(s) = merged(p.fd) {
                wait::prepare_answer(&s);
            }
        }
        let hit = || {
            self.fds.iter().any(|p| {
                merged(p.fd).filter(ours).is_some_and(|s| {
                    (p.events & POLLIN != 0 && ready::now(&s, Want::In))
                        || (p.events & libc::POLLOUT != 0 && ready::now(&s, Want::Out))
                })
            })
        };
        patience::spin(SPINS, hit) || patience::yield_until(self.deadline, hit).is_some()
    }

    /// What is ready came while we were awake.
    fn note_come(&self) {
        for p in self.fds.iter().filter(|p| p.revents & POLLIN != 0) {
            if let Some(s) = merged(p.fd) {
                wait::has_come(&s);
            }
        }
    }

    fn arm(&self) {
        for p in self.fds.iter() {
            if let Some(s) = merged(p.fd) {
                if s.slot.rx_mode() != RxMode::Plain {
                    bell::arm(&s, Want::In);
                }
                if p.events & libc::POLLOUT != 0 && ready::tx_is_fast(&s) {
                    bell::arm(&s, Want::Out);
                }
            }
        }
    }

    /// Asks the kernel. `Err` is the return value -1 (errno is set); `Ok(0)`
    /// means that nothing the program asked for is ready.
    fn kernel(&mut self, scratch: &mut [pollfd], timeout: Option<u64>) -> Result<i32, i32> {
        let n = self.fds.len();
        let entry = |fd, events| pollfd {
            fd,
            events,
            revents: 0,
        };
        for (i, p) in self.fds.iter().enumerate() {
            let stream = merged(p.fd);
            scratch[i] = match &stream {
                Some(s) if ours(s) => entry(tcp_fd(s, p.fd), tcp_events(s, p.events)),
                _ => entry(p.fd, p.events),
            };
            let side = stream.as_ref().map_or(-1, Stream::side);
            let gone = stream
                .as_ref()
                .is_some_and(|s| s.slot.has(rdma_engine::abi::arena::flags::PEER_GONE));
            scratch[n + i] = entry(if gone { -1 } else { side }, POLLIN);
        }
        scratch[2 * n] = entry(self.wake, POLLIN);
        let ts = wait::nap(timeout, self.wake).map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        });
        let t = ts.as_ref().map_or(core::ptr::null(), |t| t as *const _);
        // SAFETY: scratch and timespec live across the call; the mask is the
        // program's own.
        let r = unsafe { real::ppoll(scratch.as_mut_ptr(), scratch.len() as _, t, self.mask) };
        if r < 0 {
            return Err(-1);
        }
        if scratch[2 * n].revents != 0 {
            descriptors::drain_eventfd(self.wake);
        }
        Ok(self.gather(scratch, n))
    }

    /// Merges the kernel's answer with ours.
    fn gather(&mut self, scratch: &[pollfd], n: usize) -> i32 {
        let mut ready_now = 0;
        for (i, p) in self.fds.iter_mut().enumerate() {
            p.revents = match merged(p.fd) {
                None => scratch[i].revents,
                Some(s) => {
                    if scratch[n + i].revents != 0 {
                        bell::answer_side(&s, scratch[n + i].revents);
                    }
                    ending::note_tcp(&s, scratch[i].revents);
                    if ours(&s) {
                        ready::bits(&s, p.fd, p.events)
                    } else {
                        scratch[i].revents
                    }
                }
            };
            ready_now += i32::from(p.revents != 0);
        }
        ready_now
    }
}

/// The TCP descriptor for a kernel wait, or -1 where it would only spin.
fn tcp_fd(s: &Stream, fd: i32) -> i32 {
    if ending::tcp_is_mute(s) {
        -1
    } else {
        fd
    }
}

/// What TCP is asked for, where the rest is on the ring.
fn tcp_events(s: &Stream, wanted: i16) -> i16 {
    let mut events = wanted;
    if ready::rx_is_on_ring(s) {
        events = events & !(POLLIN | libc::POLLRDNORM) | POLLRDHUP;
    }
    if ready::tx_is_fast(s) && !handback::is_owing(s) {
        events &= !(libc::POLLOUT | libc::POLLWRNORM);
    }
    events
}
