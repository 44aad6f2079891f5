//! Streams: the state of each direction and what every call does with it.
//!
//! The life of one direction (the sender decides, the receiver follows):
//!
//! ```text
//!     Plain ──offer──▶ Offered ──attached──▶ Ready ──cut over at X──▶ Fast ──cut-back record──▶ Plain
//!       ▲                │ refused, no answer   (receiver has promised)
//!       └────────────────┘
//! ```
//!
//! * [`heat`] – is the stream worth an offer? [`settled`] – streams that never will be.
//! * [`crate::rendezvous`] – offers: Plain to Offered to Attached.
//! * [`cutover`] – promises, cuts, recalls; [`leave`] – back to TCP at once;
//!   [`handback`] – with what the ring still holds. [`tcp`] – the kernel's counts.
//! * [`receive`], [`send`] – the data calls; [`flag_list`] – their flags.
//! * [`wait`] – the merged wait of one stream; [`bell`] – doorbells; [`flow`] – readers at a writer's heels.
//! * [`options`] – what only the kernel can honour ([`option_list`] has them all); [`settings`] – what it is asked
//!   about waiting.
//! * [`ready`] – what poll and epoll report; [`ending`] – FIN, reset and death.
//! * [`close`] – shutdown, close, exit.

pub mod bell;
pub mod close;
pub mod cutover;
pub mod ending;
mod flag_list;
mod flow;
pub mod handback;
pub mod heat;
pub mod iov;
pub mod leave;
pub mod open;
mod option_list;
#[cfg(test)]
mod option_table;
pub mod options;
pub mod ready;
pub mod receive;
pub mod send;
pub mod settings;
pub mod settled;
pub mod tcp;
pub mod transfer;
pub mod wait;

use crate::fdtable::{self, Entry};
use crate::streams::{self, Stream};
use crate::threads::{self, Doing, Kind};
use crate::tls;
use core::sync::atomic::Ordering;
use rdma_engine::abi::arena::{flags, Phase, Slot, Tcp};
use rdma_engine::lock::{Acquired, Lock};
use rdma_engine::sync::AtomicU64;

/// A stream, with the calling thread marked on it, so that its mapping is not taken
/// away meanwhile.
pub struct Used {
    stream: Stream,
    _doing: Doing,
}

impl core::ops::Deref for Used {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.stream
    }
}

/// The stream that `fd` names, if it is one.
#[inline]
pub fn of(fd: i32) -> Option<Used> {
    let (stream, _doing) = enter(fd, Kind::Use)?.stream()?;
    Some(Used { stream, _doing })
}

/// A direction's lock, held (or not needed).
pub struct Held<'a> {
    lock: Option<&'a Lock>,
    /// It was taken from an interrupted or dead frame.
    pub stolen: bool,
}

/// Takes a direction's lock for one ring operation. The rings themselves bear
/// any number of frames; the lock keeps threads and processes from getting into
/// each other's way. A process with one thread that shares the end with nobody
/// has no use for it.
#[inline]
pub fn hold<'a>(s: &Stream, lock: &'a Lock) -> Held<'a> {
    if threads::single() && !s.slot.has(flags::SHARED) {
        return Held {
            lock: None,
            stolen: false,
        };
    }
    Held {
        lock: Some(lock),
        stolen: seize(s, lock),
    }
}

/// Takes a direction's lock in any case. True if it was stolen.
#[inline]
pub fn seize(s: &Stream, lock: &Lock) -> bool {
    let how = lock.acquire(tls::tid());
    if how != Acquired::Clean {
        robbed(s, lock, how);
    }
    how != Acquired::Clean
}

/// The one that held the lock may never go on: it may have published, or taken bytes,
/// and not have come to the bell. One that is dead may have read from TCP and not have
/// counted. (An interrupted frame has not: there signals are blocked.)
#[cold]
fn robbed(s: &Stream, lock: &Lock, how: Acquired) {
    if how == Acquired::Orphaned && core::ptr::eq(lock, &s.slot.rx.lock) {
        s.slot.flags.fetch_or(flags::UNCOUNTED, Ordering::AcqRel);
    }
    if s.phase() == Phase::Attached {
        bell::ring(s);
    }
}

