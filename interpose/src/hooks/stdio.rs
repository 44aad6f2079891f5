//! stdio on sockets. The bytes go by calls inside libc that no hook sees, so
//! the stream is pinned to TCP before stdio gets hold of it.

use crate::fdtable;
use crate::real;
use crate::stream::close as end;
use crate::stream::leave::leave_to_others;
use core::ffi::{c_char, c_int, c_void};
use libc::FILE;
use rdma_engine::abi::reason::Reason;

fn taken(fd: c_int) {
    if let Some(s) = crate::stream::of(fd) {
        leave_to_others(&s, Reason::Stdio);
    }
}

/// The descriptor of a stdio stream; -1 if it has none.
fn number(f: *mut FILE) -> c_int {
    if f.is_null() {
        return -1;
    }
    // SAFETY: the program passed an open stream. fileno(3) is not hooked.
    unsafe { libc::fileno(f) }
}

crate::hooks! {
    fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
        taken(fd);
        unsafe { real::fdopen(fd, mode) }
    }

    fn fclose(f: *mut FILE) -> c_int {
        let closing = end::before(number(f));
        let r = unsafe { real::fclose(f) };
        end::after(closing);
        r
    }

    fn freopen(path: *const c_char, mode: *const c_char, f: *mut FILE) -> *mut FILE {
        let fd = number(f);
        if path.is_null() {
            return unsafe { real::freopen(path, mode, f) };
        }
        let closing = end::before(fd);
        let r = unsafe { real::freopen(path, mode, f) };
        end::after(closing);
        fdtable::set(number(r), fdtable::Entry::Unknown);
        r
    }

    fn freopen64(path: *const c_char, mode: *const c_char, f: *mut FILE) -> *mut FILE {
        unsafe { freopen(path, mode, f) }
    }

    fn vdprintf(fd: c_int, format: *const c_char, args: *mut c_void) -> c_int {
        taken(fd);
        unsafe { real::vdprintf(fd, format, args) }
    }

    fn __vdprintf_chk(fd: c_int, flag: c_int, format: *const c_char, args: *mut c_void) -> c_int {
        taken(fd);
        unsafe { real::__vdprintf_chk(fd, flag, format, args) }
    }
}

/// For the trampolines below: stdio is about to write to `fd`.
extern "C" fn before_printing(fd: c_int) {
    taken(fd);
}

/// For the trampolines below: the real function of the given number.
extern "C" fn next(which: c_int) -> *const c_void {
    use core::sync::atomic::AtomicPtr;
    static NEXT: [AtomicPtr<c_void>; 2] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 2];
    const NAMES: [&str; 2] = ["dprintf\0", "__dprintf_chk\0"];
    let i = which as usize & 1;
    real::cached(&NEXT[i], NAMES[i])
}

// dprintf and its kin are variadic: each trampoline keeps all argument registers,
// calls us, and jumps to the real function as if nothing had been.
macro_rules! trampoline {
    ($name:ident, $which:literal) => {
        /// # Safety
        /// As the C function of that name.
        #[unsafe(naked)]
        #[cfg_attr(not(test), no_mangle)]
        unsafe extern "C-unwind" fn $name() {
            core::arch::naked_asm!(
                "push rbp",
                "mov rbp, rsp",
                "sub rsp, 192",
                "mov [rsp], rdi",
                "mov [rsp+8], rsi",
                "mov [rsp+16], rdx",
                "mov [rsp+24], rcx",
                "mov [rsp+32], r8",
                "mov [rsp+40], r9",
                "mov [rsp+48], rax",
                "movaps [rsp+64], xmm0",
                "movaps [rsp+80], xmm1",
                "movaps [rsp+96], xmm2",
                "movaps [rsp+112], xmm3",
                "movaps [rsp+128], xmm4",
                "movaps [rsp+144], xmm5",
                "movaps [rsp+160], xmm6",
                "movaps [rsp+176], xmm7",
                "call {before}",
                concat!("mov edi, ", $which),
                "call {next}",
                "mov r11, rax",
                "mov rdi, [rsp]",
                "mov rsi, [rsp+8]",
                "mov rdx, [rsp+16]",
                "mov rcx, [rsp+24]",
                "mov r8, [rsp+32]",
                "mov r9, [rsp+40]",
                "mov rax, [rsp+48]",
                "movaps xmm0, [rsp+64]",
                "movaps xmm1, [rsp+80]",
                "movaps xmm2, [rsp+96]",
                "movaps xmm3, [rsp+112]",
                "movaps xmm4, [rsp+128]",
                "movaps xmm5, [rsp+144]",
                "movaps xmm6, [rsp+160]",
                "movaps xmm7, [rsp+176]",
                "leave",
                "jmp r11",
                before = sym before_printing,
                next = sym next,
            )
        }
    };
}
trampoline!(dprintf, "0");
trampoline!(__dprintf_chk, "1");
