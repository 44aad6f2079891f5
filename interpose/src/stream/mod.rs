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
//! * [`heat`] – is the stream worth an offer?
//! * [`crate::rendezvous`] – offers: Plain to Offered to Attached.
//! * [`cutover`] – promises, cuts, recalls.
//! * [`receive`], [`send`] – the data calls.
//! * [`wait`] – the merged wait of one stream.
//! * [`options`] – what only the kernel can honour.
//! * [`ready`] – what poll and epoll report; [`ending`] – FIN, reset and death.
//! * [`close`] – shutdown, close, exit.

pub mod close;
pub mod cutover;
pub mod ending;
pub mod heat;
pub mod iov;
pub mod open;
pub mod options;
pub mod ready;
pub mod receive;
pub mod send;
pub mod transfer;
pub mod wait;

use crate::fdtable::{self, Entry};
use crate::streams::{self, Stream};
use crate::threads::{self, Doing, Kind};
use crate::tls;
use rdma_engine::abi::arena::flags;
use rdma_engine::lock::{Acquired, Lock};

/// The stream that `fd` names, if it is one.
#[inline]
pub fn of(fd: i32) -> Option<Stream> {
    match fdtable::get(fd) {
        Entry::Stream { index, generation } => streams::get(index, generation),
        Entry::Unknown => {
            open::adopt(fd);
            None
        }
        _ => None,
    }
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
    let stolen = lock.acquire(tls::tid()) == Acquired::Stolen;
    Held {
        lock: Some(lock),
        stolen,
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

/// The stream that `fd` names, with the calling thread marked as `kind` on it,
/// so that neither its slot nor its mapping is taken away meanwhile.
#[inline(always)]
pub fn enter(fd: i32, kind: Kind) -> Option<(Stream, Option<Doing>)> {
    let entry = fdtable::word_of(fd);
    if !fdtable::is_stream(entry) {
        if entry == 0 {
            open::adopt(fd);
        }
        return None;
    }
    let (index, generation) = fdtable::stream_of(entry);
    let doing = Doing::begin(kind, index);
    // Whoever frees the slot clears the entry first, and then looks at marks.
    if fdtable::word_of(fd) != entry {
        return None;
    }
    Some((streams::get(index, generation)?, doing))
}
