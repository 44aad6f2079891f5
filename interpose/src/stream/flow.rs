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
const ON: i32 = 8;
/// How often the pause may be doubled.
const DOUBLINGS: i32 = 2;
/// The first pause, in turns of the spinning loop: about 5 us.
const TURNS: u32 = 200;
/// Who finds this much, in bytes, is not at the writer's heels: the processor has
/// fetched little ahead of it, in proportion.
const MOUTHFUL: usize = 8192;
/// The first pause was too short if it gathered at least this, in bytes (and not a
/// mouthful).
const PLENTY: usize = 1536;
/// A pause that gathered fewer messages was not worth it: perhaps the peer waits for
/// an answer that goes another way.
const FEW: u32 = 4;
/// Where the count starts then: receives before the next try.
const VAIN: i32 = -500;

fn count(s: &Stream) -> i32 {
    s.local.flow.load(Ordering::Relaxed) as i32
}

/// Is the reader at the writer's heels?
#[inline]
pub fn is_on(s: &Stream) -> bool {
    count(s) >= ON
}

/// Lets messages gather.
#[cold]
pub fn lull(s: &Stream) {
    let doublings = (count(s) - ON).clamp(0, DOUBLINGS);
    for _ in 0..TURNS << doublings {
        spin_hint();
    }
}

/// A receive found `n` bytes. `flows`: without sleeping, with room to spare, and
/// the reader has not answered.
#[inline]
pub fn learn(s: &Stream, n: usize, flows: bool) {
    let was = count(s);
    let plenty = PLENTY << (was - ON).clamp(0, DOUBLINGS);
    let now = if was >= ON && (!flows || s.local.records.load(Ordering::Relaxed) < FEW) {
        VAIN
    } else if !flows {
        was.min(0)
    } else if n < MOUTHFUL && (was < ON || n >= plenty) {
        (was + 1).min(ON + DOUBLINGS)
    } else {
        was
    };
    if now != was {
        s.local.flow.store(now as u32, Ordering::Relaxed);
    }
}
