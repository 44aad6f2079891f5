//! Streams over exec(2).
//!
//! The kernel keeps the descriptor, we keep the slot: the arena's descriptor goes
//! to the new program with a list of which descriptor is which slot, in one
//! environment string. Holders are process ids, which exec keeps. The list is
//! believed only where the socket's cookie agrees: the program in between may
//! have been one that knows nothing of us.
//!
//! Only plain streams go over; those on the wire leave it first, with what their rings
//! hold ([`handback`]). The arena goes to nobody whose rights are not its maker's.

use crate::stream::{cutover, handback, heat, leave, open, ready};
use crate::streams::{self, Stream};
use crate::{faults, fdtable, process, rendezvous};
use core::ffi::{c_char, c_int, CStr};
use core::fmt::Write;
use core::sync::atomic::{AtomicBool, Ordering};
use rdma_engine::abi::arena::{flags, Phase, RxMode};
use rdma_engine::abi::log::Event;
use rdma_engine::abi::reason::Reason;
use rdma_engine::arena;
use rdma_engine::{sys, syscall};

/// `NAME=pid,arena;fd,slot,generation,cookie;...`
const NAME: &[u8] = b"SIDEWIRE_INHERIT=";
/// Descriptors that one exec can pass on; others are adopted over there.
const MOST: usize = 64;
/// Room for the string.
const TEXT: usize = 4096;
/// Strings of an environment that we are ready to copy.
const STRINGS: usize = 1 << 17;

/// Was the library loaded by LD_PRELOAD (and not by /etc/ld.so.preload)?
static BY_ENVIRONMENT: AtomicBool = AtomicBool::new(false);

type Strings = *const *const c_char;

/// What was done for an exec, to be undone if it fails.
pub struct Exec {
    env: Strings,
    /// Our copy of the environment: address and size.
    copy: Option<(*mut u8, usize)>,
    begun: bool,
}

impl Exec {
    /// The environment for the new program, if it is not the caller's own.
    pub fn changed(&self) -> Option<Strings> {
        self.copy.map(|_| self.env)
    }

    /// The environment for the new program.
    pub fn env(&self) -> Strings {
        self.env
    }
}

/// Before another program takes our place, with environment `env`.
pub fn before_exec(env: Strings) -> Exec {
    let mut exec = Exec {
        env,
        copy: None,
        begun: false,
    };
    if process::in_vfork_child() || streams::arena().is_none() {
        return exec;
    }
    exec.begun = true;
    streams::log(Event::Exec, [0, 0]);
    leave::all_leave(kept, leave::LONG_NS, |s| match s.phase() {
        Phase::Plain => {}
        Phase::Offered => rendezvous::retract(s),
        Phase::Attached => {
            // Whom a program hands its share to, that others hold as well, nobody sees: then
            // for good.
            let reason = if s.is_sole() {
                Reason::Exec
            } else {
                Reason::Passed
            };
            leave::give_up_wire(s, reason);
            handback::go_away(s);
        }
    });
    kept().for_each(|s| leave::dissolve_owing(&s));
    let mut passed = 0;
    for s in streams::ours() {
        if s.descriptors().any(is_kept) {
            passed += usize::from(goes_over(&s));
        } else if s.all_known() {
            // The kernel closes what is close-on-exec, unseen by our hooks.
            s.remove_holder(process::pid());
        }
    }
    let arena = streams::ARENA_FD.load(Ordering::Acquire);
    if passed == 0 || arena < 0 || !is_ours(arena) || !will_load(env) {
        return exec;
    }
    if let Some((copy, size)) = copy_of(env, arena) {
        exec.env = copy.cast();
        exec.copy = Some((copy, size));
        close_on_exec(arena, false);
    }
    exec
}

/// The exec failed: we go on as before.
pub fn failed(exec: Exec) {
    if !exec.begun {
        return;
    }
    if let Some((copy, size)) = exec.copy {
        close_on_exec(streams::ARENA_FD.load(Ordering::Acquire), true);
        // SAFETY: ours, and the kernel has done with it.
        unsafe { sys::munmap(copy, size) };
    }
    let me = process::pid();
    for s in streams::ours() {
        if !s.is_held_by(me) {
            s.add_holder(me);
        }
    }
}

