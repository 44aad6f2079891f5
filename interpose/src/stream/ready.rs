//! What is to be had from a stream right now, without blocking: for the waits,
//! and for poll, select and epoll.

use super::cutover::tx;
use super::receive::{broken, Once};
use super::wait::{self, Want};
use crate::streams::Stream;
use core::sync::atomic::Ordering;
use libc::{POLLERR, POLLHUP, POLLIN, POLLRDHUP};
use rdma_engine::abi::arena::{flags, RxMode};
use rdma_engine::abi::record::CHUNK;
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
            s.slot.rx.consumer.anything(&segment.ring(s.into())) || f & ENDED != 0
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

fn peer_flags(s: &Stream, segment: Segment) -> u32 {
    let words = &segment.direction(s.into()).sender.flags;
    words.load(Ordering::Acquire)
}

/// Is there nobody at the other end to read what we send: has the peer closed in
/// good order, or shut both directions? Then TCP gives the answer (a reset).
#[inline]
pub fn peer_has_closed(s: &Stream, segment: Segment) -> bool {
    peer_flags(s, segment) & (sender_flags::CLOSED | sender_flags::DEAF) != 0
}

/// Is a FIN of the peer here, or under way?
#[inline]
pub fn peer_has_shut(s: &Stream, segment: Segment) -> bool {
    peer_flags(s, segment) & (sender_flags::CLOSED | sender_flags::SHUT) != 0
}

fn in_flight(s: &Stream, segment: Segment) -> u64 {
    let d = segment.direction(s.out());
    let ring = segment.ring(s.out());
    s.slot.tx.producer.in_flight(&ring, &d.cursor.consumed)
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

/// Is there anything to read right now, on the wire that has its turn?
#[cold]
pub fn more(s: &Stream, fd: i32) -> bool {
    match s.segment() {
        Some(segment) if rx_is_on_ring(s) => s.slot.rx.consumer.anything(&segment.ring(s.into())),
        _ => super::cutover::queued(fd) > 0,
    }
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
            let c = Consumer::new(&ring, &s.slot.rx.consumer, &d.cursor.consumed);
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
const ENDED: u32 = flags::RESET | flags::SHUT_RD | flags::PEER_GONE | flags::TCP_END;

/// Has the peer's process died with bytes of ours unread? Then plain TCP would
/// have reset the connection: so do we, once and for all.
fn has_died(s: &Stream, segment: Segment) -> bool {
    s.slot.has(flags::TCP_END) && may_have_died(s, segment) && is_dead(s)
}

/// If there is a FIN: is it perhaps that of a death with bytes of ours unread?
fn may_have_died(s: &Stream, segment: Segment) -> bool {
    peer_flags(s, segment) & (sender_flags::SHUT | sender_flags::CLOSED) == 0
        && !s.slot.has(flags::SHUT_WR | flags::HALF_CLOSED)
        && in_flight(s, segment) > 0
}

/// There is a FIN without the peer's word: settles what it means.
#[cold]
fn is_dead(s: &Stream) -> bool {
    let fd = s.any_fd().unwrap_or(-1);
    // The side channel's end may be under way, behind the FIN.
    let mut p = [libc::pollfd {
        fd: s.side(),
        events: 0,
        revents: 0,
    }];
    if !s.slot.has(flags::PEER_GONE) && sys::ppoll(&mut p, Some(FIN_MAY_TAKE_NS)) > 0 {
        wait::peer_gone(s);
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
fn reset_bits(s: &Stream, fd: i32) -> i16 {
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

fn reset(s: &Stream) -> Once {
    if tell_reset(s) {
        Once::Failed(libc::ECONNRESET)
    } else {
        Once::Got(0)
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

/// The peer's side channel has ended, but its TCP socket lives: it has become a
/// program without the library, or another process holds the socket. TCP carries
/// on, unless bytes of ours are lost: then nothing may follow them.
fn detach(s: &Stream, segment: Segment) -> Once {
    if in_flight(s, segment) > 0 {
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
    s.slot.rx.mode.store(RxMode::Plain as u32, Ordering::SeqCst);
    s.slot.tx.fast.store(tx::PLAIN, Ordering::SeqCst);
    crate::stream::open::pin(s, rdma_engine::abi::reason::Reason::Ended);
    Once::Again
}

/// The same for a program that only asks poll or epoll: what TCP brings from now
/// on has to wake it.
#[cold]
fn settle_gone(s: &Stream, fd: i32, segment: Segment) {
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
    if may_come_by_ring(s, Want::In) {
        bits |= input_bits(s, fd);
        if rx_is_on_ring(s) {
            ask &= !(IN | POLLRDHUP);
        }
    } else {
        bits |= reset_bits(s, fd);
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
    let me = crate::tls::tid();
    let d = segment.direction(s.into());
    let ring = segment.ring(s.into());
    let lock = &s.slot.rx.lock;
    lock.acquire(me);
    let c = Consumer::new(&ring, &s.slot.rx.consumer, &d.cursor.consumed);
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
        wait::peer_gone(s);
    }
    note_tcp(s, p[1].revents);
}
