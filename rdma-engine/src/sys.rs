//! Raw system calls.
//!
//! The preload library defines `read`, `send`, `poll` ... itself, so whatever it
//! does for its own sake must not go through libc's names: it would enter its
//! own hooks. These functions return what the kernel returns: a value, or a
//! negated errno (syscall(2)); `errno` is never touched.

use core::ffi::{c_int, c_void};

/// Makes system call `n` with six arguments; returns a value or `-errno`.
///
/// # Safety
/// The arguments must be valid for system call `n` (its man page).
#[inline]
pub unsafe fn syscall6(
    n: i64,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> isize {
    let ret: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the x86-64 system call convention (syscall(2)): rcx and r11 are
    // clobbered, memory may be read and written by the kernel.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") n as isize => ret,
            in("rdi") a, in("rsi") b, in("rdx") c,
            in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the AArch64 system call convention (syscall(2)).
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") n,
            inlateout("x0") a => ret,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack)
        );
    }
    ret
}

/// `syscall!(NR, args...)`: [`syscall6`] with the missing arguments zero.
#[macro_export]
macro_rules! syscall {
    ($n:expr $(, $a:expr)* $(,)?) => {
        $crate::syscall!(@pad $n; $($a as usize,)* 0, 0, 0, 0, 0, 0)
    };
    (@pad $n:expr; $a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr $(, $rest:expr)*) => {
        $crate::sys::syscall6($n as i64, $a, $b, $c, $d, $e, $f)
    };
}

/// Closes a descriptor of our own, past every hook.
pub fn close(fd: c_int) {
    // SAFETY: closing a number has no memory effects.
    unsafe { syscall!(libc::SYS_close, fd) };
}

/// The kernel's id of the calling thread.
pub fn gettid() -> u32 {
    // SAFETY: no arguments, no memory.
    unsafe { syscall!(libc::SYS_gettid) as u32 }
}

/// The kernel's id of this process (no cache: right in a vfork child too).
pub fn getpid() -> u32 {
    // SAFETY: no arguments, no memory.
    unsafe { syscall!(libc::SYS_getpid) as u32 }
}

/// The number of the inode that a path leads to.
pub fn inode(path: &core::ffi::CStr) -> Option<u64> {
    // SAFETY: a plain C struct, which the kernel fills, and a C string.
    unsafe {
        let mut st: libc::stat = core::mem::zeroed();
        let at = &mut st as *mut libc::stat;
        let r = syscall!(libc::SYS_newfstatat, libc::AT_FDCWD, path.as_ptr(), at, 0);
        (r == 0).then_some(st.st_ino)
    }
}

/// The kernel's id of our parent; 0 if that is in another PID namespace.
pub fn getppid() -> u32 {
    // SAFETY: no arguments, no memory.
    unsafe { syscall!(libc::SYS_getppid) as u32 }
}

/// Is there a thread `tid` that may still run? A zombie, which its parent has not
/// waited for, will not.
pub fn alive(tid: u32) -> bool {
    known(tid) && !stat(tid).is_some_and(|s| s.ended)
}

/// Is there a process `pid` with a thread that may still run? Its first thread may
/// have ended before others (pthread_exit(3) in main).
pub fn process_alive(pid: u32) -> bool {
    known(pid) && !stat(pid).is_some_and(|s| s.ended && s.threads <= 1)
}

fn known(tid: u32) -> bool {
    // SAFETY: signal 0 sends nothing.
    unsafe { syscall!(libc::SYS_tkill, tid, 0) != -(libc::ESRCH as isize) }
}

/// What proc_pid_stat(5) says about a thread.
struct Stat {
    /// It is a zombie, or dead.
    ended: bool,
    /// Threads of its process that have not been waited for.
    threads: u32,
}

/// `None` where /proc is not to be had.
fn stat(tid: u32) -> Option<Stat> {
    let mut path = *b"/proc/\0\0\0\0\0\0\0\0\0\0/stat\0";
    let mut digits = [0u8; 10];
    let mut n = 0;
    let mut rest = tid;
    while rest > 0 || n == 0 {
        digits[n] = b'0' + (rest % 10) as u8;
        rest /= 10;
        n += 1;
    }
    for i in 0..n {
        path[6 + i] = digits[n - 1 - i];
    }
    path[6 + n..12 + n].copy_from_slice(b"/stat\0");
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: `path` is a C string.
    let fd = unsafe { syscall!(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) };
    if fd < 0 {
        return None;
    }
    let mut text = [0u8; 512];
    // SAFETY: `text` is valid for its length.
    let n = unsafe { syscall!(libc::SYS_read, fd, text.as_mut_ptr(), text.len()) };
    close(fd as c_int);
    // "tid (name) S ...": the name has up to 15 bytes, of any kind. The number of
    // threads is the 18th word behind it.
    let text = &text[..n.max(0) as usize];
    let end = text.iter().rposition(|&b| b == b')')?;
    let mut words = text.get(end + 2..)?.split(|&b| b == b' ');
    let ended = matches!(words.next()?.first()?, b'Z' | b'X');
    let threads = core::str::from_utf8(words.nth(16)?).ok()?.parse().ok()?;
    Some(Stat { ended, threads })
}

