//! Making, checking and mapping segments.

#![cfg(not(loom))]

use crate::abi::record::{CHUNKS, CHUNK_SHIFT, RING};
use crate::abi::segment::{Direction, Header, MAGIC, RINGS, SIZE};
use crate::abi::VERSION;
use crate::ring::RawMemory;
use crate::sync::Ordering;
use crate::{sys, syscall};
use core::ffi::c_int;

/// tmpfs, as statfs(2) names it. Only such memory is mapped: a hugetlb file
/// faults even when it is sealed.
const TMPFS_MAGIC: i64 = 0x0102_1994;
const SEALS: c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A mapped segment. Copyable: the mapping is unmapped by whoever knows that
/// nobody uses it any more.
#[derive(Clone, Copy)]
pub struct Segment {
    base: *mut u8,
}

/// Makes a new, sealed, empty segment; returns its descriptor (close-on-exec).
/// `Err` is an errno of memfd_create(2), ftruncate(2) or fcntl(2).
pub fn create() -> Result<c_int, c_int> {
    if sys::file_size_limit() < SIZE as u64 {
        // ftruncate(2) beyond RLIMIT_FSIZE ends the process with SIGXFSZ.
        return Err(libc::EFBIG);
    }
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a constant C string and flags.
    let fd = unsafe { syscall!(libc::SYS_memfd_create, c"sidewire-segment".as_ptr(), flags) };
    if fd < 0 {
        return Err(-fd as c_int);
    }
    let fd = fd as c_int;
    // SAFETY: no memory is passed.
    let r = unsafe { syscall!(libc::SYS_ftruncate, fd, SIZE) };
    let r = if r == 0 {
        // SAFETY: as above.
        unsafe { syscall!(libc::SYS_fcntl, fd, libc::F_ADD_SEALS, SEALS) }
    } else {
        r
    };
    if r < 0 {
        sys::close(fd);
        return Err(-r as c_int);
    }
    Ok(fd)
}

/// Is `fd` memory that cannot fault under us: tmpfs, exactly our size, sealed
/// against shrinking?
fn is_sound(fd: c_int) -> bool {
    // SAFETY: plain C structs, for which all zero is valid; the kernel fills
    // them within their size.
    unsafe {
        let mut fs: libc::statfs = core::mem::zeroed();
        let mut st: libc::stat = core::mem::zeroed();
        let seals = syscall!(libc::SYS_fcntl, fd, libc::F_GET_SEALS);
        syscall!(libc::SYS_fstatfs, fd, &mut fs as *mut libc::statfs) == 0
            && fs.f_type == TMPFS_MAGIC
            && syscall!(libc::SYS_fstat, fd, &mut st as *mut libc::stat) == 0
            && st.st_size == SIZE as i64
            && seals >= 0
            && seals as c_int & libc::F_SEAL_SHRINK != 0
    }
}

impl Segment {
    /// Maps the segment `fd`. `creator` writes the header; the other end checks
    /// it. `None`: not a sound segment of this version, or no address space.
    pub fn map(fd: c_int, creator: bool) -> Option<Segment> {
        if !is_sound(fd) {
            return None;
        }
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        // SAFETY: no MAP_FIXED: a new range.
        let base = unsafe { sys::mmap(core::ptr::null_mut(), SIZE, flags, fd) }?;
        let segment = Segment { base };
        let h = segment.header();
        if creator {
            h.chunk_shift.store(CHUNK_SHIFT, Ordering::Relaxed);
            h.chunks.store(CHUNKS, Ordering::Relaxed);
            h.version.store(VERSION, Ordering::Relaxed);
            h.magic.store(MAGIC, Ordering::Release);
        }
        let ours = h.magic.load(Ordering::Acquire) == MAGIC
            && h.version.load(Ordering::Relaxed) == VERSION
            && h.chunk_shift.load(Ordering::Relaxed) == CHUNK_SHIFT
            && h.chunks.load(Ordering::Relaxed) == CHUNKS;
        if ours {
            Some(segment)
        } else {
            // SAFETY: nobody has seen the mapping yet.
            unsafe { segment.unmap() };
            None
        }
    }

    /// A segment that is mapped at `base` already.
    ///
    /// # Safety
    /// `base` came from [`Segment::base`] and is still mapped.
    pub unsafe fn at(base: *mut u8) -> Segment {
        Segment { base }
    }

    /// Where it is mapped.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    fn header(&self) -> &'static Header {
        // SAFETY: page-aligned, mapped for SIZE bytes; the header holds atomics
        // only. The lifetime is the mapping's, which the owner answers for.
        unsafe { &*self.base.cast::<Header>() }
    }

    /// The words of direction `d` (0 or 1).
    #[inline]
    pub fn direction(&self, d: usize) -> &'static Direction {
        &self.header().direction[d & 1]
    }

    /// The ring of direction `d` (0 or 1).
    #[inline]
    pub fn ring(&self, d: usize) -> RawMemory {
        // SAFETY: inside the mapping, page-aligned, RING bytes long.
        unsafe { RawMemory::new(self.base.add(RINGS + (d & 1) * RING)) }
    }

    /// Unmaps the segment.
    ///
    /// # Safety
    /// No thread uses it, or will.
    pub unsafe fn unmap(self) {
        // SAFETY: the caller's promise.
        unsafe { sys::munmap(self.base, SIZE) };
    }
}
