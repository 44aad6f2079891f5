//! How the two ends of a connection on one host find each other.
//!
//! Both know the 4-tuple. Each busy end tries to bind an abstract Unix socket
//! named after it; the one that comes second connects there and passes the
//! segment. No daemon, no privilege, no port, and nothing blocks: each end polls
//! on its own later calls, with back-off, and gives up after a bounded effort.

mod channel;
mod diag;
mod identity;

use crate::policy::{self, Verdict};
use crate::stream::open::{self, End};
use crate::stream::{heat, leave, options};
use crate::streams::Stream;
use crate::{descriptors, startup, tls};
use core::sync::atomic::Ordering;
use rdma_engine::abi::arena::{flags, Phase};
use rdma_engine::abi::log::Event;
use rdma_engine::abi::message::{Answer, Hello};
use rdma_engine::abi::reason::Reason;
use rdma_engine::segment::{self, Segment};
use rdma_engine::sys;

/// After so many offers without an answer, over some ten seconds in which the stream was
/// busy, no other is made: an end that ran Sidewire would have been as busy.
const UNANSWERED: u32 = 4;
/// So many refusals for want of resources are taken for passing ones.
const TRANSIENT: u32 = 12;
/// An offer without an answer is withdrawn after so many steps and so long.
const PATIENCE_STEPS: u32 = 64;
const PATIENCE_NS: u64 = 1_000_000_000;
/// The first pause before another offer; it doubles up to the longest.
const RETRY_NS: u64 = 1_000_000_000;
const RETRY_MOST_NS: u64 = 60_000_000_000;

/// The stream has become worth an offer: makes one, unless something speaks
/// against it.
#[cold]
pub fn offer(s: &Stream, fd: i32) {
    if crate::process::is_confined() {
        // The slot's count is that of other holders too.
        return;
    }
    if !startup::enabled() {
        // Nothing switches it on again.
        decline(s, Reason::Policy);
        return;
    }
    if s.pinned()
        || s.slot
            .has(flags::SHUT_RD | flags::SHUT_WR | flags::TCP_END | flags::PEER_GONE)
    {
        heat::rest(s);
        return;
    }
    if sys::now_ns() < s.slot.retry_at.load(Ordering::Relaxed) {
        if startup::chaos() == 0 {
            heat::rest(s);
        }
        return;
    }
    let me = tls::tid();
    // Somebody else (or the frame that a signal interrupted) is at it.
    if !s.slot.control.try_acquire(me) {
        return;
    }
    sys::with_signals_blocked(|| {
        if s.phase() == Phase::Plain && !s.pinned() {
            match begin(s, fd) {
                Ok(()) => {
                    s.because(Reason::Offered);
                    let offers = s.slot.offers.load(Ordering::Relaxed);
                    s.log(Event::Offered, [u64::from(offers), 0]);
                }
                Err(reason) => decline(s, reason),
            }
        }
    });
    s.slot.control.release(me);
}

/// No wire for now, or for good: the reason decides.
fn decline(s: &Stream, reason: Reason) {
    let for_good = matches!(
        reason,
        Reason::Policy
            | Reason::SelfConnect
            | Reason::Protocol
            | Reason::Nat
            | Reason::Kernel
            | Reason::KernelOption
            | Reason::ZeroCopy
            | Reason::Ulp
            | Reason::Sigio
            | Reason::Remote
    ) || (reason == Reason::NoPeer
        && s.slot.offers.load(Ordering::Relaxed) + 1 >= UNANSWERED
        && startup::chaos() == 0);
    if for_good {
        s.slot.pin.store(reason as u32, Ordering::Release);
    }
    s.because(reason);
    if reason == Reason::Cold {
        return;
    }
    let event = if for_good {
        Event::Pinned
    } else {
        Event::Refused
    };
    s.log(event, [reason as u64, 0]);
    if matches!(reason, Reason::SharedEnd | Reason::Offered) {
        // The other holder, a child as a rule, may leave at any time; a peer that
        // took its offer back may make another.
        return heat::pause(s);
    }
    let n = s.slot.offers.fetch_add(1, Ordering::Relaxed);
    if reason == Reason::Resources && n < TRANSIENT {
        // A process may have tied its own hands (sshd before the log-in does) and
        // hand the connection to one that has not.
        return heat::pause(s);
    }
    let pause = (RETRY_NS << n.min(16)).min(RETRY_MOST_NS);
    let pause = if startup::chaos() != 0 {
        1_000_000
    } else {
        pause
    };
    s.slot
        .retry_at
        .store(sys::now_ns() + pause, Ordering::Relaxed);
    heat::set(s, 0);
}

