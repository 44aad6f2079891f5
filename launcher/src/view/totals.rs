//! What a program family's streams add up to.

use super::View;
use rdma_engine::abi::arena::REASONS;
use rdma_engine::abi::reason::Reason;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sums over the ended streams and those that are still in their slots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub streams: u64,
    /// How many of them were ever Fast.
    pub fast: u64,
    pub shm_in: u64,
    pub shm_out: u64,
    pub tcp_in: u64,
    pub tcp_out: u64,
    /// Streams that were never Fast, by reason.
    pub reasons: BTreeMap<&'static str, u64>,
    /// How many of the streams are held by a live process still.
    #[serde(skip)]
    pub open: u64,
}

impl Totals {
    /// Adds up what an arena holds now. A stream whose process died without
    /// closing it is still in its slot; so is that of a process which lives on.
    pub fn of(view: &View) -> Totals {
        let mut t = Totals::default();
        t.add_ended(view);
        for stream in view.streams() {
            for (sum, n) in [
                (&mut t.streams, 1),
                (&mut t.fast, u64::from(stream.was_fast)),
                (&mut t.shm_in, stream.inward.wire_bytes),
                (&mut t.shm_out, stream.out.wire_bytes),
                (&mut t.tcp_in, stream.inward.tcp_bytes),
                (&mut t.tcp_out, stream.out.tcp_bytes),
            ] {
                *sum = sum.saturating_add(n);
            }
            if !stream.was_fast {
                let reason = stream.reason().unwrap_or(Reason::None);
                *t.reasons.entry(text_of(reason)).or_default() += 1;
            }
            let alive = |pid: &u32| rdma_engine::sys::alive(*pid);
            t.open += u64::from(stream.holders.iter().any(alive));
        }
        t
    }

    fn add_ended(&mut self, view: &View) {
        let Some(h) = view.header() else { return };
        let get = |w: &AtomicU64| w.load(Ordering::Relaxed);
        self.streams = get(&h.streams);
        self.fast = get(&h.fast);
        self.shm_in = get(&h.wire_in);
        self.shm_out = get(&h.wire_out);
        self.tcp_in = get(&h.tcp_in);
        self.tcp_out = get(&h.tcp_out);
        for (code, count) in h.reasons.iter().enumerate() {
            let count = u64::from(count.load(Ordering::Relaxed));
            if count > 0 {
                let reason = match code {
                    last if last == REASONS - 1 => Reason::Unknown,
                    code => Reason::from_code(code as u32),
                };
                *self.reasons.entry(text_of(reason)).or_default() += count;
            }
        }
    }
}

/// [`Reason::None`] of a stream that never was Fast: it was about to be.
fn text_of(reason: Reason) -> &'static str {
    match reason {
        Reason::None => "ended before it could become fast",
        other => other.text(),
    }
}