/// What became of a child that runs another program at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Spawn {
    /// It runs.
    Child(i32),
    /// It runs, and nobody tells its process id.
    Nameless,
    /// It has ended, or never began.
    Over,
}

/// Before a child that runs another program at once (posix_spawn, system, popen).
/// It can't share the streams that it inherits: they go back to TCP, as long as it
/// may hold them. False: nothing was done, and nothing is to be undone.
pub fn before_spawn() -> bool {
    if streams::arena().is_none() || process::in_vfork_child() {
        return false;
    }
    leave::all_leave(kept, leave::SHORT_NS, |s| {
        process::announce(s);
        cutover::recall(s);
    });
    true
}

/// After it; `before` is what [`before_spawn`] said.
pub fn after_spawn(before: bool, child: Spawn) {
    if !before {
        return;
    }
    for s in kept() {
        match child {
            Spawn::Child(pid) => process::born(&s, pid as u32),
            Spawn::Nameless => {
                open::pin(&s, Reason::SharedEnd);
                process::unborn(&s);
            }
            Spawn::Over => process::unborn(&s),
        }
    }
}

/// Our streams that a program gets which is started now.
fn kept() -> impl Iterator<Item = Stream> {
    streams::ours().filter(|s| s.descriptors().any(is_kept))
}

/// Can the new program go on with the stream where we stop? With nobody else, if it was
/// on the wire before.
fn goes_over(s: &Stream) -> bool {
    match s.phase() {
        Phase::Plain => true,
        Phase::Offered => false,
        Phase::Attached => {
            s.slot.rx_mode() == RxMode::Plain && !ready::tx_is_fast(s) && s.is_sole()
        }
    }
}

/// Will `fd` be open in the new program?
fn is_kept(fd: c_int) -> bool {
    // SAFETY: no memory is passed.
    let fl = unsafe { syscall!(libc::SYS_fcntl, fd, libc::F_GETFD) };
    fl >= 0 && fl as c_int & libc::FD_CLOEXEC == 0
}

fn close_on_exec(fd: c_int, on: bool) {
    let flag = if on { libc::FD_CLOEXEC } else { 0 };
    // SAFETY: no memory is passed.
    unsafe { syscall!(libc::SYS_fcntl, fd, libc::F_SETFD, flag) };
}

/// Was the arena made by one with exactly our rights? Else the new program could
/// harm those who have more.
fn is_ours(arena: c_int) -> bool {
    // SAFETY: a plain C struct, which the kernel fills.
    unsafe {
        let mut st: libc::stat = core::mem::zeroed();
        let known = syscall!(libc::SYS_fstat, arena, &mut st as *mut libc::stat) == 0;
        let id = |call| syscall!(call) as u32;
        known
            && [libc::SYS_getuid, libc::SYS_geteuid]
                .iter()
                .all(|&c| id(c) == st.st_uid)
            && [libc::SYS_getgid, libc::SYS_getegid]
                .iter()
                .all(|&c| id(c) == st.st_gid)
    }
}

/// Entry `i` of an environment; null at its end, `None` if it cannot be read.
fn entry(env: Strings, i: usize) -> Option<*const c_char> {
    faults::load(env.wrapping_add(i))
}

fn begins<const N: usize>(text: *const c_char, with: &[u8; N]) -> bool {
    faults::load(text.cast::<[u8; N]>()).is_some_and(|t| t == *with)
}

/// Will a program with this environment load the library?
fn will_load(env: Strings) -> bool {
    const PRELOAD: &[u8; 11] = b"LD_PRELOAD=";
    const LIBRARY: &[u8; 11] = b"libsidewire";
    if !BY_ENVIRONMENT.load(Ordering::Relaxed) {
        return true;
    }
    if env.is_null() {
        return false;
    }
    for i in 0..STRINGS {
        match entry(env, i) {
            Some(text) if text.is_null() => return false,
            Some(text) if begins(text, PRELOAD) => {
                let value = text.wrapping_add(PRELOAD.len());
                return (0..TEXT)
                    .map(|at| value.wrapping_add(at))
                    .take_while(|c| faults::load(*c).is_some_and(|c| c != 0))
                    .any(|c| begins(c, LIBRARY));
            }
            Some(_) => {}
            None => return false,
        }
    }
    false
}