fn begin(s: &Stream, fd: i32) -> Result<(), Reason> {
    if !s.is_sole() {
        return Err(Reason::SharedEnd);
    }
    let (own, peer) = open::addresses(s, fd).ok_or(Reason::Ended)?;
    check_policy(s)?;
    identity::is_offerable(fd, own, peer)?;
    identity::is_here(own, peer)?;
    if let Some(reason) = options::in_force(fd) {
        return Err(reason);
    }
    if !s.all_known() {
        return Err(Reason::Resources);
    }
    let name = channel::name(own, peer);
    match channel::listen(&name)? {
        Some(listener) => {
            s.local.listener.store(listener + 1, Ordering::Release);
        }
        None => match connect(s, fd, &name) {
            // It has bound its socket, and listens in a moment.
            Err(Reason::NoPeer) => {
                sys::sched_yield();
                connect(s, fd, &name)?;
            }
            r => r?,
        },
    }
    s.slot.opened.store(sys::now_ns(), Ordering::Relaxed);
    s.local.calls.store(0, Ordering::Relaxed);
    s.slot.phase.store(Phase::Offered as u32, Ordering::SeqCst);
    Ok(())
}

fn check_policy(s: &Stream) -> Result<(), Reason> {
    let (local, remote) = (s.slot.local.get(), s.slot.remote.get());
    let d = policy::decide(&local, &remote, s.slot.has(flags::OUTGOING));
    if d.rule != 0 {
        s.log(Event::Ruled, [u64::from(d.rule), 0]);
    }
    match d.verdict {
        Verdict::Tcp | Verdict::Rdma => Err(Reason::Policy),
        Verdict::Auto | Verdict::Shm => {
            let tcp = &s.slot.tcp;
            let so_far = tcp.sends.load(Ordering::Relaxed) + tcp.receives.load(Ordering::Relaxed);
            match d.upgrade_after {
                Some(n) if so_far < n => Err(Reason::Cold),
                _ => Ok(()),
            }
        }
    }
}

/// We come second: connects to the other's socket and passes a new segment.
fn connect(s: &Stream, fd: i32, name: &channel::Name) -> Result<(), Reason> {
    let side = channel::connect(name)?;
    let memory = match segment::create() {
        Ok(fd) => fd,
        Err(_) => {
            descriptors::close(side);
            return Err(Reason::Resources);
        }
    };
    let mapped = Segment::map(memory, true);
    let sent = mapped.is_some() && channel::send_hello(side, &identity::hello(fd), memory);
    sys::close(memory);
    match mapped {
        Some(segment) if sent => {
            s.set_segment(segment);
            s.slot.creator.store(1, Ordering::Relaxed);
            s.local.side.store(side + 1, Ordering::Release);
            Ok(())
        }
        mapped => {
            if let Some(segment) = mapped {
                // SAFETY: nobody has seen the mapping.
                unsafe { segment.unmap() };
            }
            descriptors::close(side);
            Err(Reason::Resources)
        }
    }
}

/// A later call on an offered stream: has the other end come, or answered?
#[cold]
pub fn step(s: &Stream, fd: i32) {
    let me = tls::tid();
    if !s.slot.control.try_acquire(me) {
        return;
    }
    sys::with_signals_blocked(|| {
        if s.phase() == Phase::Offered {
            match advance(s, fd) {
                Ok(true) => attach(s),
                Ok(false) => give_up_in_time(s),
                Err(reason) => withdraw(s, reason),
            }
        }
    });
    s.slot.control.release(me);
}

