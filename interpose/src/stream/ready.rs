//! What is to be had from a stream right now, without blocking: for the waits,
//! and for poll, select and epoll.

use super::cutover::tx;
use super::receive::{broken, Once};
use super::wait::{self, Want};
use crate::streams::Stream;
use core::sync::atomic::Ordering;
use libc::{POLLERR, POLLHUP, POLLIN, POLLRDHUP};
use rdma_engine::abi::arena::{flags, RxMode};
use rdma_engine::abi::record::{count_sub, CHUNK};
use rdma_engine::abi::segment::sender_flags;
use rdma_engine::ring::{Consumer, Peek};
use rdma_engine::segment::Segment;
use rdma_engine::{sys, syscall};

/// Bytes that TCP has yet to bring before the ring's turn.
#[inline]
fn left_on_tcp(s: &Stream) -> u64 {
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
            s.slot.rx.consumer.anything(&segment.ring(s.into()))
                || f & (flags::RESET | flags::SHUT_RD | flags::TCP_END) != 0
        }
        Want::Out => {
            let f = s.slot.flags.load(Ordering::Relaxed);
            f & (flags::RESET | flags::SHUT_WR | flags::PEER_GONE) != 0
                || !tx_is_fast(s)
                || writable(s, segment)
        }
    }
}

fn in_flight(s: &Stream, segment: Segment) -> u64 {
    let d = segment.direction(s.out());
    count_sub(
        s.slot.tx.producer.count(),
        d.receiver.consumed.load(Ordering::Acquire),
    )
}

/// As the kernel has it for a TCP socket: a third of the buffer is free.
pub fn writable(s: &Stream, segment: Segment) -> bool {
    in_flight(s, segment) <= s.slot.tx.limit.load(Ordering::Relaxed) * 2 / 3
}

/// Is one of the window's chunks free (or nearly)?
pub fn window_has_room(s: &Stream) -> bool {
    s.segment()
        .is_none_or(|g| in_flight(s, g) <= 2 * u64::from(CHUNK))
}

/// Bytes that our side has sent by the wire and the peer has not taken.
pub fn unread_by_peer(s: &Stream) -> u64 {
    s.segment().map_or(0, |g| in_flight(s, g))
}

/// Bytes in the ring that the program has not taken. Takes no lock: as
/// FIONREAD, it is the value of a moment.
pub fn unread(s: &Stream) -> usize {
    match s.segment() {
        Some(segment) if s.slot.rx_mode() != RxMode::Plain => {
            let d = segment.direction(s.into());
            let ring = segment.ring(s.into());
            let me = crate::tls::tid();
            s.slot.rx.lock.acquire(me);
            let c = Consumer::new(&ring, &s.slot.rx.consumer, &d.receiver.consumed);
            let n = c.look_ahead(usize::MAX, |_, _, _, _| {});
            s.slot.rx.lock.release(me);
            n
        }
        _ => 0,
    }
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
    segment.direction(s.out()).receiver.cpu.load(Ordering::Relaxed) == cpu
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

/// Has TCP said its last word, so that it must be left out of kernel waits?
pub fn tcp_is_mute(s: &Stream) -> bool {
    s.slot.has(flags::TCP_END)
}

/// Takes note of what poll says of the TCP descriptor. True if it is news.
pub fn note_tcp(s: &Stream, revents: i16) -> bool {
    if revents & (POLLRDHUP | POLLHUP | POLLERR) == 0 || !rx_is_on_ring(s) {
        return false;
    }
    s.slot.flags.fetch_or(flags::TCP_END, Ordering::AcqRel) & flags::TCP_END == 0
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
    if s.slot.has(flags::RESET) {
        return reset(s);
    }
    if s.slot.has(flags::SHUT_RD) {
        return Once::Got(0);
    }
    if s.slot.has(flags::PEER_GONE) && !s.slot.has(flags::TCP_END) {
        poll_end(s, fd);
        if !s.slot.has(flags::TCP_END) {
            return detach(s);
        }
    }
    if !s.slot.has(flags::TCP_END) {
        return Once::Empty;
    }
    // What was put into the ring came before the FIN.
    if s.slot.rx.consumer.anything(&segment.ring(s.into())) {
        return Once::Again;
    }
    let words = segment.direction(s.into()).sender.flags.load(Ordering::Acquire);
    if words & (sender_flags::SHUT | sender_flags::CLOSED) == 0 && unread_by_peer(s) > 0 {
        // It died with bytes of ours unread: plain TCP would have reset.
        s.slot.flags.fetch_or(flags::RESET, Ordering::AcqRel);
        return reset(s);
    }
    final_word(s, fd)
}

/// For a sender: has the peer gone, in no good order, with bytes of ours unread?
/// Then plain TCP would have reset. True once, for the ECONNRESET; from then on
/// the kernel, told to shut down, gives EPIPE.
pub fn lost(s: &Stream, segment: Segment) -> bool {
    let words = segment.direction(s.into()).sender.flags.load(Ordering::Acquire);
    if !s.slot.has(flags::PEER_GONE)
        || s.slot.has(flags::SHUT_WR | flags::RESET)
        || words & sender_flags::CLOSED != 0
        || in_flight(s, segment) == 0
    {
        return false;
    }
    s.slot.flags.fetch_or(flags::RESET, Ordering::AcqRel);
    if let Some(fd) = s.any_fd() {
        // SAFETY: no memory is passed.
        unsafe { syscall!(libc::SYS_shutdown, fd, libc::SHUT_RDWR) };
    }
    true
}

fn reset(s: &Stream) -> Once {
    let before = s.slot.flags.fetch_or(flags::RESET_TOLD, Ordering::AcqRel);
    if before & flags::RESET_TOLD != 0 {
        Once::Got(0)
    } else {
        Once::Failed(libc::ECONNRESET)
    }
}

/// The kernel's own verdict: end of file, or an error that is reported once.
fn final_word(s: &Stream, fd: i32) -> Once {
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
        e if e == -(libc::EAGAIN as isize) => Once::Empty,
        e => Once::Failed(-e as i32),
    }
}

