//! What accelerated processes say about themselves, so that a silent fallback cannot pass for a result.
//!
//! With `SIDEWIRE_STATS_FILE` in its environment each accelerated process appends one line of JSON when it ends.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// One process, or the sum over several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// How many processes reported; not part of a line.
    #[serde(skip_deserializing)]
    pub processes: u64,
    pub streams: u64,
    pub fast: u64,
    pub shm_in: u64,
    pub shm_out: u64,
    pub tcp_in: u64,
    pub tcp_out: u64,
    pub reasons: BTreeMap<String, u64>,
}

impl Stats {
    /// Sum the lines of a file; no file is no process. A line cut short by a kill is skipped.
    pub fn read(path: &Path) -> Stats {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut sum = Stats::default();
        for line in text.lines() {
            if let Ok(one) = serde_json::from_str::<Stats>(line) {
                sum.add(&Stats {
                    processes: 1,
                    ..one
                });
            }
        }
        sum
    }

    pub fn add(&mut self, other: &Stats) {
        self.processes += other.processes;
        self.streams += other.streams;
        self.fast += other.fast;
        self.shm_in += other.shm_in;
        self.shm_out += other.shm_out;
        self.tcp_in += other.tcp_in;
        self.tcp_out += other.tcp_out;
        for (reason, count) in &other.reasons {
            *self.reasons.entry(reason.clone()).or_default() += count;
        }
    }

    /// The share of all bytes that left TCP, from 0 to 1.
    pub fn share(&self) -> f64 {
        let wire = (self.shm_in + self.shm_out) as f64;
        let all = wire + (self.tcp_in + self.tcp_out) as f64;
        if all == 0.0 {
            0.0
        } else {
            wire / all
        }
    }

    /// One short phrase for the table.
    pub fn verdict(&self) -> String {
        if self.processes == 0 {
            return "no statistics: library not loaded?".into();
        }
        if self.fast == 0 {
            let commonest = self.reasons.iter().max_by_key(|(_, count)| **count);
            return format!(
                "not accelerated: {}",
                commonest.map_or("no reason given", |(reason, _)| reason)
            );
        }
        format!("{} of bytes", percent(self.share()))
    }
}

/// Never round up to "100 %": that would hide a remainder on TCP.
fn percent(share: f64) -> String {
    match share * 100.0 {
        all if all >= 100.0 => "100 %".into(),
        most if most > 99.9 => "99.9 %".into(),
        some => format!("{:.1} %", some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn sums_the_processes_of_a_run() {
        let dir = Scratch::new().unwrap();
        let path = dir.path().join("stats");
        let line = r#"{"pid":7,"streams":2,"fast":1,"shm_in":900,"shm_out":90,"tcp_in":5,"tcp_out":5,"reasons":{"cold":1}}"#;
        std::fs::write(&path, format!("{line}\n{line}\n{{\"pid\":8,\"str")).unwrap();
        let sum = Stats::read(&path);
        assert_eq!(
            (sum.processes, sum.streams, sum.fast, sum.shm_in),
            (2, 4, 2, 1800)
        );
        assert_eq!(sum.reasons["cold"], 2);
        assert_eq!(sum.verdict(), "99.0 % of bytes");
    }

    #[test]
    fn fallbacks_are_named() {
        assert_eq!(
            Stats::default().verdict(),
            "no statistics: library not loaded?"
        );
        let mut cold = Stats {
            processes: 1,
            streams: 1,
            ..Stats::default()
        };
        cold.reasons.insert("peer does not run Sidewire".into(), 1);
        assert_eq!(
            cold.verdict(),
            "not accelerated: peer does not run Sidewire"
        );
    }
}