/// `Ok(true)`: both ends have the segment.
fn advance(s: &Stream, fd: i32) -> Result<bool, Reason> {
    if s.side() < 0 {
        let listener = s.local.listener.load(Ordering::Acquire) - 1;
        let Some(side) = channel::accept(listener)? else {
            return Ok(false);
        };
        s.local.side.store(side + 1, Ordering::Release);
        s.slot.creator.store(0, Ordering::Relaxed);
    }
    if s.slot.creator.load(Ordering::Relaxed) == 1 {
        let Some(answer) = channel::receive_answer(s.side())? else {
            return Ok(false);
        };
        return check_answer(s, fd, answer);
    }
    let Some((hello, memory)) = channel::receive_hello(s.side())? else {
        return Ok(false);
    };
    let verdict = welcome(s, fd, hello, memory);
    sys::close(memory);
    let mut answer = identity::answer(fd);
    answer.verdict = verdict.err().unwrap_or(Reason::None);
    if !channel::send_answer(s.side(), &answer) {
        return Err(Reason::Offered);
    }
    verdict.map(|()| true)
}

fn check_answer(s: &Stream, fd: i32, answer: Answer) -> Result<bool, Reason> {
    if answer.verdict != Reason::None {
        return Err(answer.verdict);
    }
    let (own, peer) = ends(fd)?;
    let claim = Hello {
        pid: answer.pid,
        fd: answer.fd,
        cookie: answer.cookie,
    };
    identity::verify(fd, s.side(), own, peer, &claim)?;
    Ok(true)
}

fn welcome(s: &Stream, fd: i32, hello: Hello, memory: i32) -> Result<(), Reason> {
    let (own, peer) = ends(fd)?;
    identity::verify(fd, s.side(), own, peer, &hello)?;
    let segment = Segment::map(memory, false).ok_or(Reason::Resources)?;
    s.set_segment(segment);
    Ok(())
}

fn ends(fd: i32) -> Result<(End, End), Reason> {
    Ok((
        open::own(fd).ok_or(Reason::Ended)?,
        open::peer(fd).ok_or(Reason::Ended)?,
    ))
}

/// Both ends have the segment, and each knows the other.
fn attach(s: &Stream) {
    let slot = s.slot;
    slot.tx.producer.begin();
    slot.rx.consumer.begin();
    for word in [&slot.tx.data_rung, &slot.rx.room_rung] {
        word.store(0, Ordering::Relaxed);
    }
    slot.tx.epoch.store(0, Ordering::Relaxed);
    slot.rx.epoch.store(0, Ordering::Relaxed);
    close_listener(s);
    s.because(Reason::Attached);
    s.local.calls.store(0, Ordering::Relaxed);
    slot.phase.store(Phase::Attached as u32, Ordering::SeqCst);
    let creator = slot.creator.load(Ordering::Relaxed);
    s.log(Event::Attached, [u64::from(creator), 0]);
}

fn close_listener(s: &Stream) {
    descriptors::close(s.local.listener.swap(0, Ordering::AcqRel) - 1);
}

fn give_up_in_time(s: &Stream) {
    let since = s.slot.opened.load(Ordering::Relaxed);
    let calls = s.local.calls.load(Ordering::Relaxed);
    if calls >= PATIENCE_STEPS && sys::now_ns().saturating_sub(since) > PATIENCE_NS {
        withdraw(s, Reason::NoPeer);
    }
}

/// Takes an offer back; the stream may make another at any time.
pub fn retract(s: &Stream) {
    let me = tls::tid();
    if !s.slot.control.try_acquire(me) {
        return;
    }
    sys::with_signals_blocked(|| {
        if s.phase() == Phase::Offered {
            withdraw(s, Reason::Cold);
        }
    });
    s.slot.control.release(me);
}

/// Back to Plain.
fn withdraw(s: &Stream, reason: Reason) {
    s.slot.phase.store(Phase::Plain as u32, Ordering::SeqCst);
    close_listener(s);
    descriptors::close(s.local.side.swap(0, Ordering::AcqRel) - 1);
    // Nobody finds it from here on; who has found it shows in the marks.
    if let Some(segment) = s.take_segment() {
        if crate::threads::barrier() && !crate::threads::others_in_use(s.index) {
            // SAFETY: no other thread's mark names the stream, and we do not use
            // the mapping after this.
            unsafe { segment.unmap() };
        }
    }
    decline(s, reason);
}

/// The program uses io_uring(7), whose transfers no hook sees: from now on its
/// streams stay on TCP.
pub fn io_uring() {
    startup::disable();
    crate::streams::log(Event::Disabled, [Reason::IoUring as u64, 0]);
    leave::all_leave(crate::streams::ours, leave::LONG_NS, |s| {
        leave::give_up_wire(s, Reason::IoUring)
    });
    crate::streams::ours().for_each(|s| leave::dissolve_owing(&s));
}
