//! `sidewire ps --json`: an array of objects, one for each end of a stream.

use super::{Found, Row};
use crate::view::stream::Traffic;
use serde::Serialize;

#[derive(Serialize)]
struct Direction {
    state: &'static str,
    shm_bytes: u64,
    tcp_bytes: u64,
    messages: u64,
}

#[derive(Serialize)]
struct Object<'a> {
    /// `null` if no live process holds the end.
    pid: Option<u32>,
    program: &'a str,
    /// `null` while they are not known.
    local: Option<String>,
    remote: Option<String>,
    wire: &'static str,
    out: Direction,
    #[serde(rename = "in")]
    inward: Direction,
    /// On TCP for good: `messages` are those until that was clear.
    settled: bool,
    /// Why it is not Fast; `null` if it is.
    reason: Option<&'static str>,
    /// Seconds since it was opened.
    age: f64,
    arena: u64,
    slot: u32,
}

fn direction(t: &Traffic) -> Direction {
    Direction {
        state: t.state.text(),
        shm_bytes: t.wire_bytes,
        tcp_bytes: t.tcp_bytes,
        messages: t.messages,
    }
}

fn object(row: &Row, now: u64) -> Object<'_> {
    let s = &row.stream;
    Object {
        pid: (row.pid != 0).then_some(row.pid),
        program: &row.program,
        local: s.local.map(|a| a.to_string()),
        remote: s.remote.map(|a| a.to_string()),
        wire: s.wire(),
        out: direction(&s.out),
        inward: direction(&s.inward),
        settled: s.settled,
        reason: s.reason_text(),
        age: now.saturating_sub(s.opened) as f64 / 1e9,
        arena: row.arena,
        slot: s.slot,
    }
}

/// The whole text.
pub fn array(found: &Found) -> String {
    let now = rdma_engine::sys::now_ns();
    let objects: Vec<_> = found.rows.iter().map(|r| object(r, now)).collect();
    let mut text = serde_json::to_string_pretty(&objects).unwrap_or_else(|_| "[]".to_owned());
    text.push('\n');
    text
}