/// A copy of `env` with our string in it: its address and size.
fn copy_of(env: Strings, arena: c_int) -> Option<(*mut u8, usize)> {
    let mut n = 0;
    while !entry(env, n)?.is_null() {
        n += 1;
        if n > STRINGS {
            return None;
        }
    }
    let pointers = (n + 2) * core::mem::size_of::<usize>();
    let size = pointers + TEXT;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous range.
    let block = unsafe { sys::mmap(core::ptr::null_mut(), size, flags, -1) }?;
    let to = block.cast::<*const c_char>();
    // SAFETY: `to` has room for n + 2 pointers and TEXT bytes behind them; the
    // mapping is zero, so that both end with a zero.
    unsafe {
        let mut count = 0;
        for i in 0..n {
            let text = entry(env, i).unwrap_or(core::ptr::null());
            if !begins(text, b"SIDEWIRE_INHERIT=") {
                to.add(count).write(text);
                count += 1;
            }
        }
        let text = core::slice::from_raw_parts_mut(block.add(pointers), TEXT - 1);
        to.add(count).write(text.as_ptr().cast());
        list(
            &mut Text {
                bytes: text,
                len: 0,
            },
            arena,
        );
    }
    Some((block, size))
}

/// A string in a buffer of fixed size.
struct Text<'a> {
    bytes: &'a mut [u8],
    len: usize,
}

impl Write for Text<'_> {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        let room = self.bytes.get_mut(self.len..self.len + s.len());
        room.ok_or(core::fmt::Error)?.copy_from_slice(s.as_bytes());
        self.len += s.len();
        Ok(())
    }
}

fn list(text: &mut Text, arena: c_int) {
    let name = core::str::from_utf8(NAME).unwrap_or_default();
    let _ = write!(text, "{name}{},{arena}", process::pid());
    let mut left = MOST;
    for s in streams::ours() {
        if !goes_over(&s) {
            continue;
        }
        for fd in s.descriptors().filter(|&fd| is_kept(fd)) {
            let Some(cookie) = cookie(fd).filter(|_| left > 0) else {
                continue;
            };
            left -= 1;
            let end = text.len;
            if write!(text, ";{fd},{},{},{cookie}", s.index, s.generation).is_err() {
                text.bytes[end..].fill(0);
                return;
            }
        }
    }
}

/// The kernel's name of a socket: one for each, never used again.
fn cookie(fd: c_int) -> Option<u64> {
    sys::getsockopt(fd, libc::SOL_SOCKET, libc::SO_COOKIE, 0u64).ok()
}

/// At start-up: takes over what the program before us has left.
pub fn start(preload: Option<&CStr>, passed: Option<&CStr>) {
    let library = b"libsidewire";
    let by_environment =
        preload.is_some_and(|p| p.to_bytes().windows(library.len()).any(|w| w == library));
    BY_ENVIRONMENT.store(by_environment, Ordering::Relaxed);
    let Some(passed) = passed else { return };
    let mut parts = passed.to_bytes().split(|&c| c == b';');
    let head = parts.next().map(numbers::<2>);
    if let Some(Some([pid, arena])) = head {
        if pid == u64::from(process::pid()) {
            take(arena as c_int, parts.filter_map(numbers::<4>));
        }
    }
    forget();
}

fn take(fd: c_int, records: impl Iterator<Item = [u64; 4]>) {
    if fd <= 2 || is_socket(fd) {
        return;
    }
    let Some(arena) = arena::map(fd) else { return };
    if !streams::inherit_arena(fd, arena) {
        return;
    }
    for [fd, index, generation, known] in records {
        let fd = fd as c_int;
        if cookie(fd) == Some(known) && open::peer(fd).is_some() {
            inherit(fd, index as u32, generation as u32);
        }
    }
}

