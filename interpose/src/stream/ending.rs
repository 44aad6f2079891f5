//! The end of a stream: FIN, reset, and the peer's death, told apart.
//!
//! The kernel shows the peer's shutdown and its death alike. What the peer's
//! library says in the segment before a shutdown or a close, and the end of the
//! side channel, make the difference.

use super::bell;
use super::cutover::tx;
use super::ready::{in_flight, kernel_bits, left_on_tcp, peer_flags, peer_is_away, rx_is_on_ring};
use super::receive::{broken, Once};
use crate::streams::Stream;
use core::sync::atomic::Ordering;
use libc::{POLLERR, POLLHUP, POLLIN, POLLRDHUP};
use rdma_engine::abi::arena::{flags, RxMode};
use rdma_engine::abi::segment::sender_flags;
use rdma_engine::segment::Segment;
use rdma_engine::{sys, syscall};

/// Has TCP said its last word, so that it must be left out of kernel waits?
pub fn tcp_is_mute(s: &Stream) -> bool {
    s.slot.has(flags::TCP_END)
}

/// Takes note of what poll says of the TCP descriptor. True if it is news.
pub fn note_tcp(s: &Stream, revents: i16) -> bool {
    let mut bits = 0;
    // ERR alone is the error queue's (MSG_ZEROCOPY, timestamps): a reset hangs up.
    if revents & (POLLRDHUP | POLLHUP) != 0 && rx_is_on_ring(s) {
        bits |= flags::TCP_END;
    }
    if revents & POLLHUP != 0 {
        bits |= flags::TCP_DEAD;
    }
    bits != 0 && s.slot.flags.fetch_or(bits, Ordering::AcqRel) & bits != bits
}

/// Asks the kernel whether TCP has ended. True if the caller should look again.
pub fn poll_end(s: &Stream, fd: i32) -> bool {
    if !rx_is_on_ring(s) || tcp_is_mute(s) {
        return false;
    }
    let mut p = [libc::pollfd {
        fd,
        events: POLLIN | POLLRDHUP,
        revents: 0,
    }];
    sys::ppoll(&mut p, Some(0));
    note_tcp(s, p[0].revents)
}

/// The ring is empty, and all of TCP before it was read: is this the end?
pub fn at_end(s: &Stream, fd: i32, segment: Segment) -> Once {
    if !s.slot.has(ENDED) {
        return Once::Empty;
    }
    if s.slot.has(flags::PEER_GONE) && !s.slot.has(flags::TCP_END) {
        poll_end(s, fd);
    }
    // What was put into the ring came before the FIN, or before the side channel
    // ended.
    if s.slot.rx.consumer.anything(&segment.ring(s.into())) {
        return Once::Again;
    }
    if s.slot.has(flags::RESET) || has_died(s, segment) {
        return reset(s);
    }
    if s.slot.has(flags::TCP_END) {
        return final_word(s, fd);
    }
    if s.slot.has(flags::SHUT_RD) {
        return Once::Got(0);
    }
    if s.slot.has(flags::PEER_GONE) {
        return detach(s, segment);
    }
    Once::Empty
}

/// A process that ends closes all its descriptors at once; on a busy machine the
/// last may come so much later than the first.
const FIN_MAY_TAKE_NS: u64 = 20_000_000;

/// Flags that make an empty ring worth a closer look.
pub(super) const ENDED: u32 = flags::RESET | flags::SHUT_RD | flags::PEER_GONE | flags::TCP_END;

/// Has the peer's process died with bytes of ours unread? Then plain TCP would
/// have reset the connection: so do we, once and for all.
pub(super) fn has_died(s: &Stream, segment: Segment) -> bool {
    s.slot.has(flags::TCP_END) && may_have_died(s, segment) && is_dead(s)
}

/// If there is a FIN: is it perhaps that of a death with bytes of ours unread?
pub(super) fn may_have_died(s: &Stream, segment: Segment) -> bool {
    const TOLD: u32 = sender_flags::SHUT | sender_flags::CLOSED | sender_flags::AWAY;
    peer_flags(s, segment) & TOLD == 0
        && !s.slot.has(flags::SHUT_WR | flags::HALF_CLOSED)
        && in_flight(s, segment) > 0
}

/// There is a FIN without the peer's word: settles what it means.
#[cold]
pub(super) fn is_dead(s: &Stream) -> bool {
    let fd = s.any_fd().unwrap_or(-1);
    // The side channel's end may be under way, behind the FIN.
    let mut p = [libc::pollfd {
        fd: s.side(),
        events: 0,
        revents: 0,
    }];
    if !s.slot.has(flags::PEER_GONE) && sys::ppoll(&mut p, Some(FIN_MAY_TAKE_NS)) > 0 {
        bell::peer_gone(s);
    }
    if !s.slot.has(flags::PEER_GONE) {
        s.slot.flags.fetch_or(flags::HALF_CLOSED, Ordering::AcqRel);
        return false;
    }
    s.slot.flags.fetch_or(flags::RESET, Ordering::AcqRel);
    // From here on the kernel gives EPIPE, and HUP to poll.
    // SAFETY: no memory is passed.
    unsafe { syscall!(libc::SYS_shutdown, fd, libc::SHUT_RDWR) };
    true
}

