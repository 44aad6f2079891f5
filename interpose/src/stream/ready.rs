//! What is to be had from a stream right now, without blocking: for the waits,
//! and for poll, select and epoll.

use super::cutover::tx;
use super::ending::{has_died, note_tcp, reset_bits, settle_gone, ENDED};
use super::handback;
use super::wait::Want;
use crate::streams::Stream;
use core::sync::atomic::Ordering;
use libc::{POLLERR, POLLHUP, POLLIN, POLLRDHUP};
use rdma_engine::abi::arena::{flags, RxMode};
use rdma_engine::abi::record::CHUNK;
use rdma_engine::abi::segment::sender_flags;
use rdma_engine::ring::{Consumer, Peek};
use rdma_engine::segment::Segment;
use rdma_engine::sys;

/// Bytes that TCP has yet to bring before the ring's turn.
#[inline]
pub(super) fn left_on_tcp(s: &Stream) -> u64 {
    let rx = &s.slot.rx;
    rx.cut_at
        .load(Ordering::Relaxed)
        .wrapping_sub(rx.tcp_count.load(Ordering::Relaxed))
}

/// Does all input come by the ring now?
#[inline]
pub fn rx_is_on_ring(s: &Stream) -> bool {
    s.slot.rx_mode() == RxMode::Fast && left_on_tcp(s) == 0
}

/// Is our sending direction on the wire?
#[inline]
pub fn tx_is_fast(s: &Stream) -> bool {
    s.slot.tx.fast.load(Ordering::Acquire) != tx::PLAIN
}

/// Can what is waited for appear in the ring (so that polling memory pays)?
#[inline]
pub fn may_come_by_ring(s: &Stream, want: Want) -> bool {
    match want {
        Want::In => match s.slot.rx_mode() {
            RxMode::Plain => false,
            RxMode::Promised => true,
            RxMode::Fast => left_on_tcp(s) == 0,
        },
        Want::Out => tx_is_fast(s),
    }
}

/// Is it worth looking again? A load or two; needs no lock.
#[inline]
pub fn now(s: &Stream, want: Want) -> bool {
    let Some(segment) = s.segment() else {
        return false;
    };
    match want {
        Want::In => {
            let f = s.slot.flags.load(Ordering::Relaxed);
            if !may_come_by_ring(s, want) {
                return false;
            }
            s.slot.rx.consumer.anything(&segment.ring(s.into())) || f & ENDED != 0
        }
        Want::Out if handback::is_owing(s) => {
            handback::serve(s) || kernel_says(s.any_fd().unwrap_or(-1), libc::POLLOUT) != 0
        }
        Want::Out => {
            let f = s.slot.flags.load(Ordering::Relaxed);
            f & (flags::RESET | flags::SHUT_WR | flags::PEER_GONE | flags::TCP_DEAD) != 0
                || peer_has_closed(s, segment)
                || !tx_is_fast(s)
                || writable(s, segment)
        }
    }
}

pub(super) fn peer_flags(s: &Stream, segment: Segment) -> u32 {
    let words = &segment.direction(s.into()).sender.flags;
    words.load(Ordering::Acquire)
}

/// Is there nobody at the other end to read what we send: has the peer closed in
/// good order, or shut both directions? Then TCP gives the answer (a reset).
#[inline]
pub fn peer_has_closed(s: &Stream, segment: Segment) -> bool {
    peer_flags(s, segment) & (sender_flags::CLOSED | sender_flags::DEAF) != 0
}

/// Does the peer say that its end has gone to others (see [`handback`])?
pub(super) fn peer_is_away(s: &Stream, segment: Segment) -> bool {
    peer_flags(s, segment) & sender_flags::AWAY != 0
}

/// Is a FIN of the peer here, or under way?
#[inline]
pub fn peer_has_shut(s: &Stream, segment: Segment) -> bool {
    peer_flags(s, segment) & (sender_flags::CLOSED | sender_flags::SHUT) != 0
}

pub(super) fn in_flight(s: &Stream, segment: Segment) -> u64 {
    let d = segment.direction(s.out());
    let ring = segment.ring(s.out());
    s.slot.tx.producer.in_flight(&ring, &d.cursor.consumed)
}

