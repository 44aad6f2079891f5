//! Copies to and from the program that may fault.
//!
//! Where the kernel answers EFAULT we must not crash. All access to memory that
//! the program only *named* goes through three small routines in assembly; a
//! SIGSEGV or SIGBUS whose instruction lies inside them returns «failed»
//! instead of ending the program. Any other fault goes where it would have
//! gone: [`crate::signals`] stands in front of the program's own handlers
//! anyway. Nothing is paid on the way that does not fault.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

core::arch::global_asm!(
    ".pushsection .text.sidewire_faults,\"ax\",@progbits",
    ".p2align 4",
    ".hidden sidewire_user_begin",
    ".hidden sidewire_user_end",
    ".hidden sidewire_user_failed",
    ".hidden sidewire_user_copy",
    ".hidden sidewire_user_read",
    ".hidden sidewire_user_write",
    ".globl sidewire_user_begin",
    ".globl sidewire_user_end",
    ".globl sidewire_user_failed",
    ".globl sidewire_user_copy",
    ".globl sidewire_user_read",
    ".globl sidewire_user_write",
    "sidewire_user_begin:",
    // (to: rdi, from: rsi, n: rdx) -> 0, or 1 after a fault. Short copies by
    // overlapping moves, middle ones by SSE, long ones by the string move.
    "sidewire_user_copy:",
    "cmp rdx, 16",
    "jb 3f",
    "cmp rdx, 2048",
    "jae 5f",
    "movups xmm1, [rsi + rdx - 16]",
    "lea r8, [rdi + rdx - 16]",
    "2:",
    "movups xmm0, [rsi]",
    "movups [rdi], xmm0",
    "add rsi, 16",
    "add rdi, 16",
    "cmp rdi, r8",
    "jb 2b",
    "movups [r8], xmm1",
    "xor eax, eax",
    "ret",
    "3:",
    "test dl, 8",
    "jz 4f",
    "mov rax, [rsi]",
    "mov rcx, [rsi + rdx - 8]",
    "mov [rdi], rax",
    "mov [rdi + rdx - 8], rcx",
    "xor eax, eax",
    "ret",
    "4:",
    "test dl, 4",
    "jz 6f",
    "mov eax, [rsi]",
    "mov ecx, [rsi + rdx - 4]",
    "mov [rdi], eax",
    "mov [rdi + rdx - 4], ecx",
    "xor eax, eax",
    "ret",
    "5:",
    "mov rcx, rdx",
    "rep movsb",
    "xor eax, eax",
    "ret",
    "6:",
    "test edx, edx",
    "jz 7f",
    "movzx eax, byte ptr [rsi]",
    "movzx ecx, byte ptr [rsi + rdx - 1]",
    "shr edx, 1",
    "movzx r8d, byte ptr [rsi + rdx]",
    "mov [rdi + rdx], r8b",
    "mov [rdi], al",
    "adc edx, edx",
    "mov [rdi + rdx - 1], cl",
    "7:",
    "xor eax, eax",
    "ret",
    // (at: rdi) -> 0, or 1 after a fault: reads a byte.
    "sidewire_user_read:",
    "movzx eax, byte ptr [rdi]",
    "xor eax, eax",
    "ret",
    // (at: rdi) -> 0, or 1 after a fault: writes a byte back unchanged.
    "sidewire_user_write:",
    "lock or byte ptr [rdi], 0",
    "xor eax, eax",
    "ret",
    "sidewire_user_end:",
    "sidewire_user_failed:",
    "mov eax, 1",
    "ret",
    ".popsection",
);

extern "C" {
    fn sidewire_user_copy(to: *mut u8, from: *const u8, n: usize) -> usize;
    fn sidewire_user_read(at: *const u8) -> usize;
    fn sidewire_user_write(at: *const u8) -> usize;
    static sidewire_user_begin: u8;
    static sidewire_user_end: u8;
    static sidewire_user_failed: u8;
}

/// The highest address that user memory can have, plus 1 (x86-64, 5 levels). An
/// access to addresses that are not canonical faults without naming them.
const USER_END: usize = 1 << 56;
const PAGE: usize = 4096;

/// Is the handler there? Without it, no stream is more than Plain.
static READY: AtomicU32 = AtomicU32::new(0);

/// Installs the handler for SIGSEGV and SIGBUS; called with the first stream.
pub fn start() {
    if READY.swap(1, Ordering::AcqRel) == 0 {
        crate::signals::guard(libc::SIGSEGV);
        crate::signals::guard(libc::SIGBUS);
    }
}

