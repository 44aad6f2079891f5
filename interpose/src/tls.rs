//! The library's thread-local block.
//!
//! Not `thread_local!`: that goes through `__tls_get_addr`, and a destructor
//! would re-enter allocators. The block is zero-initialised, has no destructor,
//! and lies in the static TLS area, at a constant offset from the thread
//! pointer (ELF TLS, initial-exec model): one add. A preload library is there
//! at start-up, when such space is always granted.

use crate::anchors::ANCHORS;
use crate::threads::Mark;
use core::cell::Cell;
use core::sync::atomic::Ordering;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("Sidewire knows the thread-local storage of x86-64 Linux only");

/// What a thread knows about itself. All zero at its birth.
#[repr(C, align(64))]
pub struct Tls {
    /// The kernel's thread id; 0 until asked for.
    pub tid: Cell<u32>,
    /// The epoll set whose kernel is being asked, plus 1.
    pub asking: Cell<u32>,
    /// The thread's mark, null until its first call on a stream.
    pub mark: Cell<Option<&'static Mark>>,
    /// Handlers without SA_RESTART that ran in this thread (wraps).
    pub interrupts: Cell<u32>,
    /// Handlers with SA_RESTART that ran in this thread (wraps).
    pub restarts: Cell<u32>,
    /// State of a small random generator.
    pub random: Cell<u64>,
}

core::arch::global_asm!(
    ".pushsection .tbss.sidewire_tls,\"awT\",@nobits",
    ".hidden sidewire_tls",
    ".globl sidewire_tls",
    ".type sidewire_tls,@object",
    ".size sidewire_tls,64",
    ".p2align 6",
    "sidewire_tls:",
    ".zero 64",
    ".popsection",
);

const _: () = assert!(core::mem::size_of::<Tls>() == 64);

/// The calling thread's block.
#[inline(always)]
pub fn get() -> &'static Tls {
    let p: *const Tls;
    // SAFETY: reads the block's offset and adds the thread pointer (fs:0). The
    // block lives as long as the thread, only the thread itself reaches it, and
    // all its fields are cells for which all zero is valid.
    unsafe {
        core::arch::asm!(
            "mov {p}, qword ptr [rip + sidewire_tls@GOTTPOFF]",
            "add {p}, qword ptr fs:[0]",
            p = out(reg) p,
            options(pure, nomem, nostack)
        );
        &*p
    }
}

/// Notes where the block is, for [`mark`].
pub fn init() {
    let offset: usize;
    // SAFETY: reads the block's offset.
    unsafe {
        core::arch::asm!(
            "mov {p}, qword ptr [rip + sidewire_tls@GOTTPOFF]",
            p = out(reg) offset,
            options(pure, nomem, nostack)
        );
    }
    ANCHORS.tls.store(offset, Ordering::Relaxed);
}

/// The calling thread's mark, if it has one, by way of two lines of memory less than
/// [`get`]. Only after [`init`].
#[inline(always)]
pub fn mark() -> Option<&'static Mark> {
    let offset = ANCHORS.tls.load(Ordering::Relaxed);
    let mark: *const Mark;
    // SAFETY: the block's `mark`, as in [`get`]: null, or a reference.
    unsafe {
        core::arch::asm!(
            "mov {m}, qword ptr fs:[{o} + {field}]",
            o = in(reg) offset,
            m = out(reg) mark,
            field = const core::mem::offset_of!(Tls, mark),
            options(pure, readonly, nostack)
        );
        mark.as_ref()
    }
}

/// The calling thread's id.
#[inline]
pub fn tid() -> u32 {
    let tls = get();
    match tls.tid.get() {
        0 => {
            let tid = rdma_engine::sys::gettid();
            tls.tid.set(tid);
            tid
        }
        tid => tid,
    }
}

/// True about once in `n` calls (xorshift; for forced state changes in tests).
pub fn chance(n: u64) -> bool {
    let tls = get();
    let mut x = tls.random.get();
    if x == 0 {
        x = rdma_engine::sys::now_ns() | 1;
    }
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    tls.random.set(x);
    x.is_multiple_of(n)
}
