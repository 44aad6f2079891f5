//! Making, checking and mapping the arena: the memory that a program and its
//! descendants share (its layout is [`crate::abi::arena`]).
//!
//! The launcher makes it when somebody wants to see it (`--stats`, `--require`,
//! `--log`), else the library does. Raw system calls only, and no allocation:
//! the library comes through here inside its first hook.

#![cfg(not(loom))]

use crate::abi::arena::{Header, Slot, LOG_AT, MAGIC, SIZE, SLOTS, SLOTS_AT};
use crate::abi::log::{self, Event, Record, RECORDS};
use crate::abi::VERSION;
use crate::sync::Ordering;
use crate::{sys, syscall};
use core::ffi::{c_int, CStr};

/// [`crate::abi::arena::NAME`] as memfd_create(2) wants it.
const NAME: &CStr = c"sidewire-arena";
/// tmpfs, as statfs(2) names it: what a memfd lies on, unless it is hugetlb.
const TMPFS_MAGIC: i64 = 0x0102_1994;
const SEALS: c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
/// Descriptors below this belong to the program's standard streams.
const LOWEST_FD: c_int = 10;

/// A mapped arena. It stays mapped as long as the process lives, so this is a
/// plain, copyable handle.
#[derive(Clone, Copy)]
pub struct ArenaRef {
    base: *mut u8,
}

// SAFETY: everything behind `base` is atomics, and is never unmapped.
unsafe impl Send for ArenaRef {}
// SAFETY: as above.
unsafe impl Sync for ArenaRef {}

/// Makes a new, sealed arena with its header written; returns its descriptor
/// (close-on-exec, 10 or higher). `Err` is an errno of memfd_create(2),
/// ftruncate(2), fcntl(2) or mmap(2).
pub fn create() -> Result<c_int, c_int> {
    if sys::file_size_limit() < SIZE as u64 {
        // ftruncate(2) beyond RLIMIT_FSIZE ends the process with SIGXFSZ.
        return Err(libc::EFBIG);
    }
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a constant C string and flags.
    let low = check(unsafe { syscall!(libc::SYS_memfd_create, NAME.as_ptr(), flags) })?;
    // A program that was started with its standard streams closed must not find
    // an arena in their place.
    // SAFETY: no memory is passed.
    let fd = check(unsafe { syscall!(libc::SYS_fcntl, low, libc::F_DUPFD_CLOEXEC, LOWEST_FD) });
    sys::close(low);
    let fd = fd?;
    match fill(fd) {
        Ok(()) => Ok(fd),
        Err(errno) => {
            sys::close(fd);
            Err(errno)
        }
    }
}

/// Sizes and seals the new memory `fd` and writes the header.
fn fill(fd: c_int) -> Result<(), c_int> {
    // SAFETY: no memory is passed.
    check(unsafe { syscall!(libc::SYS_ftruncate, fd, SIZE) })?;
    // SAFETY: as above.
    check(unsafe { syscall!(libc::SYS_fcntl, fd, libc::F_ADD_SEALS, SEALS) })?;
    // SAFETY: no MAP_FIXED: a new range.
    let base = unsafe { sys::mmap(core::ptr::null_mut(), SLOTS_AT, libc::MAP_SHARED, fd) };
    let base = base.ok_or(libc::ENOMEM)?;
    // SAFETY: page-aligned, mapped for SLOTS_AT bytes, atomics only.
    let header = unsafe { &*base.cast::<Header>() };
    let slot_size = core::mem::size_of::<Slot>() as u32;
    header.version.store(VERSION, Ordering::Relaxed);
    header.slot_size.store(slot_size, Ordering::Relaxed);
    header.magic.store(MAGIC, Ordering::Release);
    // SAFETY: `header` is not used any more.
    unsafe { sys::munmap(base, SLOTS_AT) };
    Ok(())
}

/// A system call's result: a descriptor (or 0), or an errno.
fn check(r: isize) -> Result<c_int, c_int> {
    if r < 0 {
        Err(-r as c_int)
    } else {
        Ok(r as c_int)
    }
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

/// Maps the arena `fd`, which may be closed afterwards. `None`: not a sound
/// arena of this version, or no address space.
pub fn map(fd: c_int) -> Option<ArenaRef> {
    if !is_sound(fd) {
        return None;
    }
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
    // SAFETY: no MAP_FIXED: a new range.
    let base = unsafe { sys::mmap(core::ptr::null_mut(), SIZE, flags, fd) }?;
    let arena = ArenaRef { base };
    let header = arena.header();
    let ours = header.magic.load(Ordering::Acquire) == MAGIC
        && header.version.load(Ordering::Relaxed) == VERSION
        && header.slot_size.load(Ordering::Relaxed) == core::mem::size_of::<Slot>() as u32;
    if !ours {
        // SAFETY: nobody has seen the mapping yet.
        unsafe { sys::munmap(base, SIZE) };
        return None;
    }
    Some(arena)
}

/// Opens the arena that `path` names (`/proc/PID/fd/N`, from the environment)
/// and maps it; also returns the new descriptor (close-on-exec), which `sidewire
/// ps` finds the arena by. `None`: no such file, or not a sound arena.
pub fn open(path: &CStr) -> Option<(c_int, ArenaRef)> {
    // O_NONBLOCK: a path that names something else by now must not block us.
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: a C string and flags.
    let fd = unsafe { syscall!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) };
    let fd = check(fd).ok()?;
    match map(fd) {
        Some(arena) => Some((fd, arena)),
        None => {
            sys::close(fd);
            None
        }
    }
}