/// Gives the processor to another thread that wants it.
#[inline]
pub fn sched_yield() {
    // SAFETY: no arguments, no memory.
    unsafe { syscall!(libc::SYS_sched_yield) };
}

/// Sends one message to a socket without blocking and without SIGPIPE.
pub fn send_nowait(fd: c_int, bytes: &[u8]) -> isize {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the slice is valid for its length.
    unsafe { syscall!(libc::SYS_sendto, fd, bytes.as_ptr(), bytes.len(), flags) }
}

/// Takes one message from a socket without blocking.
pub fn recv_nowait(fd: c_int, bytes: &mut [u8]) -> isize {
    // SAFETY: the slice is valid for its length.
    unsafe {
        syscall!(
            libc::SYS_recvfrom,
            fd,
            bytes.as_mut_ptr(),
            bytes.len(),
            libc::MSG_DONTWAIT
        )
    }
}

/// poll(2) with a timeout in nanoseconds; `None` waits for ever.
pub fn ppoll(fds: &mut [libc::pollfd], timeout_ns: Option<u64>) -> isize {
    let ts = timeout_ns.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    });
    let p = ts.as_ref().map_or(core::ptr::null(), |t| t as *const _);
    // SAFETY: the slice and the timespec live across the call; no signal mask.
    unsafe { syscall!(libc::SYS_ppoll, fds.as_mut_ptr(), fds.len(), p, 0, 8) }
}

/// Reads a socket option of plain-old-data type `T`; `Err(errno)`.
pub fn getsockopt<T: Copy>(fd: c_int, level: c_int, name: c_int, init: T) -> Result<T, c_int> {
    let mut value = init;
    let mut len = core::mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is valid for `len` bytes, and every bit pattern that the
    // kernel writes is a valid `T` for the plain C structs used here.
    let r = unsafe {
        syscall!(
            libc::SYS_getsockopt,
            fd,
            level,
            name,
            &mut value as *mut T,
            &mut len as *mut libc::socklen_t
        )
    };
    if r < 0 {
        Err(-r as c_int)
    } else {
        Ok(value)
    }
}

/// Monotonic time in nanoseconds (the vDSO's clock; not hooked by anybody).
#[inline]
pub fn now_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// The same as of the last timer tick, some milliseconds ago: without the reading of
/// a counter, which takes some tens of nanoseconds.
#[inline]
pub fn tick_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC_COARSE)
}

fn clock(which: libc::clockid_t) -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `t` is a valid timespec.
    unsafe { libc::clock_gettime(which, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Maps `len` bytes; `None` if the kernel refuses.
///
/// # Safety
/// With MAP_FIXED in `flags`, whatever was mapped at `addr` is lost.
pub unsafe fn mmap(addr: *mut c_void, len: usize, flags: c_int, fd: c_int) -> Option<*mut u8> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the caller answers for MAP_FIXED; otherwise a new range is made.
    let p = unsafe { syscall!(libc::SYS_mmap, addr, len, prot, flags, fd, 0) };
    if (-4095..0).contains(&p) {
        None
    } else {
        Some(p as *mut u8)
    }
}

/// Unmaps a range that [`mmap`] returned.
///
/// # Safety
/// Nothing may use the range any more.
pub unsafe fn munmap(addr: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { syscall!(libc::SYS_munmap, addr, len) };
}

/// Runs `f` with all signals of this thread blocked, for the few steps that a
/// signal handler must not come between.
pub fn with_signals_blocked<R>(f: impl FnOnce() -> R) -> R {
    let all = u64::MAX;
    let mut old = 0u64;
    // SAFETY: rt_sigprocmask(2) with 8-byte kernel masks on our own stack.
    unsafe {
        syscall!(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &all as *const u64,
            &mut old as *mut u64,
            8
        )
    };
    let r = f();
    // SAFETY: as above; restores what was read.
    unsafe {
        syscall!(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &old as *const u64,
            0,
            8
        )
    };
    r
}

/// A soft resource limit of this process (getrlimit(2)).
pub fn soft_limit(resource: u32) -> u64 {
    let mut r = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: prlimit(2) fills the struct.
    unsafe {
        syscall!(
            libc::SYS_prlimit64,
            0,
            resource,
            0,
            &mut r as *mut libc::rlimit
        )
    };
    r.rlim_cur
}

/// The largest file that this process may make, in bytes (RLIMIT_FSIZE).
pub fn file_size_limit() -> u64 {
    soft_limit(libc::RLIMIT_FSIZE)
}
