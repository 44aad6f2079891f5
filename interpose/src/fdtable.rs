//! What each descriptor number of the process is, in one word for each.
//!
//! A hook's first act is one load here. The table is a sparse mapping made at
//! start-up and never moved, so that no half-initialised state is ever seen; a
//! program that calls before start-up finds no table, and goes to the kernel.

use crate::anchors::ANCHORS;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use rdma_engine::sys;

/// Numbers that are tracked; higher ones stay on plain TCP.
pub const LIMIT: usize = 1 << 20;

/// What a descriptor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Never seen, or opened behind our back.
    Unknown,
    /// Nothing of interest: a file, a pipe, a UDP socket ...
    Other,
    /// A TCP socket that is not connected (yet): fresh, or listening.
    Socket,
    /// One of the library's own.
    Internal,
    /// A TCP stream: slot index and its generation.
    Stream { index: u32, generation: u32 },
    /// An epoll set, by its index in [`crate::readiness::epoll`]'s table.
    Epoll { index: u32 },
}

const TAGS: u64 = 7;
/// In a stream's word: its calls are not followed (see `stream::settled`).
const SETTLED: u64 = 8;
const OTHER: u64 = 1;
const SOCKET: u64 = 2;
const INTERNAL: u64 = 3;
const STREAM: u64 = 4;
const EPOLL: u64 = 5;

impl Entry {
    #[inline]
    fn encode(self) -> u64 {
        match self {
            Entry::Unknown => 0,
            Entry::Other => OTHER,
            Entry::Socket => SOCKET,
            Entry::Internal => INTERNAL,
            Entry::Stream { index, generation } => {
                STREAM | u64::from(index) << 8 | u64::from(generation) << 32
            }
            Entry::Epoll { index } => EPOLL | u64::from(index) << 8,
        }
    }

    #[inline]
    fn decode(word: u64) -> Entry {
        let index = (word >> 8 & 0xff_ffff) as u32;
        match word & TAGS {
            OTHER => Entry::Other,
            SOCKET => Entry::Socket,
            INTERNAL => Entry::Internal,
            STREAM => Entry::Stream {
                index,
                generation: (word >> 32) as u32,
            },
            EPOLL => Entry::Epoll { index },
            _ => Entry::Unknown,
        }
    }
}

/// Maps the table. False if the kernel refuses: then nothing is accelerated.
pub fn init() -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new anonymous range; all zero is a valid table.
    match unsafe { sys::mmap(core::ptr::null_mut(), LIMIT * 8, flags, -1) } {
        Some(p) => {
            ANCHORS.descriptors.store(p.cast(), Ordering::Release);
            true
        }
        None => false,
    }
}

#[inline(always)]
fn word(fd: c_int) -> Option<&'static AtomicU64> {
    let p = ANCHORS.descriptors.load(Ordering::Acquire);
    // No negative number is below the limit.
    if fd as u32 >= LIMIT as u32 || p.is_null() {
        return None;
    }
    // SAFETY: in bounds of a table that is never unmapped.
    Some(unsafe { &*p.add(fd as u32 as usize) })
}

/// What `fd` is. Without a table, or out of its range: [`Entry::Other`].
#[inline(always)]
pub fn get(fd: c_int) -> Entry {
    match word(fd) {
        Some(w) => Entry::decode(w.load(Ordering::Acquire)),
        None => Entry::Other,
    }
}

/// Is `fd` possibly of interest? The one test on the way of every call.
#[inline(always)]
pub fn is_other(fd: c_int) -> bool {
    match word(fd) {
        Some(w) => w.load(Ordering::Relaxed) == OTHER,
        None => true,
    }
}

/// The highest number that was ever said to be anything.
static HIGHEST: AtomicU32 = AtomicU32::new(0);

#[inline]
fn raise(fd: u32) {
    if HIGHEST.load(Ordering::Relaxed) < fd {
        HIGHEST.fetch_max(fd, Ordering::Relaxed);
    }
}

/// The highest number that was ever said to be anything.
pub fn highest() -> u32 {
    HIGHEST.load(Ordering::Relaxed)
}

/// The raw word of `fd`: 0 is [`Entry::Unknown`]. Without a table, or out of its
/// range: the word of [`Entry::Other`].
#[inline(always)]
pub fn word_of(fd: c_int) -> u64 {
    word(fd).map_or(OTHER, |w| w.load(Ordering::Acquire))
}

/// Is a raw word that of a stream whose calls are followed?
#[inline(always)]
pub fn is_followed(word: u64) -> bool {
    word & (TAGS | SETTLED) == STREAM
}

/// From now on calls on `fd` are not followed, if it is still `stream`.
pub fn settle(fd: c_int, stream: Entry) {
    if let Some(w) = word(fd) {
        let old = stream.encode();
        let (done, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        // Else the number is something else by now.
        let _ = w.compare_exchange(old, old | SETTLED, done, failed);
    }
}

/// Index and generation in a stream's raw word.
#[inline(always)]
pub fn stream_of(word: u64) -> (u32, u32) {
    ((word >> 8 & 0xff_ffff) as u32, (word >> 32) as u32)
}

/// Says what `fd` is.
pub fn set(fd: c_int, entry: Entry) {
    if let Some(w) = word(fd) {
        raise(fd as u32);
        w.store(entry.encode(), Ordering::Release);
    }
}

/// Says what `fd` is; returns what it was.
pub fn swap(fd: c_int, entry: Entry) -> Entry {
    match word(fd) {
        Some(w) => {
            raise(fd as u32);
            Entry::decode(w.swap(entry.encode(), Ordering::AcqRel))
        }
        None => Entry::Other,
    }
}

/// Says what `fd` is if it is still `old`.
pub fn replace(fd: c_int, old: Entry, new: Entry) -> bool {
    let swap = |w: &AtomicU64, old| {
        w.compare_exchange(old, new.encode(), Ordering::AcqRel, Ordering::Acquire)
    };
    word(fd).is_some_and(|w| match swap(w, old.encode()) {
        Ok(_) => true,
        Err(now) => now == old.encode() | SETTLED && swap(w, now).is_ok(),
    })
}

/// A kernel call has just opened `fd`: whatever stood there is stale. Costs a
/// load where nothing stood.
#[inline]
pub fn opened(fd: c_int, entry: Entry) {
    if let Some(w) = word(fd) {
        let new = entry.encode();
        if w.load(Ordering::Relaxed) != new {
            raise(fd as u32);
            w.store(new, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_the_word() {
        for e in [
            Entry::Unknown,
            Entry::Other,
            Entry::Socket,
            Entry::Internal,
            Entry::Stream {
                index: 32767,
                generation: u32::MAX,
            },
            Entry::Epoll { index: 1023 },
        ] {
            assert_eq!(Entry::decode(e.encode()), e);
        }
    }

    #[test]
    fn a_settled_stream_is_the_same_entry() {
        init();
        let (fd, index) = (LIMIT as c_int - 1, 7);
        let stream = |generation| Entry::Stream { index, generation };
        set(fd, stream(3));
        settle(fd, stream(1));
        assert!(is_followed(word_of(fd)), "it is another stream's number");
        settle(fd, stream(3));
        assert!(!is_followed(word_of(fd)));
        assert_eq!(get(fd), stream(3));
        assert!(!replace(fd, stream(1), Entry::Unknown));
        assert!(replace(fd, stream(3), Entry::Unknown));
        assert_eq!(word_of(fd), 0);
    }
}
