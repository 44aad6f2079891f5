//! execl(3) and its kin take their arguments one by one; libc calls execve(2) from
//! there unseen. Each is a trampoline that lays its arguments out as an array, and
//! comes to the hook with the `v` in its name.

use super::fork;
use crate::errno;
use core::ffi::{c_char, c_int};
use rdma_engine::sys;

/// Arguments that need no memory from the kernel: a vfork child would leave it
/// behind in its parent.
const FEW: usize = 1024;
const MOST: usize = 1 << 20;

/// The words of a call: six in registers, then those on the caller's stack.
struct Words {
    registers: *const usize,
    stack: *const usize,
}

impl Words {
    fn get(&self, i: usize) -> usize {
        // SAFETY: the caller passed all words up to the null pointer (and one
        // more, for execle), and nobody looks beyond.
        unsafe {
            match i {
                0..=5 => *self.registers.add(i),
                _ => *self.stack.add(i - 6),
            }
        }
    }
}

/// For the trampolines below; `which` is 0 for execl, 1 for execlp, 2 for execle.
unsafe extern "C-unwind" fn with_list(
    which: c_int,
    registers: *const usize,
    stack: *const usize,
) -> c_int {
    let words = Words { registers, stack };
    let count = (0..MOST).take_while(|i| words.get(i + 1) != 0).count();
    if count < FEW {
        let mut few = [0usize; FEW];
        return call(which, &words, count, few.as_mut_ptr());
    }
    let size = (count + 1) * core::mem::size_of::<usize>();
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous range.
    let many = unsafe { sys::mmap(core::ptr::null_mut(), size, flags, -1) };
    let Some(many) = many.filter(|_| count < MOST) else {
        errno::set(libc::E2BIG);
        return -1;
    };
    let r = call(which, &words, count, many.cast());
    // SAFETY: made above.
    unsafe { sys::munmap(many, size) };
    r
}

/// `argv` has room for `count` words and a null pointer, and is all zero.
fn call(which: c_int, words: &Words, count: usize, argv: *mut usize) -> c_int {
    let path = words.get(0) as *const c_char;
    // SAFETY: as above; the rest is what the program passed.
    unsafe {
        for i in 0..count {
            *argv.add(i) = words.get(i + 1);
        }
        let argv = argv.cast_const().cast();
        match which {
            0 => fork::execv(path, argv),
            1 => fork::execvp(path, argv),
            _ => fork::execve(path, argv, words.get(count + 2) as _),
        }
    }
}

macro_rules! trampoline {
    ($name:ident, $which:literal) => {
        /// # Safety
        /// As the C function of that name.
        #[unsafe(naked)]
        #[cfg_attr(not(test), no_mangle)]
        unsafe extern "C-unwind" fn $name() -> c_int {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "sub rsp, 48",
                "mov [rsp], rdi",
                "mov [rsp+8], rsi",
                "mov [rsp+16], rdx",
                "mov [rsp+24], rcx",
                "mov [rsp+32], r8",
                "mov [rsp+40], r9",
                concat!("mov edi, ", $which),
                "mov rsi, rsp",
                "lea rdx, [rbp+16]",
                "call {with_list}",
                "leave",
                ".cfi_def_cfa rsp, 8",
                "ret",
                ".cfi_endproc",
                with_list = sym with_list,
            )
        }
    };
}
trampoline!(execl, "0");
trampoline!(execlp, "1");
trampoline!(execle, "2");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_from_registers_and_from_the_stack() {
        let registers: Vec<usize> = (0..6).collect();
        let stack: Vec<usize> = (6..20).collect();
        let (registers, stack) = (registers.as_ptr(), stack.as_ptr());
        let words = Words { registers, stack };
        assert!((0..20).all(|i| words.get(i) == i));
    }
}
