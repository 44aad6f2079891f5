//! Streams that have to leave the wire now, as far as the peer lets them: our own
//! direction may not be cut back before the receiver has seen the cut-over.

use super::{cutover, open, ready};
use crate::streams::Stream;
use rdma_engine::abi::reason::Reason;
use rdma_engine::sys;

/// How long a peer that reads nothing is waited for, in ns: where the program may use the
/// stream next in a way that we don't see, and where it goes on as before, beside a
/// child that most probably will not.
pub const LONG_NS: u64 = 2_000_000_000;
pub const SHORT_NS: u64 = 100_000_000;
const PAUSE_NS: u64 = 1_000_000;

/// Settles that the stream goes back to TCP, and waits a little for the sending
/// direction to be there. False if it is not.
pub fn leave_wire(s: &Stream, reason: Reason) -> bool {
    open::pin(s, reason);
    wait(s, sys::now_ns() + LONG_NS)
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
        if !ready::tx_is_fast(s) {
            return true;
        }
        if sys::now_ns() >= deadline {
            return false;
        }
        sys::ppoll(&mut [], Some(PAUSE_NS));
    }
}
