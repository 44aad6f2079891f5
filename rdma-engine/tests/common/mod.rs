//! One direction as the preload library uses it: the private state of each side
//! in memory that a fork shares, both guarded by their locks.

#![allow(dead_code)]

use rdma_engine::lock::{Acquired, Lock};
use rdma_engine::ring::*;
use rdma_engine::segment::{self, Segment};
use rdma_engine::sys;

/// The private states, which lie in shared anonymous memory.
#[repr(C)]
pub struct Private {
    pub tx_lock: Lock,
    pub rx_lock: Lock,
    pub tx: ProducerState,
    pub rx: ConsumerState,
}

#[derive(Clone, Copy)]
pub struct Wire {
    pub segment: Segment,
    pub private: &'static Private,
}

// SAFETY: atomics and addresses that are never unmapped.
unsafe impl Send for Wire {}
// SAFETY: as above.
unsafe impl Sync for Wire {}

/// The longest record of these tests.
pub const LONGEST: usize = 4096;

impl Wire {
    pub fn new() -> Wire {
        let fd = segment::create().expect("memfd");
        let segment = Segment::map(fd, true).expect("map");
        sys::close(fd);
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let size = core::mem::size_of::<Private>();
        // SAFETY: a new range, zeroed, which is a valid state of all its parts.
        let private = unsafe {
            let p = sys::mmap(core::ptr::null_mut(), size, flags, -1).expect("mmap");
            &*p.cast::<Private>()
        };
        private.tx.begin();
        private.rx.begin();
        Wire { segment, private }
    }

    fn consumed(&self) -> &rdma_engine::sync::AtomicU64 {
        &self.segment.direction(0).cursor.consumed
    }

    /// Pushes record `number` of `source` with the lock held; false if there is
    /// no room. Async-signal-safe.
    pub fn push(&self, source: u32, number: u32, n: usize) -> bool {
        let (p, me) = (self.private, sys::gettid());
        let stolen = p.tx_lock.acquire(me) != Acquired::Clean;
        let ring = self.segment.ring(0);
        let producer = Producer::new(&ring, &p.tx, self.consumed(), stolen).expect("our headers");
        let pushed = producer.push(n, 1 << 20, false, |mem, off, n| {
            // Near the limit there may be room for less than a whole record.
            let n = if n < 12 { 0 } else { n & !3 };
            if n > 0 {
                fill(mem, off, n, source, number);
            }
            Ok(n)
        });
        p.tx_lock.release(me);
        match pushed {
            Push::Done(0) | Push::Full => false,
            Push::Done(_) => true,
            _ => panic!("push"),
        }
    }

    /// Pulls a record into `buffer`; `None` if there is none. Async-signal-safe.
    pub fn pull(&self, buffer: &mut [u8; LONGEST]) -> Option<(u32, u32)> {
        let (p, me) = (self.private, sys::gettid());
        p.rx_lock.acquire(me);
        let ring = self.segment.ring(0);
        let consumer = Consumer::new(&ring, &p.rx, self.consumed());
        let pulled = consumer.pull(LONGEST, |mem, off, n| {
            let to = buffer.as_mut_ptr();
            // SAFETY: `n` bytes are valid in the ring and in the buffer.
            unsafe { to.copy_from_nonoverlapping(mem.bytes(off, n), n as usize) };
            Ok(n)
        });
        p.rx_lock.release(me);
        match pulled {
            Pull::Data(n) => Some(read(&buffer[..n])),
            Pull::Empty => None,
            _ => panic!("pull"),
        }
    }
}

fn word(source: u32, number: u32, len: u32, i: u32) -> u32 {
    (source ^ number.rotate_left(8) ^ len.rotate_left(20) ^ i).wrapping_mul(0x9e37_79b9)
}

/// A record that tells whose it is and whether it is whole.
fn fill(mem: &RawMemory, off: u32, n: u32, source: u32, number: u32) {
    assert!(n & 3 == 0 && n >= 12);
    let to = mem.bytes(off, n).cast::<u32>();
    // SAFETY: aligned to 8, and `n` bytes are valid.
    unsafe {
        to.cast::<[u32; 3]>().write([n, source, number]);
        for i in 3..n / 4 {
            to.add(i as usize).write(word(source, number, n, i));
        }
    }
}

/// Source and number of a record that is whole.
fn read(record: &[u8]) -> (u32, u32) {
    let at = |i: usize| u32::from_ne_bytes(record[4 * i..4 * i + 4].try_into().unwrap());
    let (n, source, number) = (at(0), at(1), at(2));
    assert_eq!(n as usize, record.len(), "a record of {source}");
    for i in 3..n / 4 {
        assert_eq!(
            at(i as usize),
            word(source, number, n, i),
            "torn: {source} {number}"
        );
    }
    (source, number)
}