fn is_socket(fd: c_int) -> bool {
    open::protocol(fd).is_ok()
}

fn inherit(fd: c_int, index: u32, generation: u32) {
    let Some(s) = streams::get(index, generation) else {
        return;
    };
    if !goes_over(&s) || !s.is_held_by(process::pid()) {
        return;
    }
    // The memory that it had on the wire was the last program's. The next wire is ours.
    s.slot.phase.store(Phase::Plain as u32, Ordering::Release);
    s.slot.flags.fetch_and(!flags::PEER_GONE, Ordering::AcqRel);
    let (exec, ok) = (Reason::Exec as u32, Ordering::AcqRel);
    if s.slot
        .pin
        .compare_exchange(exec, 0, ok, Ordering::Relaxed)
        .is_ok()
    {
        s.because(Reason::Cold);
        heat::set(&s, 0);
    }
    s.add_fd(fd);
    fdtable::set(fd, fdtable::Entry::Stream { index, generation });
}

/// Exactly `N` numbers with commas between them.
fn numbers<const N: usize>(text: &[u8]) -> Option<[u64; N]> {
    let mut found = [0u64; N];
    let mut n = 0;
    for part in text.split(|&c| c == b',') {
        let digits = !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        let value = core::str::from_utf8(part).ok().filter(|_| digits)?;
        *found.get_mut(n)? = value.parse().ok()?;
        n += 1;
    }
    (n == N).then_some(found)
}

/// Takes our string out of the environment: the program does not see it, and
/// its children do not get it.
fn forget() {
    extern "C" {
        static mut environ: *mut *mut c_char;
    }
    // SAFETY: at start-up, before any other thread and before main(); the array
    // is terminated by a null pointer and is shortened in place.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            if CStr::from_ptr(*at).to_bytes().starts_with(NAME) {
                let mut p = at;
                while !(*p).is_null() {
                    *p = *p.add(1);
                    p = p.add(1);
                }
            } else {
                at = at.add(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_exactly() {
        assert_eq!(numbers::<2>(b"12,7"), Some([12, 7]));
        for bad in [
            &b""[..],
            b"1",
            b"1,",
            b",1",
            b"1,2,3",
            b"1,-2",
            b"1,x",
            b"1,99999999999999999999",
        ] {
            assert_eq!(numbers::<2>(bad), None);
        }
    }

    #[test]
    fn an_environment_is_copied_with_one_string_more() {
        faults::start();
        let old = [c"A=1", c"SIDEWIRE_INHERIT=9,9", c"B=2"];
        let mut env: Vec<*const c_char> = old.iter().map(|s| s.as_ptr()).collect();
        env.push(core::ptr::null());
        let (copy, size) = copy_of(env.as_ptr(), 77).expect("memory");
        let copied = copy.cast::<*const c_char>();
        let texts: Vec<_> = (0..)
            // SAFETY: the copy ends with a null pointer.
            .map(|i| unsafe { *copied.add(i) })
            .take_while(|p| !p.is_null())
            // SAFETY: C strings.
            .map(|p| unsafe { CStr::from_ptr(p) }.to_str().unwrap().to_owned())
            .collect();
        let ours = format!("SIDEWIRE_INHERIT={},77", std::process::id());
        assert_eq!(texts, ["A=1", "B=2", &ours]);
        // SAFETY: made above.
        unsafe { sys::munmap(copy, size) };
    }

    #[test]
    fn only_an_environment_with_the_library_gets_it() {
        faults::start();
        BY_ENVIRONMENT.store(true, Ordering::Relaxed);
        let with = [
            c"A=1".as_ptr(),
            c"LD_PRELOAD=/x/libsidewire.so:/y.so".as_ptr(),
            core::ptr::null(),
        ];
        let without = [c"LD_PRELOAD=/y.so".as_ptr(), core::ptr::null()];
        assert!(will_load(with.as_ptr()));
        assert!(!will_load(without.as_ptr()));
        assert!(!will_load(core::ptr::null()));
        assert!(!will_load(16 as Strings));
    }
}
