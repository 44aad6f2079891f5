//! The merged wait of one stream: spin very little, yield for a while, sleep in
//! the kernel on the TCP descriptor *and* the side channel.

use super::bell;
use super::{ending, flow, handback, ready, settings};
use crate::patience::{self, SPINS};
use crate::streams::{Stream, POLLED};
use crate::threads::{self, Doing, Kind};
use crate::{descriptors, errno, real, signals, startup, tls};
use core::sync::atomic::Ordering;
use libc::pollfd;
use rdma_engine::abi::arena::flags;
use rdma_engine::sync::spin_hint;
use rdma_engine::sys;

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// Something to receive (or the end of the stream).
    In,
    /// Room to send.
    Out,
}

/// One call's waiting.
pub struct Waiter {
    /// The number by which the stream is reached: another than the call began with
    /// if that was closed while we slept.
    pub fd: i32,
    want: Want,
    /// When SO_RCVTIMEO or SO_SNDTIMEO is over: unknown yet, never, or then.
    deadline: Option<Option<u64>>,
    /// Is the description non-blocking? As the kernel has it, what it was when the
    /// call first had to wait counts for all of the call.
    nonblocking: Option<bool>,
    slept: bool,
    /// Something has come while we were awake and the peer ran elsewhere.
    awaited: bool,
    /// Waits since something came of them.
    vain: u32,
}

/// Waits of one call that ended at once with nothing to show for it.
const VAIN: u32 = 4096;
/// Turns of the spinning stage at the most, where they pay: about 1.5 us.
const SPINS_MOST: u32 = 72;
/// A yield that brought the message this soon says that a little more spinning
/// would have done without it.
const NEAR_MISS_NS: u64 = 1_500;
/// The spinning stage of a reader that only reads: so many looks, so many turns
/// apart.
const LULLS: u32 = 4;
const LULL_TURNS: u32 = 90;
/// Bytes that are fetched ahead at the most.
const PREPARED: u32 = 16384;

impl Waiter {
    /// A call on `fd` that may have to wait.
    pub fn new(fd: i32, want: Want) -> Waiter {
        Waiter {
            fd,
            want,
            deadline: None,
            nonblocking: None,
            slept: false,
            awaited: false,
            vain: 0,
        }
    }

    /// Before a receiving call of a reader that only reads: see [`flow`].
    #[inline]
    pub fn gather(&self, s: &Stream) {
        if flow::is_on(s)
            && ready::rx_is_on_ring(s)
            && !ready::same_cpu(s)
            && !patience::is_crowded()
            && !settings::was_nonblocking(s, self.fd)
        {
            flow::lull(s);
        }
    }

    /// The call got `n` bytes, and had room for `room` more.
    #[inline]
    pub fn got(&mut self, s: &Stream, n: usize, room: usize) {
        let at_once = !self.slept && room > 0 && ready::rx_is_on_ring(s);
        flow::learn(
            s,
            n,
            at_once && s.local.answered.load(Ordering::Relaxed) == 0,
        );
        self.served(s);
        if startup::chaos() != 0 && tls::chance(startup::chaos()) {
            // In mid-stream, with whatever is unread.
            handback::hand_back(s);
        }
    }

    /// The call got what it waited for; learns from how.
    #[inline]
    pub fn served(&mut self, s: &Stream) {
        self.vain = 0;
        let was = s.local.awaited.load(Ordering::Relaxed);
        let awaited = u32::from(self.awaited || was == POLLED);
        if was != awaited {
            s.local.awaited.store(awaited, Ordering::Relaxed);
        }
        if self.want == Want::In {
            let sleeps = &s.slot.rx.sleeps;
            let n = sleeps.load(Ordering::Relaxed);
            if !self.slept {
                if n != 0 {
                    sleeps.store(0, Ordering::Relaxed);
                }
                if s.local.answered.load(Ordering::Relaxed) != 0 {
                    s.local.answered.store(0, Ordering::Relaxed);
                }
            } else {
                sleeps.store(n.saturating_add(1), Ordering::Relaxed);
            }
        }
    }

    /// Waits until it is worth looking again. `Err`: EAGAIN (non-blocking, or
    /// timed out), EINTR.
    pub fn wait(&mut self, s: &Stream, dontwait: bool, doing: &Doing) -> Result<(), i32> {
        if handback::is_due(s) && handback::serve(s) {
            return Ok(());
        }
        self.vain += 1;
        if self.vain > VAIN {
            return self.wait_in_vain(s, dontwait);
        }
        if !dontwait && !settings::was_nonblocking(s, self.fd) && self.spin(s) {
            return Ok(());
        }
        // Before it sleeps, or says EAGAIN, the kernel's word counts: another
        // process may have changed the flag.
        if dontwait || self.is_nonblocking(s) {
            return self.look_once(s);
        }
        self.sleep(s, doing)
    }

