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

/// Replaces `word`'s value `old` by `new`, atomically against signal handlers
/// of the calling thread (and against a thief of the lock that guards it), and
/// says whether it did.
///
/// The caller holds the lock that guards `word`, so that no *other running*
/// thread writes it: the `lock` prefix, and its 20 cycles, can be left out.
/// A single `cmpxchg` instruction cannot be interrupted in its middle.
#[inline]
pub fn local_cas(word: &AtomicU64, old: u64, new: u64) -> bool {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    {
        let ok: u8;
        // SAFETY: `word` is a live, aligned u64; the instruction reads and
        // writes nothing else. Interior mutability is what atomics grant.
        unsafe {
            core::arch::asm!(
                "cmpxchg qword ptr [{w}], {n}",
                "sete {ok}",
                w = in(reg) word.as_ptr(),
                n = in(reg) new,
                ok = out(reg_byte) ok,
                inout("rax") old => _,
                options(nostack)
            );
        }
        ok != 0
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
        .is_ok()
}
