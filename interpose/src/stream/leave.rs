//! Streams that have to leave the wire now.

use super::{cutover, handback, open, ready, receive};
use crate::streams::Stream;
use rdma_engine::abi::reason::Reason;
use rdma_engine::{sys, syscall};

/// How long is waited for a ring, or a TCP buffer, that is full, in ns: where the program may
/// use the stream next in a way that we don't see, and where it goes on as before, beside a
/// child that most probably will not.
pub const LONG_NS: u64 = 2_000_000_000;
pub const SHORT_NS: u64 = 100_000_000;
const PAUSE_NS: u64 = 1_000_000;

/// Settles that the stream goes back to TCP, and waits a little for the sending
/// direction to be there. False if it is not. What the ring holds is read as before.
pub fn leave_wire(s: &Stream, reason: Reason) -> bool {
    open::pin(s, reason);
    wait(s, sys::now_ns() + LONG_NS)
}

/// Settles that the stream is on TCP now, with all that it holds: who reads it next may know
/// nothing of us.
pub fn leave_to_others(s: &Stream, reason: Reason) {
    give_up_wire(s, reason);
    wait(s, sys::now_ns() + LONG_NS);
    dissolve_owing(s);
}

/// The first part of [`leave_to_others`], which waits for nothing.
pub fn give_up_wire(s: &Stream, reason: Reason) {
    if !handback::hand_back(s) {
        // The peer has left the ring before us, perhaps for good, and what TCP says next is
        // not what comes next: better an error than wrong bytes, or an end too early.
        dissolve(s);
    }
    open::pin(s, reason);
}

/// After the wait: what we still owe to the peer would be missing before what others send.
pub fn dissolve_owing(s: &Stream) {
    if handback::is_owing(s) {
        dissolve(s);
    }
}

/// Dissolves the connection (connect(2)): every further call on it fails, whoever makes it,
/// and the peer gets a reset.
pub fn dissolve(s: &Stream) {
    receive::broken(s);
    let nowhere = libc::sockaddr {
        sa_family: libc::AF_UNSPEC as u16,
        sa_data: [0; 14],
    };
    let size = core::mem::size_of::<libc::sockaddr>();
    if let Some(fd) = s.any_fd() {
        // SAFETY: the address lives across the call.
        unsafe {
            syscall!(
                libc::SYS_connect,
                fd,
                &nowhere as *const libc::sockaddr,
                size
            )
        };
    }
}

/// The same for several streams: `ask` has each leave, and all are waited for
/// together, for `patience` ns.
pub fn all_leave<I>(streams: impl Fn() -> I, patience: u64, ask: impl Fn(&Stream))
where
    I: Iterator<Item = Stream>,
{
    streams().for_each(|s| ask(&s));
    let deadline = sys::now_ns() + patience;
    for s in streams() {
        wait(&s, deadline);
    }
}

/// Waits for our sending direction to be on TCP. False if it is not by `deadline`.
fn wait(s: &Stream, deadline: u64) -> bool {
    loop {
        if !ready::tx_is_fast(s) {
            return true;
        }
        cutover::recall(s);
        if handback::serve(s) {
            return true;
        }
        if sys::now_ns() >= deadline {
            return false;
        }
        sys::ppoll(&mut [], Some(PAUSE_NS));
    }
}
