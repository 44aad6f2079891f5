//! One direction over a real segment, both ends in this process.

use crate::abi::record::HEADER;
use crate::abi::segment::Direction;
use crate::lock::{Acquired, Lock};
use crate::ring::*;
use crate::segment::{self, Segment};
use crate::sync::{AtomicU64, Ordering};
use crate::sys;

/// A ring in a memfd, with the private state of both sides.
pub struct Wire {
    fd: i32,
    segment: Segment,
    pub mem: RawMemory,
    pub tx: ProducerState,
    pub rx: ConsumerState,
    pub tx_lock: Lock,
    pub rx_lock: Lock,
}

// SAFETY: everything is atomics but the two addresses, which stay valid until
// the wire is dropped.
unsafe impl Sync for Wire {}
// SAFETY: as above.
unsafe impl Send for Wire {}

impl Wire {
    pub fn new() -> Wire {
        let fd = segment::create().expect("memfd");
        let segment = Segment::map(fd, true).expect("map");
        let wire = Wire {
            fd,
            segment,
            mem: segment.ring(0),
            tx: ProducerState::new(),
            rx: ConsumerState::new(),
            tx_lock: Lock::new(),
            rx_lock: Lock::new(),
        };
        wire.tx.begin();
        wire.rx.begin();
        wire
    }

    /// An empty ring, for whom nobody uses it; old bytes stay in its memory.
    pub fn reset(&self) {
        self.begin_at(0);
    }

    /// The same, in a stream that has come to `count`.
    pub fn begin_at(&self, count: u64) {
        self.tx.begin_at(count);
        self.rx.begin_at(count);
        self.consumed().store(count, Ordering::Relaxed);
        self.mem.header(0).store(0, Ordering::Relaxed);
    }

    pub fn words(&self) -> &Direction {
        self.segment.direction(0)
    }

    pub fn consumed(&self) -> &AtomicU64 {
        &self.words().cursor.consumed
    }

    pub fn producer(&self, stolen: bool) -> Producer<'_, RawMemory> {
        let consumed = &self.words().cursor.consumed;
        Producer::new(&self.mem, &self.tx, consumed, stolen).expect("our own headers")
    }

    pub fn consumer(&self) -> Consumer<'_, RawMemory> {
        Consumer::new(&self.mem, &self.rx, &self.words().cursor.consumed)
    }

    /// One push of `bytes`, with the hints that an answer is given.
    pub fn push(&self, bytes: &[u8], limit: usize, window_only: bool) -> Push {
        self.tx.will_write(&self.mem, bytes.len() as u32);
        let p = self.producer(false).awaited(true);
        p.push(bytes.len(), limit, window_only, |mem, off, n| {
            // SAFETY: `n` bytes of the ring, of which nobody makes a reference.
            unsafe {
                mem.bytes(off, n)
                    .copy_from_nonoverlapping(bytes.as_ptr(), n as usize)
            };
            Ok(n)
        })
    }

    /// One pull of up to `max` bytes, behind those in `to`.
    pub fn pull(&self, to: &mut Vec<u8>, max: usize) -> Pull {
        let old = to.len();
        self.consumer().pull(max, |mem, off, n| {
            to.truncate(old);
            copy_out(mem, off, n, to);
            Ok(n)
        })
    }

    /// One pull of up to `max` bytes, of as many records as there are.
    pub fn pull_many(&self, to: &mut Vec<u8>, max: usize) -> Pull {
        let old = to.len();
        self.consumer()
            .alone(true)
            .pull_many(max, max, |mem, off, n, done| {
                to.truncate(old + done);
                copy_out(mem, off, n, to);
                Ok(n)
            })
    }

    /// A look at up to `max` bytes.
    pub fn look(&self, max: usize) -> Vec<u8> {
        let mut seen = Vec::new();
        let n = self.consumer().look_ahead(max, |mem, off, n, at| {
            seen.truncate(at);
            copy_out(mem, off, n, &mut seen);
        });
        assert_eq!(n, seen.len());
        seen
    }

    /// Bytes of memory that the segment has at the moment.
    pub fn memory(&self) -> usize {
        // SAFETY: fstat(2) fills the struct, for which all zero is valid.
        unsafe {
            let mut st: libc::stat = core::mem::zeroed();
            assert_eq!(libc::fstat(self.fd, &mut st), 0);
            st.st_blocks as usize * 512
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // SAFETY: nobody uses the mapping any more.
        unsafe { self.segment.unmap() };
        sys::close(self.fd);
    }
}