impl Held<'_> {
    /// Does nobody but this thread work on the direction?
    #[inline]
    pub fn alone(&self) -> bool {
        self.lock.is_none()
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(lock) = self.lock {
            lock.release(tls::tid());
        }
    }
}

/// The stream of a table entry, if it is one.
pub fn of_entry(entry: Entry) -> Option<Stream> {
    match entry {
        Entry::Stream { index, generation } => streams::get(index, generation),
        _ => None,
    }
}

/// A call on a stream, with the calling thread marked on it, so that its mapping is not
/// taken away meanwhile. Holds what a call on a Plain
/// stream needs, and nothing else.
pub struct Inside {
    index: u32,
    generation: u32,
    slot: &'static Slot,
    doing: Doing,
}

impl Inside {
    /// The stream of table entry `entry`, on which the thread is marked.
    #[inline(always)]
    fn check(fd: i32, entry: u64, doing: Doing) -> Option<Inside> {
        // Who frees an attached stream clears the entry first, and then looks at marks.
        // A Plain one's slot may become another stream's at any time: only the number
        // of its use tells.
        if fdtable::word_of(fd) != entry {
            return None;
        }
        let (index, generation) = fdtable::stream_of(entry);
        let slot = streams::slot(index)?;
        slot.is(generation).then_some(Inside {
            index,
            generation,
            slot,
            doing,
        })
    }

    /// The stream, and the mark.
    #[inline]
    pub fn stream(self) -> Option<(Stream, Doing)> {
        Some((streams::get(self.index, self.generation)?, self.doing))
    }

    /// Have the stream's ends found each other?
    #[inline(always)]
    pub fn is_attached(&self) -> bool {
        self.slot.phase() == Phase::Attached
    }

    /// Makes the program's own call on a stream that is not attached; `count`
    /// names the words that its bytes, and the call, are counted in.
    #[inline(always)]
    pub fn plainly(
        self,
        fd: i32,
        call: impl FnOnce() -> isize,
        count: impl FnOnce(&'static Tcp) -> (&'static AtomicU64, &'static AtomicU64),
    ) -> isize {
        let Inside {
            generation,
            slot,
            doing,
            ..
        } = self;
        let n = call();
        drop(doing);
        if n > 0 && slot.is(generation) {
            let (bytes, messages) = count(&slot.tcp);
            add(bytes, n as u64);
            add(messages, 1);
            heat::after_plain(slot, generation, fd, n as usize);
        }
        n
    }
}

/// A statistic: not exact among threads, and cheap.
#[inline]
pub fn add(word: &AtomicU64, n: u64) {
    word.store(word.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

/// The stream that `fd` names, with the calling thread marked as `kind` on it.
#[inline]
pub fn enter(fd: i32, kind: Kind) -> Option<Inside> {
    let entry = fdtable::word_of(fd);
    if !fdtable::is_followed(entry) {
        if entry == 0 {
            open::adopt(fd);
        }
        return None;
    }
    let (index, _) = fdtable::stream_of(entry);
    Inside::check(fd, entry, Doing::begin(kind, index))
}

/// What [`enter_first`] found.
pub enum First {
    /// No stream.
    Other,
    /// One, on which the thread is marked now.
    Stream(Inside),
    /// Anything unusual: [`enter`] finds out.
    Unusual,
}

/// [`enter`] for the usual case: no handler that interrupted a call, not the
/// thread's first call. Few instructions, as each line of code that the kernel has
/// driven out of the cache costs as much as one of data.
#[inline(always)]
pub fn enter_first(fd: i32, kind: Kind) -> First {
    let entry = fdtable::word_of(fd);
    if !fdtable::is_followed(entry) {
        return if entry == 0 {
            First::Unusual
        } else {
            First::Other
        };
    }
    let (index, _) = fdtable::stream_of(entry);
    let doing = Doing::begin_first(kind, index);
    match doing.and_then(|d| Inside::check(fd, entry, d)) {
        Some(inside) => First::Stream(inside),
        None => First::Unusual,
    }
}
