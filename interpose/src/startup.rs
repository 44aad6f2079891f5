//! Start-up and exit of the library, and what the environment says.
//!
//! The constructor only maps sparse memory and reads the environment: other
//! libraries' constructors, and allocators that initialise, may have called
//! hooks before it; those find no tables and go to the kernel.

use core::ffi::{c_char, CStr};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use rdma_engine::arena::{self, ArenaRef};

/// How to wait (`--profile`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Profile {
    /// Spin longer: for programs that own their cores.
    Latency = 0,
    /// Spin very little, yield for a while, sleep; learn what pays.
    Adaptive = 1,
    /// Sleep at once.
    Frugal = 2,
}

static PROFILE: AtomicU32 = AtomicU32::new(Profile::Adaptive as u32);
/// May streams be moved at all (`--transport tcp` says no)?
static ENABLED: AtomicU32 = AtomicU32::new(0);
static UPGRADE_AFTER: AtomicU64 = AtomicU64::new(16);
static CHAOS: AtomicU64 = AtomicU64::new(0);

/// The waiting profile.
#[inline]
pub fn profile() -> Profile {
    match PROFILE.load(Ordering::Relaxed) {
        0 => Profile::Latency,
        2 => Profile::Frugal,
        _ => Profile::Adaptive,
    }
}

/// May streams be moved to a faster wire?
#[inline]
pub fn enabled() -> bool {
    ENABLED.load(Ordering::Relaxed) != 0
}

/// From now on no stream is moved.
pub fn disable() {
    ENABLED.store(0, Ordering::Relaxed);
}

/// Messages after which a stream is worth an offer.
#[inline]
pub fn upgrade_after() -> u64 {
    UPGRADE_AFTER.load(Ordering::Relaxed)
}

/// Tests: force a change of wire about once in so many calls; 0 is never.
#[inline]
pub fn chaos() -> u64 {
    CHAOS.load(Ordering::Relaxed)
}

fn env(name: &CStr) -> Option<&'static CStr> {
    extern "C" {
        fn secure_getenv(name: *const c_char) -> *mut c_char;
    }
    // In a set-uid program (by way of /etc/ld.so.preload) the environment is the
    // caller's, and counts for nothing.
    // SAFETY: secure_getenv(3) at start-up, before the program can change the
    // environment; the string lives in it.
    let p: *const c_char = unsafe { secure_getenv(name.as_ptr()) };
    // SAFETY: a nul-terminated string.
    (!p.is_null()).then(|| unsafe { CStr::from_ptr(p) })
}

fn number(name: &CStr) -> Option<u64> {
    let text = env(name)?.to_bytes();
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    text.iter().try_fold(0u64, |n, c| {
        c.is_ascii_digit().then(|| n * 10 + u64::from(c - b'0'))
    })
}

/// The arena that the launcher or an ancestor made for us.
pub fn inherited_arena() -> Option<(i32, ArenaRef)> {
    arena::open(env(c"SIDEWIRE_ARENA")?)
}

extern "C" fn start() {
    crate::tls::init();
    if !crate::fdtable::init() || !crate::threads::init() {
        return;
    }
    match env(c"SIDEWIRE_PROFILE").map(CStr::to_bytes) {
        Some(b"latency") => PROFILE.store(Profile::Latency as u32, Ordering::Relaxed),
        Some(b"frugal") => PROFILE.store(Profile::Frugal as u32, Ordering::Relaxed),
        _ => {}
    }
    if let Some(n) = number(c"SIDEWIRE_UPGRADE_AFTER") {
        UPGRADE_AFTER.store(n, Ordering::Relaxed);
    }
    if let Some(n) = number(c"SIDEWIRE_CHAOS") {
        CHAOS.store(n, Ordering::Relaxed);
    }
    let transport = env(c"SIDEWIRE_TRANSPORT").map(CStr::to_bytes);
    if !matches!(transport, Some(b"tcp" | b"rdma")) {
        ENABLED.store(1, Ordering::Relaxed);
    }
    let mut program = [0u8; 512];
    // SAFETY: a constant path and our own buffer.
    let n = unsafe {
        rdma_engine::syscall!(
            libc::SYS_readlinkat,
            libc::AT_FDCWD,
            c"/proc/self/exe".as_ptr(),
            program.as_mut_ptr(),
            program.len()
        )
    };
    let policy = env(c"SIDEWIRE_POLICY").map(CStr::to_bytes);
    // SAFETY: no arguments.
    let uid = unsafe { rdma_engine::syscall!(libc::SYS_geteuid) } as u32;
    crate::policy::load(policy, &program[..n.max(0) as usize], uid);
    crate::stats::start(env(c"SIDEWIRE_STATS_FILE"));
    crate::inherit::start(env(c"LD_PRELOAD"), env(c"SIDEWIRE_INHERIT"));
    crate::threads::barrier();
}

extern "C" fn end() {
    crate::stats::end();
    crate::stream::close::at_exit();
}

#[used]
#[cfg_attr(not(test), link_section = ".init_array")]
static START: extern "C" fn() = start;
#[used]
#[cfg_attr(not(test), link_section = ".fini_array")]
static END: extern "C" fn() = end;