/// For poll and epoll, where input is on TCP and output was on the wire: the bits
/// of a reset that plain TCP would have had.
pub(super) fn reset_bits(s: &Stream, fd: i32) -> i16 {
    let Some(segment) = s.segment() else { return 0 };
    if may_have_died(s, segment) && kernel_bits(fd) & POLLRDHUP != 0 {
        is_dead(s);
    }
    match s.slot.flags.load(Ordering::Relaxed) & (flags::RESET | flags::RESET_TOLD) {
        flags::RESET => POLLIN | POLLHUP | POLLRDHUP | POLLERR,
        0 => 0,
        _ => POLLIN | POLLHUP | POLLRDHUP,
    }
}

/// TCP has said its last word to a receiver whose direction is on TCP: was that a
/// half-close, or a death with bytes of ours unread on the wire?
#[cold]
pub fn end_of_tcp(s: &Stream) -> Once {
    // After our own SHUT_RD nothing is the answer, too.
    if let Some(segment) = s.segment().filter(|_| !s.slot.has(flags::SHUT_RD)) {
        s.slot.flags.fetch_or(flags::TCP_END, Ordering::AcqRel);
        if s.slot.has(flags::RESET) || has_died(s, segment) {
            return reset(s);
        }
    }
    Once::Got(0)
}

/// For a sender: does this send meet the reset? True once.
pub fn meets_reset(s: &Stream, segment: Segment) -> bool {
    (s.slot.has(flags::RESET) || has_died(s, segment)) && tell_reset(s)
}

/// The pending error of an emulated reset, for SO_ERROR; true once.
pub fn tell_reset(s: &Stream) -> bool {
    s.slot.has(flags::RESET)
        && s.slot.flags.fetch_or(flags::RESET_TOLD, Ordering::AcqRel) & flags::RESET_TOLD == 0
}

pub(super) fn reset(s: &Stream) -> Once {
    if tell_reset(s) {
        Once::Failed(libc::ECONNRESET)
    } else {
        Once::Got(0)
    }
}

/// The kernel's own verdict: end of file, or an error that is reported once.
pub(super) fn final_word(s: &Stream, fd: i32) -> Once {
    let mut byte = 0u8;
    let fl = libc::MSG_DONTWAIT;
    // SAFETY: one byte of our own stack.
    match unsafe { syscall!(libc::SYS_recvfrom, fd, &mut byte as *mut u8, 1, fl) } {
        0 => Once::Got(0),
        1 => {
            // Bytes behind an epoch that was never ended.
            broken(s);
            Once::Failed(libc::ECONNRESET)
        }
        e if e == -(libc::EAGAIN as isize) => {
            // It has not ended at all.
            s.slot.flags.fetch_and(!flags::TCP_END, Ordering::AcqRel);
            Once::Empty
        }
        e => Once::Failed(-e as i32),
    }
}

/// The peer's side channel has ended, but its TCP socket lives: it has become a
/// program without the library, or another process holds the socket. TCP carries
/// on, unless bytes of ours are lost: then nothing may follow them.
pub(super) fn detach(s: &Stream, segment: Segment) -> Once {
    let away = peer_is_away(s, segment);
    if !away && in_flight(s, segment) > 0 {
        // Its process is ending and the FIN is under way, or bytes of ours are
        // gone for good.
        let mut p = [libc::pollfd {
            fd: s.any_fd().unwrap_or(-1),
            events: POLLRDHUP,
            revents: 0,
        }];
        sys::ppoll(&mut p, Some(FIN_MAY_TAKE_NS));
        if !note_tcp(s, p[0].revents) {
            s.slot.flags.fetch_or(flags::RESET, Ordering::AcqRel);
        }
        return Once::Again;
    }
    {
        // A send that is under way goes into the ring first, or finds TCP.
        let _held = super::hold(s, &s.slot.tx.lock);
        if !away && in_flight(s, segment) > 0 {
            return Once::Again;
        }
        s.slot.tx.fast.store(tx::PLAIN, Ordering::SeqCst);
    }
    s.slot.rx.mode.store(RxMode::Plain as u32, Ordering::SeqCst);
    crate::stream::open::pin(s, rdma_engine::abi::reason::Reason::Ended);
    Once::Again
}

/// The same for a program that only asks poll or epoll: what TCP brings from now
/// on has to wake it.
#[cold]
pub(super) fn settle_gone(s: &Stream, fd: i32, segment: Segment) {
    poll_end(s, fd);
    if s.slot.has(flags::TCP_END | flags::RESET) {
        return;
    }
    let _held = super::hold(s, &s.slot.rx.lock);
    if s.slot.rx.consumer.anything(&segment.ring(s.into())) {
        return;
    }
    match s.slot.rx_mode() {
        RxMode::Plain => {}
        RxMode::Promised => {
            super::cutover::withdraw_promise(s);
        }
        RxMode::Fast if left_on_tcp(s) == 0 => {
            detach(s, segment);
        }
        RxMode::Fast => {}
    }
}

/// Can nothing more come?
pub fn has_ended(s: &Stream, fd: i32) -> bool {
    s.slot.has(ENDED) || kernel_bits(fd) != 0
}

/// Looks for the peer's death, now and then, on behalf of a sender that never
/// waits.
pub fn check_peer(s: &Stream, fd: i32) {
    let entry = |fd, events| libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    let mut p = [entry(s.side(), 0), entry(fd, POLLRDHUP)];
    sys::ppoll(&mut p, Some(0));
    if p[0].revents & (POLLHUP | POLLERR) != 0 {
        bell::peer_gone(s);
    }
    note_tcp(s, p[1].revents);
}
