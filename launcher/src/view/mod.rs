//! Reading an arena that others write to, perhaps to mislead us.
//!
//! Everything is copied out first, by pread(2): a copy cannot change under us,
//! cannot fault, and costs the arena no memory where it is still a hole. Every
//! bit pattern of a copy is valid, and nothing in it is used as an index.

pub mod stream;
pub mod totals;

pub use stream::{State, Stream};

use rdma_engine::abi::arena::{Header, Slot, MAGIC, SLOTS, SLOTS_AT};
use rdma_engine::abi::VERSION;
use std::fs::File;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

/// Plain memory made of atomics only.
///
/// # Safety
/// Every bit pattern is a valid value, and there is no padding that matters.
unsafe trait Plain {}

// SAFETY: `Header` is `repr(C)`, and all its fields are atomic integers.
unsafe impl Plain for Header {}
// SAFETY: `Slot` is `repr(C)`; its fields are atomic integers, and structs
// of such (addresses, locks, ring states).
unsafe impl Plain for Slot {}

/// Copies a `T` that stands `at` bytes into the file.
fn copy<T: Plain>(file: &File, at: u64) -> Option<T> {
    let mut memory = MaybeUninit::<T>::zeroed();
    // SAFETY: zeroed memory is a valid `T` (`Plain`), so that the slice is
    // initialised; it covers just that memory, which nobody else knows.
    unsafe {
        let start = memory.as_mut_ptr().cast::<u8>();
        let bytes = std::slice::from_raw_parts_mut(start, std::mem::size_of::<T>());
        file.read_exact_at(bytes, at).ok()?;
        Some(memory.assume_init())
    }
}

/// An arena, opened for reading.
pub struct View {
    file: File,
}

impl View {
    /// The arena behind an open file; `None` if it is not one of this version.
    pub fn new(file: File) -> Option<View> {
        let view = View { file };
        let h = view.header()?;
        let ours = h.magic.load(Ordering::Relaxed) == MAGIC
            && h.version.load(Ordering::Relaxed) == VERSION
            && h.slot_size.load(Ordering::Relaxed) as usize == std::mem::size_of::<Slot>();
        ours.then_some(view)
    }

    /// The header, as it is now.
    pub fn header(&self) -> Option<Header> {
        copy(&self.file, 0)
    }

    /// The streams whose slots are in use, as they are now. One that ends while
    /// it is read is left out.
    pub fn streams(&self) -> impl Iterator<Item = Stream> + '_ {
        let high = self
            .header()
            .map_or(0, |h| h.high.load(Ordering::Relaxed))
            .min(SLOTS);
        (0..high).filter_map(|i| self.stream(i))
    }

    /// The stream in slot `index`.
    pub fn stream(&self, index: u32) -> Option<Stream> {
        self.slot(index).filter(|s| s.generation % 2 == 1)
    }

    /// The addresses of use `generation` of slot `index`: they stand there until
    /// the slot is used again.
    pub fn ends(&self, index: u32, generation: u32) -> Option<(SocketAddr, SocketAddr)> {
        let same = |s: &Stream| s.generation.wrapping_sub(generation) <= 1;
        let slot = self.slot(index).filter(same)?;
        slot.local.zip(slot.remote)
    }

    /// What stands in slot `index`, in use (odd generations) or not.
    fn slot(&self, index: u32) -> Option<Stream> {
        if index >= SLOTS {
            return None;
        }
        let size = std::mem::size_of::<Slot>() as u64;
        let at = SLOTS_AT as u64 + u64::from(index) * size;
        // The generation comes first in the slot, and is looked at again after
        // the copy: if it is the same, the copy is of one use.
        let slot: Slot = copy(&self.file, at)?;
        let generation = slot.generation.load(Ordering::Relaxed);
        let mut again = [0; 4];
        self.file.read_exact_at(&mut again, at).ok()?;
        if u32::from_ne_bytes(again) != generation {
            return None;
        }
        Some(Stream::of(index, &slot))
    }
}
