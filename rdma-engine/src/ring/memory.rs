//! The bytes of a ring, behind a small trait so that the model checker can put
//! its own cells there.

use crate::abi::record::{CHUNK, CHUNK_SHIFT, RING};
use crate::sync::AtomicU64;

/// A copy to or from the program failed (an errno, e.g. from pread(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault(pub i32);

/// The memory of one ring. Offsets are in bytes and below [`RING`].
pub trait Memory {
    /// The header word at `off` (a multiple of 8).
    fn header(&self, off: u32) -> &AtomicU64;
    /// Gives a chunk's memory back to the system. Its content is lost.
    fn give_back(&self, chunk: u32);
}

/// A ring in mapped memory.
#[derive(Clone, Copy)]
pub struct RawMemory {
    base: *mut u8,
}

impl RawMemory {
    /// A ring whose bytes start at `base`.
    ///
    /// # Safety
    /// `base` is 8-byte aligned and valid for [`RING`] bytes for as long as the
    /// value is used; the mapping is backed by memory that cannot shrink.
    pub unsafe fn new(base: *mut u8) -> RawMemory {
        RawMemory { base }
    }

    /// The address of the byte at `off`, with `len` bytes valid behind it.
    #[inline]
    pub fn bytes(&self, off: u32, len: u32) -> *mut u8 {
        assert!(off as usize + len as usize <= RING);
        // SAFETY: within the ring by the assertion above.
        unsafe { self.base.add(off as usize) }
    }
}

#[cfg(not(loom))]
impl Memory for RawMemory {
    #[inline]
    fn header(&self, off: u32) -> &AtomicU64 {
        assert!(off as usize + 8 <= RING && off % 8 == 0);
        // SAFETY: aligned and in bounds by the assertion; the peer may write it
        // at any time, which is what an atomic is for.
        unsafe { &*self.base.add(off as usize).cast::<AtomicU64>() }
    }

    fn give_back(&self, chunk: u32) {
        let p = self.bytes(chunk << CHUNK_SHIFT, CHUNK);
        // SAFETY: the range lies in our shared mapping; its content is dead. A
        // refusal (madvise(2)) only means that the memory stays.
        unsafe { crate::syscall!(libc::SYS_madvise, p, CHUNK, libc::MADV_REMOVE) };
    }
}