/// As the kernel has it for a TCP socket: a third of the buffer is free.
pub fn writable(s: &Stream, segment: Segment) -> bool {
    let d = segment.direction(s.out());
    let full_at = s.local.full_at.load(Ordering::Relaxed);
    // Small messages fill the ring long before they reach the limit.
    full_at != d.cursor.consumed.load(Ordering::Acquire) | FULL
        && in_flight(s, segment) <= s.slot.tx.limit.load(Ordering::Relaxed) * 2 / 3
}

/// Marks a value of `Local::full_at`: with it, the reader's position when a send
/// last found no room.
pub const FULL: u64 = 1 << 63;

/// Is one of the window's chunks free (or nearly)?
pub fn window_has_room(s: &Stream) -> bool {
    s.segment()
        .is_none_or(|g| in_flight(s, g) <= 2 * u64::from(CHUNK))
}

/// Bytes that our side has sent by the wire and the peer has not taken.
pub fn unread_by_peer(s: &Stream) -> u64 {
    s.segment().map_or(0, |g| in_flight(s, g))
}

/// Is there anything to read right now, on the wire that has its turn?
#[cold]
pub fn more(s: &Stream, fd: i32) -> bool {
    match s.segment() {
        Some(segment) if rx_is_on_ring(s) => s.slot.rx.consumer.anything(&segment.ring(s.into())),
        _ => super::tcp::queued(fd) > 0,
    }
}

/// Bytes in the ring that the program has not taken. Takes no lock: as
/// FIONREAD, it is the value of a moment.
pub fn unread(s: &Stream) -> usize {
    match s.segment() {
        Some(segment) if s.slot.rx_mode() != RxMode::Plain => {
            let d = segment.direction(s.into());
            let ring = segment.ring(s.into());
            let _held = super::hold(s, &s.slot.rx.lock);
            let c = Consumer::new(&ring, &s.slot.rx.consumer, &d.cursor.consumed);
            c.look_ahead(usize::MAX, |_, _, _, _| {})
        }
        _ => 0,
    }
}

/// Does the ring end with a cut-back record, behind which TCP carries on?
#[cold]
pub fn ring_is_cut_off(s: &Stream) -> bool {
    let Some(segment) = s.segment() else {
        return false;
    };
    let d = segment.direction(s.into());
    let ring = segment.ring(s.into());
    let _held = super::hold(s, &s.slot.rx.lock);
    Consumer::new(&ring, &s.slot.rx.consumer, &d.cursor.consumed).is_cut_off()
}

/// Do two ends of the stream run on one processor at the moment? Then spinning
/// is waste, and yielding is everything.
#[inline]
pub fn same_cpu(s: &Stream) -> bool {
    let Some(segment) = s.segment() else {
        return false;
    };
    let cpu = current_cpu() + 1;
    let mine = &segment.direction(s.into()).receiver.cpu;
    if mine.load(Ordering::Relaxed) != cpu {
        mine.store(cpu, Ordering::Relaxed);
    }
    segment
        .direction(s.out())
        .receiver
        .cpu
        .load(Ordering::Relaxed)
        == cpu
}

/// The processor that we run on, by the rseq(2) area that glibc registers.
#[inline]
fn current_cpu() -> u32 {
    extern "C" {
        static __rseq_offset: isize;
        static __rseq_size: u32;
    }
    // SAFETY: glibc 2.35 and later: the area lies at this offset from the thread
    // pointer; its second word is cpu_id. A size of 0 says that it is not there.
    unsafe {
        if __rseq_size == 0 {
            return u32::MAX - 1;
        }
        let tp: usize;
        core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) tp, options(nostack, readonly));
        let cpu = (tp as isize + __rseq_offset + 4) as *const u32;
        core::ptr::read_volatile(cpu)
    }
}