/// The peer's library has left, but its TCP socket lives (it has become a
/// program without the library): TCP carries on, unless bytes are lost.
fn detach(s: &Stream) -> Once {
    if unread_by_peer(s) > 0 {
        // Its process is ending and the FIN is under way, or bytes of ours are
        // gone for good; which, the next look will tell.
        return Once::Empty;
    }
    s.slot
        .rx
        .mode
        .store(RxMode::Plain as u32, Ordering::SeqCst);
    s.slot.tx.fast.store(tx::PLAIN, Ordering::SeqCst);
    crate::stream::open::pin(s, rdma_engine::abi::reason::Reason::Ended);
    Once::Again
}

/// poll(2) bits of a stream whose receiving direction is on the ring:
/// POLLIN, POLLRDHUP, and the kernel's HUP and ERR when it is their turn.
pub fn input_bits(s: &Stream, fd: i32) -> i16 {
    let Some(segment) = s.segment() else { return 0 };
    let ring = segment.ring(s.into());
    if s.slot.rx.consumer.anything(&ring) && !is_cut_back(s, segment) {
        let end = s.slot.has(flags::TCP_END);
        return POLLIN | if end { POLLRDHUP } else { 0 };
    }
    if s.slot.has(flags::RESET) {
        return POLLIN | POLLRDHUP | POLLERR | POLLHUP;
    }
    if s.slot.has(flags::TCP_END) {
        return kernel_bits(fd) | POLLIN | POLLRDHUP;
    }
    if s.slot.has(flags::SHUT_RD) {
        return POLLIN | POLLRDHUP;
    }
    0
}

/// What poll(2) reports of a stream, of the `wanted` bits and those that are
/// always reported. Parts that are on TCP are the kernel's word.
pub fn bits(s: &Stream, fd: i32, wanted: i16) -> i16 {
    const IN: i16 = POLLIN | libc::POLLRDNORM;
    const OUT: i16 = libc::POLLOUT | libc::POLLWRNORM;
    let mut bits = 0;
    let mut ask = wanted;
    if may_come_by_ring(s, Want::In) {
        bits |= input_bits(s, fd);
        if rx_is_on_ring(s) {
            ask &= !(IN | POLLRDHUP);
        }
    }
    if tx_is_fast(s) {
        if s.segment().is_none_or(|g| writable(s, g)) || now(s, Want::Out) {
            bits |= libc::POLLOUT;
        }
        ask &= !OUT;
    }
    if ask != 0 {
        let mut p = [libc::pollfd {
            fd,
            events: ask,
            revents: 0,
        }];
        sys::ppoll(&mut p, Some(0));
        let mut from_tcp = p[0].revents;
        if rx_is_on_ring(s) && !s.slot.has(flags::TCP_END) {
            // Not due before the ring is empty.
            note_tcp(s, from_tcp);
            from_tcp &= !(POLLHUP | POLLERR);
        }
        bits |= from_tcp;
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
    let me = crate::tls::tid();
    let d = segment.direction(s.into());
    let ring = segment.ring(s.into());
    let lock = &s.slot.rx.lock;
    lock.acquire(me);
    let c = Consumer::new(&ring, &s.slot.rx.consumer, &d.receiver.consumed);
    let on_ring = rx_is_on_ring(s);
    let empty = match c.peek() {
        Peek::CutBack if on_ring => {
            c.pass_cut_back();
            super::cutover::received_cut_back(s, segment);
            true
        }
        Peek::Empty => true,
        _ => false,
    };
    lock.release(me);
    empty
}

/// What the kernel says of HUP and ERR.
fn kernel_bits(fd: i32) -> i16 {
    let mut p = [libc::pollfd {
        fd,
        events: POLLRDHUP,
        revents: 0,
    }];
    sys::ppoll(&mut p, Some(0));
    p[0].revents & (POLLHUP | POLLERR | POLLRDHUP)
}

/// Looks at the side channel for the peer's death, now and then, on behalf of a
/// sender that never waits.
pub fn check_peer(s: &Stream) {
    let mut p = [libc::pollfd {
        fd: s.side(),
        events: 0,
        revents: 0,
    }];
    if sys::ppoll(&mut p, Some(0)) > 0 && p[0].revents & (POLLHUP | POLLERR) != 0 {
        wait::peer_gone(s);
    }
}
