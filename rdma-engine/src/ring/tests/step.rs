//! A signal handler after any chosen instruction: the processor's trap flag
//! raises SIGTRAP behind each one.

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use std::sync::Once;

/// The trap flag in RFLAGS.
const TRAP: i64 = 0x100;

#[derive(Clone, Copy)]
struct State {
    /// Instructions so far.
    count: u64,
    /// The one behind which the handler runs.
    at: u64,
    handler: *mut (dyn FnMut() + 'static),
}

thread_local! {
    static STATE: Cell<Option<State>> = const { Cell::new(None) };
}

extern "C" fn on_trap(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(mut state) = STATE.get() else { return };
    state.count += 1;
    STATE.set(Some(state));
    if state.count == state.at {
        // SAFETY: the kernel passes a ucontext to a handler with SA_SIGINFO.
        unsafe {
            let context = &mut *context.cast::<libc::ucontext_t>();
            context.uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP;
        }
        // SAFETY: `interrupt` keeps it alive until the victim has returned, and
        // its victim doesn't touch it.
        unsafe { (*state.handler)() };
    }
}

fn install() {
    static ONCE: Once = Once::new();
    // SAFETY: the handler is async-signal-safe as far as the handlers that the
    // tests pass are: they allocate nothing while a victim is interrupted.
    ONCE.call_once(|| unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = on_trap as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        assert_eq!(
            libc::sigaction(libc::SIGTRAP, &action, core::ptr::null_mut()),
            0
        );
    });
}

/// Runs `victim`, and `handler` as a signal handler behind the victim's `at`th
/// instruction. Returns the number of instructions counted: `at` if the handler
/// has run. Nests.
pub fn interrupt(at: u64, victim: impl FnOnce(), handler: &mut dyn FnMut()) -> u64 {
    install();
    // SAFETY: only the lifetime changes; the state is gone when we return.
    let handler: *mut (dyn FnMut() + 'static) = unsafe { core::mem::transmute(handler) };
    let count = 0;
    let outer = STATE.replace(Some(State { count, at, handler }));
    // SAFETY: sets a flag of this thread, whose handler is installed; the stack
    // is as it was afterwards.
    unsafe { core::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    victim();
    // SAFETY: as above, takes it down.
    unsafe { core::arch::asm!("pushfq", "and qword ptr [rsp], ~0x100", "popfq") };
    STATE.replace(outer).map_or(0, |s| s.count)
}

/// Runs `scenario` with every point of its victim in turn: `scenario` passes its
/// argument to [`interrupt`] and returns the result. Optimised tests take each
/// single instruction, others (whose code is many times as long) some of them.
pub fn at_every_point(scenario: impl FnMut(u64) -> u64) {
    let stride = if cfg!(debug_assertions) { 199 } else { 1 };
    points(stride, 50, scenario);
}

/// The same for a victim of a few instructions: takes each of them in every build.
pub fn at_each_of_few(scenario: impl FnMut(u64) -> u64) {
    points(1, 3, scenario);
}

fn points(stride: usize, least: u64, mut scenario: impl FnMut(u64) -> u64) {
    let mut all = (1..).step_by(stride);
    let end = all.find(|&at| scenario(at) != at);
    assert!(end > Some(least), "nothing was interrupted");
}
