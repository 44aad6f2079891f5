//! The bytes of a ring, behind a small trait so that the model checker can put
//! its own cells there.

use crate::abi::record::RING;
#[cfg(not(loom))]
use crate::abi::record::{CHUNK, CHUNK_SHIFT};
use crate::sync::AtomicU64;

/// A copy to or from the program failed (an errno, e.g. from pread(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault(pub i32);

/// The memory of one ring. Offsets are in bytes and below [`RING`].
pub trait Memory {
    /// The line at `off` will be written soon: asks for it, without waiting.
    fn will_write(&self, _off: u32) {}
    /// The line at `off` was written, and another processor will read it next: lets it
    /// go to the cache that both share.
    fn was_written(&self, _off: u32) {}
    /// The header word at `off` (a multiple of 8).
    fn header(&self, off: u32) -> &AtomicU64;
    /// Gives a chunk's memory back to the system. Its content is lost, but for
    /// the header at `keep`: a producer that comes late must still find there
    /// that the chunk was left.
    fn give_back(&self, chunk: u32, keep: u32);
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

impl RawMemory {
    /// The `n` bytes at `off` are read next. Asks for all their lines at once: the
    /// processor's own fetching ahead needs some to begin, and stops at each page. For
    /// less than this it does not pay.
    #[inline]
    pub fn will_read(&self, off: u32, n: u32) {
        const WORTH_IT: u32 = 512;
        if n < WORTH_IT {
            return;
        }
        let end = (off + n).min(RING as u32);
        for line in (off + 64..end).step_by(64) {
            // SAFETY: a hint about an address inside the ring; it never faults.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                core::arch::asm!(
                    "prefetcht0 byte ptr [{p}]",
                    p = in(reg) self.base.add(line as usize),
                    options(nostack, preserves_flags, readonly)
                );
            }
        }
    }
}

#[cfg(not(loom))]
impl Memory for RawMemory {
    #[inline]
    fn will_write(&self, off: u32) {
        if (off as usize) < RING {
            // SAFETY: a hint about an address inside the ring; it never faults.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                core::arch::asm!(
                    "prefetchw byte ptr [{p}]",
                    p = in(reg) self.base.add(off as usize),
                    options(nostack, preserves_flags)
                );
            }
        }
    }

    #[inline]
    fn was_written(&self, off: u32) {
        if (off as usize) < RING {
            // SAFETY: a hint about an address inside the ring; it never faults, and is
            // a no-operation to processors that do not know it.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                core::arch::asm!(
                    "cldemote byte ptr [{p}]",
                    p = in(reg) self.base.add(off as usize),
                    options(nostack, preserves_flags)
                );
            }
        }
    }

    #[inline]
    fn header(&self, off: u32) -> &AtomicU64 {
        assert!(off as usize + 8 <= RING && off.is_multiple_of(8));
        // SAFETY: aligned and in bounds by the assertion; the peer may write it
        // at any time, which is what an atomic is for.
        unsafe { &*self.base.add(off as usize).cast::<AtomicU64>() }
    }

    fn give_back(&self, chunk: u32, keep: u32) {
        const PAGE: u32 = 4096;
        let start = chunk << CHUNK_SHIFT;
        let page = keep & !(PAGE - 1);
        for (from, to) in [(start, page), (page + PAGE, start + CHUNK)] {
            if from < to {
                let (p, len) = (self.bytes(from, to - from), to - from);
                // SAFETY: the range lies in our shared mapping; its content is
                // dead. A refusal (madvise(2), larger pages) only means that
                // the memory stays.
                unsafe { crate::syscall!(libc::SYS_madvise, p, len, libc::MADV_REMOVE) };
            }
        }
    }
}