/// Appends `n` bytes of the ring to `to`.
pub fn copy_out(mem: &RawMemory, off: u32, n: u32, to: &mut Vec<u8>) {
    let old = to.len();
    to.reserve(n as usize);
    // SAFETY: `n` bytes are valid in the ring and reserved in the vector.
    unsafe {
        let end = to.as_mut_ptr().add(old);
        end.copy_from_nonoverlapping(mem.bytes(off, n), n as usize);
        to.set_len(old + n as usize);
    }
}

/// The `i`th byte of a stream that every test can tell from another place of it.
pub fn byte(i: usize) -> u8 {
    ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// `n` bytes of that stream from `from` on.
pub fn bytes(from: usize, n: usize) -> Vec<u8> {
    (from..from + n).map(byte).collect()
}

/// A record that tells by itself whose it is and whether it is whole: length,
/// source and number, and a pattern made from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    pub source: u32,
    pub number: u32,
}

impl Tag {
    /// The shortest record.
    pub const LEAST: u32 = 16;

    fn word(self, len: u32, i: u32) -> u64 {
        let seed = u64::from(self.source) << 48 | u64::from(self.number) << 24 | u64::from(len);
        (seed ^ u64::from(i).wrapping_mul(0x0101_0101_0101)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Writes a record of `n` bytes. Allocates nothing.
    pub fn fill(self, mem: &RawMemory, off: u32, n: u32) {
        assert!(n >= Tag::LEAST && off.is_multiple_of(HEADER));
        let to = mem.bytes(off, n).cast::<u64>();
        // SAFETY: aligned, and `n` bytes are valid from `to` on.
        unsafe {
            to.cast::<[u32; 3]>().write([n, self.source, self.number]);
            for i in 2..n / 8 {
                to.add(i as usize).write(self.word(n, i));
            }
            for i in n & !7..n {
                to.cast::<u8>().add(i as usize).write(self.source as u8);
            }
        }
    }

    /// The first record of `bytes`, if it is all there.
    pub fn first(bytes: &[u8]) -> Option<&[u8]> {
        let n = u32::from_ne_bytes(bytes.get(..4)?.try_into().unwrap());
        bytes.get(..n as usize)
    }

    /// Reads a record; `Err` says what is wrong with it. Allocates nothing.
    pub fn read(record: &[u8]) -> Result<Tag, Bad> {
        let long = |i: usize| u64::from_ne_bytes(record[8 * i..8 * i + 8].try_into().unwrap());
        let n = record.len() as u32;
        if n < Tag::LEAST {
            return Err(Bad::Short(n));
        }
        let (length, source) = (long(0) as u32, (long(0) >> 32) as u32);
        let number = long(1) as u32;
        let tag = Tag { source, number };
        if length != n {
            return Err(Bad::Length(tag, length, n));
        }
        for i in 2..n / 8 {
            if long(i as usize) != tag.word(n, i) {
                return Err(Bad::Torn(tag, 8 * i, n));
            }
        }
        match record[(n & !7) as usize..]
            .iter()
            .all(|b| *b == source as u8)
        {
            true => Ok(tag),
            false => Err(Bad::Torn(tag, n & !7, n)),
        }
    }
}

/// What can be wrong with a record.
#[derive(Debug)]
#[allow(dead_code)]
pub enum Bad {
    Short(u32),
    /// What it says, what it has.
    Length(Tag, u32, u32),
    /// Where, of how many bytes.
    Torn(Tag, u32, u32),
}

/// The lock as the preload library takes it; says whether it was stolen.
pub fn take(lock: &Lock, me: u32) -> bool {
    lock.acquire(me) != Acquired::Clean
}