    fn is_nonblocking(&mut self, s: &Stream) -> bool {
        let fd = self.fd;
        let ask = || settings::is_nonblocking(s, fd);
        *self.nonblocking.get_or_insert_with(ask)
    }

    /// It was worth looking again and again, and nothing ever came: a peer that
    /// plays with its words must not make us run in a circle.
    #[cold]
    fn wait_in_vain(&mut self, s: &Stream, dontwait: bool) -> Result<(), i32> {
        if dontwait || self.is_nonblocking(s) {
            return Err(libc::EAGAIN);
        }
        self.vain = VAIN / 2;
        let before = signals::seen();
        if call_ppoll(&mut [entry(-1, 0)], Some(1_000_000)) < 0 && signals::interrupted(before) {
            return Err(libc::EINTR);
        }
        Ok(())
    }

    /// A blocking sender whose window is full: a short wait for the reader, who
    /// is probably at it. False if there is no point.
    pub fn wait_for_window(&self, s: &Stream) -> bool {
        if settings::was_nonblocking(s, self.fd) {
            return false;
        }
        let turns = if ready::same_cpu(s) { 0 } else { SPINS };
        patience::spin(turns, || ready::window_has_room(s))
            || patience::yield_until(None, || ready::window_has_room(s)).is_some()
    }

    /// A MSG_PEEK with MSG_WAITALL has seen some, and wants more. Rare, and no
    /// kernel wait tells of growth: looks again every millisecond. `Err` when
    /// there is nothing to wait for.
    pub fn wait_for_more(&mut self, s: &Stream, dontwait: bool) -> Result<(), i32> {
        if dontwait || settings::is_nonblocking(s, self.fd) || ending::has_ended(s, self.fd) {
            return Err(libc::EAGAIN);
        }
        let Some(timeout) = self.timeout() else {
            return Err(libc::EAGAIN);
        };
        let before = signals::seen();
        let nap = timeout.unwrap_or(u64::MAX).min(1_000_000);
        if call_ppoll(&mut [entry(-1, 0)], Some(nap)) < 0
            && (timeout.is_some() || signals::interrupted(before))
        {
            return Err(libc::EINTR);
        }
        Ok(())
    }

    /// A non-blocking call found nothing. The kernel's word is taken on whether
    /// TCP has ended, or has bytes that belong to the next epoch.
    fn look_once(&self, s: &Stream) -> Result<(), i32> {
        if self.want == Want::In && ending::poll_end(s, self.fd) {
            return Ok(());
        }
        if ready::now(s, self.want) {
            return Ok(());
        }
        if self.want == Want::Out {
            // Sleepers in sets that saw room have not armed for it.
            crate::readiness::epoll::watch(s);
        }
        Err(libc::EAGAIN)
    }

    /// Spins, then yields. True if something has come.
    fn spin(&mut self, s: &Stream) -> bool {
        if !ready::may_come_by_ring(s, self.want) {
            return false;
        }
        if !patience::pays(s.slot.rx.sleeps.load(Ordering::Relaxed)) {
            return ready::now(s, self.want);
        }
        let apart = !ready::same_cpu(s);
        if apart && self.poll_memory(s) {
            self.awaited = true;
            return true;
        }
        let after = patience::yield_until(None, || ready::now(s, self.want));
        learn(s, after.is_some_and(|ns| ns < NEAR_MISS_NS));
        self.awaited = apart && after.is_some();
        after.is_some()
    }

    /// The first stage: polls the line that the message will arrive in.
    fn poll_memory(&self, s: &Stream) -> bool {
        if self.want == Want::In && s.local.answered.load(Ordering::Relaxed) == 0 {
            // A reader at the writer's heels takes the line from it with every
            // message. Let some gather first.
            for _ in 0..LULLS {
                for _ in 0..LULL_TURNS {
                    spin_hint();
                }
                if ready::now(s, self.want) {
                    return true;
                }
            }
            return false;
        }
        if self.want == Want::In {
            prepare_answer(s);
        }
        let turns = s.local.spins.load(Ordering::Relaxed).max(SPINS);
        patience::spin(turns, || ready::now(s, self.want))
    }

    fn timeout(&mut self) -> Option<Option<u64>> {
        let (fd, want) = (self.fd, self.want);
        let limit = || settings::timeout(fd, want).map(|t| sys::now_ns().saturating_add(t));
        let deadline = *self.deadline.get_or_insert_with(limit);
        match deadline {
            None => Some(None),
            Some(at) => {
                let now = sys::now_ns();
                (at > now).then(|| Some(at - now))
            }
        }
    }

