//! A reader at a writer's heels.
//!
//! Small messages that follow each other closely lie in neighbouring lines, and
//! the reader's processor fetches ahead: who reads each message the moment it
//! stands there takes the lines from the writer that it is about to fill, and the
//! writer pays a cache miss for each. A reader that has only read for a while, and
//! found a few bytes at once each time, therefore lets some gather first. That
//! delays nothing that mattered: messages came faster than it could read them.

use crate::streams::Stream;
use core::sync::atomic::Ordering;
use rdma_engine::sync::spin_hint;

/// Receives in a row that found less than [`MOUTHFUL`] at once, before the reader
/// pauses.
const ON: u32 = 8;
/// How often the pause may be doubled.
const DOUBLINGS: u32 = 2;
/// The first pause, in turns of the spinning loop: about 5 us.
const TURNS: u32 = 200;
/// Who finds this much, in bytes, is not at the writer's heels: the processor has
/// fetched little ahead of it, in proportion.
const MOUTHFUL: usize = 8192;
/// The first pause was too short if it gathered at least this, in bytes (and not a
/// mouthful), and not worth it if it gathered less than a third.
const PLENTY: usize = 1536;

/// Is the reader at the writer's heels?
#[inline]
pub fn is_on(s: &Stream) -> bool {
    s.local.flow.load(Ordering::Relaxed) >= ON
}

/// Lets messages gather.
#[cold]
pub fn lull(s: &Stream) {
    let doublings = s.local.flow.load(Ordering::Relaxed).saturating_sub(ON);
    for _ in 0..TURNS << doublings.min(DOUBLINGS) {
        spin_hint();
    }
}

/// A receive found `n` bytes. `flows`: without sleeping, with room to spare, and
/// the reader has not answered.
#[inline]
pub fn learn(s: &Stream, n: usize, flows: bool) {
    let was = s.local.flow.load(Ordering::Relaxed);
    let plenty = PLENTY << was.saturating_sub(ON).min(DOUBLINGS);
    let now = if !flows || (was >= ON && n < plenty / 3) {
        0
    } else if n < MOUTHFUL && (was < ON || n >= plenty) {
        (was + 1).min(ON + DOUBLINGS)
    } else {
        was
    };
    if now != was {
        s.local.flow.store(now, Ordering::Relaxed);
    }
}