/// Can faults be caught?
#[inline]
pub fn ready() -> bool {
    READY.load(Ordering::Relaxed) != 0
}

/// Copies `n` bytes; false if either side faults (then a part may be copied).
///
/// # Safety
/// Whichever side is ours is valid for `n` bytes; the other side is the
/// program's, and may be anything.
#[inline]
pub unsafe fn copy(to: *mut u8, from: *const u8, n: usize) -> bool {
    let fits = |p: usize| p.checked_add(n).is_some_and(|e| e <= USER_END);
    // SAFETY: the routine survives faults (see above); what it writes is ours
    // by the caller's promise, or what the program asked to have written.
    fits(to as usize) && fits(from as usize) && unsafe { sidewire_user_copy(to, from, n) } == 0
}

/// Are the `len` bytes at `at` readable (a byte of each page is tried)?
pub fn readable(at: usize, len: usize) -> bool {
    // SAFETY: the routine survives faults.
    each_page(at, len, |p| unsafe { sidewire_user_read(p) == 0 })
}

/// Are the `len` bytes at `at` writable (a byte of each page is tried)?
pub fn writable(at: usize, len: usize) -> bool {
    // SAFETY: the routine survives faults, and changes nothing.
    each_page(at, len, |p| unsafe { sidewire_user_write(p) == 0 })
}

fn each_page(at: usize, len: usize, test: impl Fn(*const u8) -> bool) -> bool {
    if len == 0 {
        return true;
    }
    let Some(last) = at.checked_add(len - 1).filter(|&l| l < USER_END) else {
        return false;
    };
    let mut p = at;
    while p < last {
        if !test(p as *const u8) {
            return false;
        }
        p = (p | (PAGE - 1)) + 1;
    }
    test(last as *const u8)
}

/// A value from the program's memory; `None` if it faults.
pub fn load<T: Copy>(at: *const T) -> Option<T> {
    let mut value = core::mem::MaybeUninit::<T>::uninit();
    // SAFETY: `value` is ours; only plain C structs are loaded, for which any
    // bytes are valid.
    unsafe {
        copy(
            value.as_mut_ptr().cast(),
            at.cast(),
            core::mem::size_of::<T>(),
        )
        .then(|| value.assume_init())
    }
}

/// For [`crate::signals`]: a fault inside the routines is mended in the saved
/// context, and the thread goes on at «failed».
///
/// # Safety
/// `context` is what the kernel passed to the handler of `sig`.
pub unsafe fn mend(sig: c_int, context: *mut c_void) -> bool {
    if sig != libc::SIGSEGV && sig != libc::SIGBUS {
        return false;
    }
    // SAFETY: the kernel's ucontext_t of this thread; the symbols are ours.
    unsafe {
        let uc = &mut *context.cast::<libc::ucontext_t>();
        let rip = &mut uc.uc_mcontext.gregs[libc::REG_RIP as usize];
        let inside = (&raw const sidewire_user_begin as i64..&raw const sidewire_user_end as i64)
            .contains(rip);
        if inside {
            *rip = &raw const sidewire_user_failed as i64;
        }
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_every_length_are_exact() {
        let from: Vec<u8> = (0..5000u32).map(|i| (i * 7 + 3) as u8).collect();
        for n in (0..300).chain([1000, 2047, 2048, 2049, 4999]) {
            let mut to = vec![0xeeu8; n + 8];
            // SAFETY: both are long enough.
            assert!(unsafe { copy(to.as_mut_ptr(), from.as_ptr(), n) });
            assert_eq!(to[..n], from[..n], "length {n}");
            assert!(to[n..].iter().all(|&b| b == 0xee), "length {n}");
        }
    }

    #[test]
    fn bad_addresses_are_refused() {
        start();
        let mut b = [0u8; 64];
        // SAFETY: one side is ours.
        unsafe {
            for bad in [0usize, 17, USER_END, usize::MAX - 4, 1 << 47] {
                assert!(!copy(b.as_mut_ptr(), bad as *const u8, 20));
                assert!(!copy(bad as *mut u8, b.as_ptr(), 20));
                assert!(!readable(bad, 1) && !writable(bad, 1));
            }
        }
        assert!(readable(b.as_ptr() as usize, 64) && writable(b.as_ptr() as usize, 64));
        let code = bad_addresses_are_refused as *const () as usize;
        assert!(readable(code, 4) && !writable(code, 4));
    }
}