    /// Arms, looks again, sleeps.
    fn sleep(&mut self, s: &Stream, doing: &Doing) -> Result<(), i32> {
        let Some(timeout) = self.timeout() else {
            return Err(libc::EAGAIN);
        };
        self.slept = true;
        doing.now(Kind::Sleep, s.index);
        let r = self.sleep_marked(s, timeout, doing);
        doing.now(Kind::Use, s.index);
        self.fd = s.number(self.fd);
        r
    }

    fn sleep_marked(&self, s: &Stream, timeout: Option<u64>, doing: &Doing) -> Result<(), i32> {
        bell::arm(s, self.want);
        if ready::now(s, self.want) {
            bell::disarm(s, self.want);
            return Ok(());
        }
        let wake = doing.wake_fd();
        let mut p = [
            entry(
                if ending::tcp_is_mute(s) { -1 } else { self.fd },
                self.events(s),
            ),
            entry(
                if s.slot.has(flags::PEER_GONE) {
                    -1
                } else {
                    s.side()
                },
                libc::POLLIN,
            ),
            entry(wake, libc::POLLIN),
        ];
        let before = signals::seen();
        let n = call_ppoll(&mut p, nap(timeout, wake));
        bell::disarm(s, self.want);
        if p[2].revents != 0 {
            descriptors::drain_eventfd(wake);
        }
        if n < 0 {
            // The bell may have been rung for somebody else as well.
            threads::wake_sleepers(s.index);
            // With SO_RCVTIMEO or SO_SNDTIMEO there is no restart (signal(7)).
            return if timeout.is_some() || signals::interrupted(before) {
                Err(libc::EINTR)
            } else {
                Ok(())
            };
        }
        if p[1].revents != 0 {
            // One for each arming, as a rule: what is left wakes the next sleeper.
            bell::answer_side_with(s, p[1].revents, 1);
        }
        ending::note_tcp(s, p[0].revents);
        Ok(())
    }

    /// What TCP is asked for.
    fn events(&self, s: &Stream) -> i16 {
        if self.want == Want::Out {
            // Never POLLIN: unread input is no news to a sender.
            if handback::is_owing(s) {
                libc::POLLOUT
            } else {
                0
            }
        } else if ready::rx_is_on_ring(s) {
            libc::POLLRDHUP
        } else {
            libc::POLLIN | libc::POLLRDHUP
        }
    }
}

/// While the peer answers there is time to fetch the lines of our own next message,
/// which will be as long as the last one, perhaps. Of a long one the processor itself
/// sees what is coming.
pub fn prepare_answer(s: &Stream) {
    let len = s.local.answered.load(Ordering::Relaxed).min(PREPARED);
    if len < 64 {
        return;
    }
    if let Some(segment) = s.segment() {
        s.slot.tx.producer.will_write(&segment.ring(s.out()), len);
    }
}

/// A wait of the poll or epoll families has found that something came on the stream,
/// while it was awake.
pub fn has_come(s: &Stream) {
    if !ready::same_cpu(s) {
        s.local.awaited.store(POLLED, Ordering::Relaxed);
    }
}

/// Lengthens or shortens the spinning stage.
fn learn(s: &Stream, longer: bool) {
    let spins = &s.local.spins;
    let now = spins.load(Ordering::Relaxed).max(SPINS);
    let next = if longer {
        (now + 6).min(SPINS_MOST)
    } else {
        (now - now / 4).max(SPINS)
    };
    spins.store(next, Ordering::Relaxed);
}

fn entry(fd: i32, events: i16) -> pollfd {
    pollfd {
        fd,
        events,
        revents: 0,
    }
}

/// How long a sleep may last that other threads end through `wake`: where there
/// was no descriptor left for that, not long. Nor where another process shares an
/// end: the doorbell that it takes may have been meant for us. Nor while a stream
/// waits for TCP's room: not everybody listens for that.
pub fn nap(timeout: Option<u64>, wake: i32) -> Option<u64> {
    const NAP_NS: u64 = 10_000_000;
    const OWING_NAP_NS: u64 = 1_000_000;
    if handback::serve_all() {
        return Some(timeout.unwrap_or(OWING_NAP_NS).min(OWING_NAP_NS));
    }
    if (wake < 0 && !threads::single()) || crate::process::shares_wakes() {
        return Some(timeout.unwrap_or(NAP_NS).min(NAP_NS));
    }
    timeout
}

/// ppoll(2) through libc: a cancellation point, as recv and send are.
pub fn call_ppoll(p: &mut [pollfd], timeout_ns: Option<u64>) -> i32 {
    let ts = timeout_ns.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    });
    let t = ts.as_ref().map_or(core::ptr::null(), |t| t as *const _);
    let saved = errno::get();
    // SAFETY: the slice and the timespec live across the call.
    let n = unsafe { real::ppoll(p.as_mut_ptr(), p.len() as _, t, core::ptr::null()) };
    if n < 0 {
        errno::set(saved);
    }
    n
}
