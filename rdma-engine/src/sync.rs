//! The only door to atomics: `core`'s in the library, loom's under `--cfg loom`.

#[cfg(not(loom))]
pub use core::sync::atomic::{fence, AtomicI32, AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub use loom::sync::atomic::{fence, AtomicI32, AtomicU32, AtomicU64, Ordering};

/// Pauses for a few tens of nanoseconds, for a loop that polls memory.
#[inline]
pub fn spin_hint() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// The wait of a loop that waits for another thread's few steps: spins at
/// first, then gives the processor away.
#[inline]
pub fn relax(round: u32) {
    if round < 16 || cfg!(loom) {
        spin_hint();
    } else {
        crate::sys::sched_yield();
    }
}

/// Replaces `word`'s value `old` by `new`, and says whether it did.
#[inline]
pub fn cas(word: &AtomicU64, old: u64, new: u64) -> bool {
    word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
        .is_ok()
}

/// As [`cas`], where only the calling thread, and handlers that interrupt it,
/// write the word: one instruction, without the `lock` prefix and its 20 cycles.
#[inline]
pub(crate) fn cas_alone(word: &AtomicU64, old: u64, new: u64) -> bool {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: `word` is a live, aligned u64; the instruction reads and writes
    // nothing else, and x86 keeps the order of stores, and of loads.
    unsafe {
        let was: u64;
        core::arch::asm!(
            "cmpxchg qword ptr [{w}], {n}",
            w = in(reg) word.as_ptr(),
            n = in(reg) new,
            inout("rax") old => was,
            options(nostack)
        );
        was == old
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    cas(word, old, new)
}

/// Takes `old` out of `word`, in one instruction, so that no signal handler of
/// this thread comes between the comparison and the store.
///
/// While `word` is `old`, no *other* thread may write it: then the `lock` prefix,
/// and its 20 cycles, can be left out.
#[inline]
pub fn take_out(word: &AtomicU32, old: u32) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: `word` is a live, aligned u32; the instruction reads and writes
    // nothing else, and earlier stores stay before it (x86 keeps their order).
    unsafe {
        core::arch::asm!(
            "cmpxchg dword ptr [{w}], {n:e}",
            w = in(reg) word.as_ptr(),
            n = in(reg) 0,
            inout("eax") old => _,
            options(nostack)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = word.compare_exchange(old, 0, Ordering::Release, Ordering::Relaxed);
}