/// poll(2) bits of a stream whose receiving direction is on the ring. HUP, ERR
/// and RDHUP are the kernel's; what came before them is in the ring already.
pub fn input_bits(s: &Stream, fd: i32) -> i16 {
    let Some(segment) = s.segment() else { return 0 };
    let ring = segment.ring(s.into());
    let mut bits = 0;
    if s.slot.rx.consumer.anything(&ring) && !is_cut_back(s, segment) {
        bits |= POLLIN;
    }
    if s.slot.has(ENDED | flags::SHUT_WR) || peer_has_shut(s, segment) {
        if s.slot.has(flags::PEER_GONE) {
            settle_gone(s, fd, segment);
        }
        if s.slot.has(flags::RESET) || has_died(s, segment) {
            let told = s.slot.has(flags::RESET_TOLD);
            bits |= POLLHUP | POLLRDHUP | if told { 0 } else { POLLERR };
        }
        bits |= kernel_bits(fd);
        if bits & (POLLRDHUP | POLLHUP | POLLERR) != 0 {
            bits |= POLLIN;
        }
    }
    bits
}

/// Is there, at first sight, nothing to report? For waits that look at many
/// streams; never true of what [`bits`] would report.
#[inline]
pub fn is_quiet(s: &Stream, wanted: i16) -> bool {
    const OUT: i16 = libc::POLLOUT | libc::POLLWRNORM;
    wanted & (OUT | libc::POLLPRI) == 0
        && rx_is_on_ring(s)
        && tx_is_fast(s)
        && s.slot.flags.load(Ordering::Acquire) & (ENDED | flags::SHUT_WR | flags::TCP_DEAD) == 0
        && s.segment()
            .is_some_and(|g| !s.slot.rx.consumer.anything(&g.ring(s.into())))
}

/// What poll(2) reports of a stream, of the `wanted` bits and those that are
/// always reported. Parts that are on TCP are the kernel's word.
pub fn bits(s: &Stream, fd: i32, wanted: i16) -> i16 {
    const IN: i16 = POLLIN | libc::POLLRDNORM;
    const OUT: i16 = libc::POLLOUT | libc::POLLWRNORM;
    let mut bits = 0;
    let mut ask = wanted;
    if handback::is_due(s) {
        handback::serve(s);
    }
    if may_come_by_ring(s, Want::In) {
        bits |= input_bits(s, fd);
        if rx_is_on_ring(s) {
            ask &= !(IN | POLLRDHUP);
        }
    } else {
        bits |= reset_bits(s, fd);
    }
    if handback::is_owing(s) {
        ask &= !OUT;
    } else if tx_is_fast(s) {
        if s.segment().is_none_or(|g| writable(s, g)) || now(s, Want::Out) {
            bits |= libc::POLLOUT;
        }
        ask &= !OUT;
    }
    // What pins a stream may have to do with the kernel's error queue.
    if ask != 0 || s.pinned() {
        let mut p = [libc::pollfd {
            fd,
            events: ask,
            revents: 0,
        }];
        sys::ppoll(&mut p, Some(0));
        note_tcp(s, p[0].revents);
        bits |= p[0].revents;
    }
    if bits & POLLIN != 0 {
        bits |= libc::POLLRDNORM;
    }
    if bits & libc::POLLOUT != 0 {
        bits |= libc::POLLWRNORM;
    }
    bits & (wanted | POLLERR | POLLHUP | libc::POLLNVAL)
}

/// Is the cut-back record all that stands in the ring? Then it is taken here.
fn is_cut_back(s: &Stream, segment: Segment) -> bool {
    let d = segment.direction(s.into());
    let ring = segment.ring(s.into());
    let _held = super::hold(s, &s.slot.rx.lock);
    let c = Consumer::new(&ring, &s.slot.rx.consumer, &d.cursor.consumed);
    match c.peek() {
        Peek::CutBack => {
            // It may have followed the cut-over at once, before anybody looked.
            if s.slot.rx_mode() == RxMode::Promised {
                super::receive::see_cut(s, segment);
            }
            if rx_is_on_ring(s) {
                super::cutover::take_cut_back(s, &c, segment);
            }
            true
        }
        Peek::Empty => true,
        _ => false,
    }
}

/// What the kernel says of HUP and ERR.
pub(super) fn kernel_bits(fd: i32) -> i16 {
    kernel_says(fd, POLLRDHUP)
}

fn kernel_says(fd: i32, events: i16) -> i16 {
    let mut p = [libc::pollfd {
        fd,
        events,
        revents: 0,
    }];
    sys::ppoll(&mut p, Some(0));
    p[0].revents & (POLLHUP | POLLERR | events)
}