impl ArenaRef {
    /// An arena that is mapped at `base` already.
    ///
    /// # Safety
    /// `base` came from [`ArenaRef::base`] and is still mapped.
    pub unsafe fn at(base: *mut u8) -> ArenaRef {
        ArenaRef { base }
    }

    /// Where it is mapped.
    #[inline]
    pub fn base(self) -> *mut u8 {
        self.base
    }

    /// The header.
    #[inline]
    pub fn header(self) -> &'static Header {
        // SAFETY: page-aligned, mapped for ever, atomics only.
        unsafe { &*self.base.cast::<Header>() }
    }

    /// Slot `index`; `None` beyond the last one.
    #[inline]
    pub fn slot(self, index: u32) -> Option<&'static Slot> {
        if index >= SLOTS {
            return None;
        }
        // SAFETY: within the mapping, aligned (SLOTS_AT and the slot's size are
        // multiples of its alignment), atomics only.
        unsafe { Some(&*self.base.add(SLOTS_AT).cast::<Slot>().add(index as usize)) }
    }

    /// The index of one of its slots.
    pub fn index_of(self, slot: &Slot) -> Option<u32> {
        let first = self.slot(0)? as *const Slot as usize;
        let offset = (slot as *const Slot as usize).checked_sub(first)?;
        u32::try_from(offset / core::mem::size_of::<Slot>()).ok()
    }

    /// The log's ring.
    #[inline]
    pub fn records(self) -> &'static [Record; RECORDS] {
        // SAFETY: within the mapping, aligned (checked in the layout), atomics only.
        unsafe { &*self.base.add(LOG_AT).cast::<[Record; RECORDS]>() }
    }

    /// Logs `event` about slot `slot` (or [`log::NO_SLOT`]) of generation
    /// `generation`; see [`log::write`].
    #[inline]
    pub fn log(self, event: Event, slot: u32, generation: u32, args: [u64; 2]) {
        // Looks at the header only, unless the level is on.
        log::write(
            self.header(),
            self.records(),
            event,
            (slot, generation),
            args,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::log::{place, Found, Level, NO_SLOT};

    fn new() -> ArenaRef {
        let fd = create().expect("memfd");
        assert!(fd >= LOWEST_FD);
        let arena = map(fd).expect("a new arena is sound");
        sys::close(fd);
        arena
    }

    #[test]
    fn slots_end_where_the_log_begins() {
        let arena = new();
        let last = arena.slot(SLOTS - 1).unwrap() as *const Slot as usize;
        let records = arena.records().as_ptr() as usize;
        assert_eq!(last + core::mem::size_of::<Slot>(), records);
        assert!(arena.slot(SLOTS).is_none());
        let some = arena.slot(4711).unwrap();
        assert_eq!(arena.index_of(some), Some(4711));
        assert_eq!(NAME.to_bytes(), crate::abi::arena::NAME.as_bytes());
    }

    #[test]
    fn only_a_sound_arena_is_mapped() {
        // SAFETY: a constant C string and flags.
        let fd = check(unsafe { syscall!(libc::SYS_memfd_create, NAME.as_ptr(), 0) }).unwrap();
        assert!(map(fd).is_none(), "empty and not sealed");
        // SAFETY: no memory is passed.
        check(unsafe { syscall!(libc::SYS_ftruncate, fd, SIZE) }).unwrap();
        assert!(map(fd).is_none(), "not sealed");
        sys::close(fd);
        assert!(open(c"/dev/null").is_none());
        assert!(open(c"/does/not/exist").is_none());
    }

    #[test]
    fn the_log_keeps_the_latest_records() {
        let arena = new();
        arena.log(Event::Loaded, NO_SLOT, 0, [0, 0]);
        assert_eq!(arena.header().log_next.load(Ordering::Relaxed), 0);
        let level = Level::Info as u32;
        arena.header().log_level.store(level, Ordering::Relaxed);
        arena.log(Event::Opened, 1, 1, [0, 0]);
        let total = RECORDS as u64 + 3;
        for i in 0..total {
            arena.log(Event::CutOver, 7, 5, [i, 2 * i]);
        }
        let next = arena.header().log_next.load(Ordering::Relaxed);
        assert_eq!(next, total, "debug is above the level");
        let read = |t: u64| arena.records()[place(t)].read(t);
        assert_eq!(read(0), Found::Overwritten);
        assert_eq!(read(total), Found::NotYet);
        let Found::Entry(e) = read(total - 1) else {
            panic!("the last record is there");
        };
        assert_eq!((e.slot, e.generation, e.event), (7, 5, Event::CutOver));
        assert_eq!(e.args, [total - 1, 2 * (total - 1)]);
        assert_eq!(e.pid, std::process::id());
    }

    #[test]
    fn writers_at_once_never_mix_records() {
        let arena = new();
        arena.header().log_level.store(4, Ordering::Relaxed);
        std::thread::scope(|s| {
            for t in 0..4u64 {
                s.spawn(move || {
                    for i in 0..20_000u64 {
                        let a = t << 32 | i;
                        arena.log(Event::Trace, t as u32, i as u32, [a, !a]);
                    }
                });
            }
        });
        let next = arena.header().log_next.load(Ordering::Relaxed);
        let mut seen = 0;
        for ticket in next - RECORDS as u64..next {
            if let Found::Entry(e) = arena.records()[place(ticket)].read(ticket) {
                assert_eq!(e.args[0], !e.args[1]);
                assert_eq!(e.args[0], u64::from(e.slot) << 32 | u64::from(e.generation));
                seen += 1;
            }
        }
        assert!(seen > RECORDS / 2, "{seen}");
    }
}
