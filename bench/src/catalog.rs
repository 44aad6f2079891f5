//! The rows of the comparison: what is run, where, what is read off, and what Sidewire has to reach.
//!
//! One [`Work`] is one experiment; it may give several rows, one for each [`Metric`]. Plain TCP is measured at
//! each placement in `plain`, and the best of them is the baseline: we don't compare with plain TCP at its worst.

use crate::experiment::{Experiment, Placement};
use crate::machine;
use crate::micro::{busy::Beside, hookcost::HookCost, idle::Idle, ping::PingPong};
use crate::tools::{
    netperf::{Length, Netperf},
    nptcp::Nptcp,
    redis::RedisGet,
};
use Placement::{Free, OneCore, TwoCores};

pub struct Work {
    pub key: &'static str,
    pub experiment: Box<dyn Experiment>,
    pub plain: Vec<Placement>,
    /// The first is the one that is judged; the others are shown in the details.
    pub sidewire: Vec<Placement>,
    pub metrics: Vec<Metric>,
    /// Runs for each that others have: a ratio near 1 wants many, where single runs
    /// differ by a third.
    pub rounds: u32,
    /// Must the bytes be on the faster wire? Not for work that is meant to stay plain.
    pub fast: bool,
}

pub struct Metric {
    pub title: &'static str,
    /// Which of the experiment's values.
    pub value: &'static str,
    pub unit: Unit,
    pub goal: Goal,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Unit {
    /// Transactions per second.
    Rate,
    /// Megabits per second.
    Megabits,
    Micros,
    Nanos,
    Count,
}

impl Unit {
    pub fn more_is_better(self) -> bool {
        matches!(self, Unit::Rate | Unit::Megabits)
    }
}

/// What Sidewire has to reach.
#[derive(Clone, Copy, PartialEq)]
pub enum Goal {
    /// So many times better than plain.
    Times(f64),
    /// An absolute value, not to be exceeded.
    AtMost(f64),
    /// So much above plain at most, in the metric's unit.
    Above(f64),
    /// Shown for information.
    None,
}

impl Work {
    fn new(key: &'static str, experiment: impl Experiment + 'static, metrics: Vec<Metric>) -> Work {
        let (plain, sidewire) = (vec![OneCore, Free], vec![TwoCores, Free]);
        Work {
            key,
            experiment: Box::new(experiment),
            plain,
            sidewire,
            metrics,
            rounds: 1,
            fast: true,
        }
    }

    fn at(mut self, plain: &[Placement], sidewire: &[Placement]) -> Work {
        (self.plain, self.sidewire) = (plain.to_vec(), sidewire.to_vec());
        self
    }

    fn rounds(mut self, rounds: u32) -> Work {
        self.rounds = rounds;
        self
    }

    fn stays_plain(mut self) -> Work {
        self.fast = false;
        self
    }
}

fn metric(title: &'static str, value: &'static str, unit: Unit, goal: Goal) -> Metric {
    Metric {
        title,
        value,
        unit,
        goal,
    }
}

fn netperf(test: &'static str, options: &'static [&'static str]) -> Netperf {
    Netperf {
        test,
        options,
        pairs: 1,
        length: Length::Seconds,
    }
}

/// All rows, in the order of the table.
pub fn all() -> Vec<Work> {
    let mut rows = latency();
    rows.extend(streams());
    rows.extend(many());
    rows.extend(at_rest());
    rows
}

fn latency() -> Vec<Work> {
    let one_byte = || netperf("TCP_RR", &["-r", "1,1"]);
    vec![
        Work::new(
            "netperf-rr-1",
            one_byte(),
            vec![
                metric(
                    "netperf TCP_RR 1 B, two cores",
                    "rate",
                    Unit::Rate,
                    Goal::Times(8.0),
                ),
                metric(
                    "  its mean round trip",
                    "rtt_us",
                    Unit::Micros,
                    Goal::AtMost(1.0),
                ),
            ],
        ),
        Work::new(
            "netperf-rr-1-onecore",
            one_byte(),
            vec![metric(
                "netperf TCP_RR 1 B, both ends on one core",
                "rate",
                Unit::Rate,
                Goal::Times(2.0),
            )],
        )
        .at(&[OneCore], &[OneCore]),
        Work::new(
            "netperf-rr-4096",
            netperf("TCP_RR", &["-r", "4096,4096"]),
            vec![metric(
                "netperf TCP_RR 4 KiB",
                "rate",
                Unit::Rate,
                Goal::Times(4.0),
            )],
        ),
        Work::new(
            "ping-1",
            PingPong {
                size: 1,
                pause_us: 0,
                warm: 1000,
            },
            vec![
                metric(
                    "ping-pong 1 B, round trip p50",
                    "p50_us",
                    Unit::Micros,
                    Goal::AtMost(1.0),
                ),
                metric("  its p99", "p99_us", Unit::Micros, Goal::None),
            ],
        )
        .at(&[OneCore], &[TwoCores]),
        Work::new(
            "nptcp-8",
            Nptcp { bytes: 8 },
            vec![metric(
                "NPtcp 8 B, half round trip",
                "half_us",
                Unit::Micros,
                Goal::AtMost(0.45),
            )],
        )
        .at(&[OneCore], &[TwoCores]),
    ]
}

fn streams() -> Vec<Work> {
    let stream = |key, title, options, goal| {
        let metrics = vec![metric(title, "rate", Unit::Megabits, goal)];
        let both = [TwoCores, Free];
        Work::new(key, netperf("TCP_STREAM", options), metrics).at(&both, &both)
    };
    let mut rows = vec![
        stream(
            "netperf-stream-64",
            "netperf TCP_STREAM -m 64",
            &["-m", "64"],
            Goal::Times(5.0),
        ),
        stream(
            "netperf-stream-1024",
            "netperf TCP_STREAM -m 1024",
            &["-m", "1024"],
            Goal::Times(3.5),
        ),
        stream(
            "netperf-stream-65536-cubic",
            "netperf TCP_STREAM -m 65536, cubic",
            &["-m", "65536", "-K", "cubic,cubic"],
            Goal::Times(1.7),
        ),
    ];
    if machine::has_congestion_control("bbr") {
        rows.push(stream(
            "netperf-stream-65536-bbr",
            "netperf TCP_STREAM -m 65536, bbr",
            &["-m", "65536", "-K", "bbr,bbr"],
            Goal::None,
        ));
    }
    rows
}

fn many() -> Vec<Work> {
    let pairs = |key, pairs, rate, slowest, times| {
        let metrics = vec![
            metric(rate, "rate", Unit::Rate, Goal::Times(times)),
            metric(slowest, "slowest", Unit::Rate, Goal::Times(1.0)),
        ];
        let experiment = Netperf {
            test: "TCP_RR",
            options: &["-r", "1,1"],
            pairs,
            length: Length::Seconds,
        };
        Work::new(key, experiment, metrics).at(&[Free], &[Free])
    };
    let redis = |key, title, clients, requests_per_second| {
        let experiment = RedisGet {
            clients,
            requests_per_second,
        };
        let metrics = vec![metric(title, "rate", Unit::Rate, Goal::Times(2.0))];
        Work::new(key, experiment, metrics).at(&[OneCore, Free], &[Free, TwoCores])
    };
    vec![
        Work::new(
            "netperf-crr",
            Netperf {
                length: Length::Transactions(10_000),
                ..netperf("TCP_CRR", &["-r", "1,1"])
            },
            vec![metric(
                "netperf TCP_CRR, both ends on one core",
                "rate",
                Unit::Rate,
                Goal::Times(0.97),
            )],
        )
        .at(&[OneCore], &[OneCore])
        .rounds(6)
        .stays_plain(),
        pairs(
            "netperf-rr-4pairs",
            4,
            "4 TCP_RR pairs at once",
            "  the slowest of them",
            2.0,
        ),
        pairs(
            "netperf-rr-8pairs",
            8,
            "8 TCP_RR pairs at once",
            "  the slowest of them",
            1.6,
        ),
        Work::new(
            "netperf-rr-1-busy",
            Beside(netperf("TCP_RR", &["-r", "1,1"])),
            vec![metric(
                "TCP_RR beside a computing program a core",
                "rate",
                Unit::Rate,
                Goal::None,
            )],
        )
        .at(&[TwoCores], &[TwoCores]),
        redis("redis-get-1", "redis-benchmark GET -c 1", 1, 30_000),
        redis("redis-get-50", "redis-benchmark GET -c 50", 50, 60_000),
    ]
}

fn at_rest() -> Vec<Work> {
    vec![
        Work::new(
            "hookcost",
            HookCost { settled: true },
            vec![
                metric(
                    "read on a pipe, above the system call",
                    "read",
                    Unit::Nanos,
                    Goal::Above(5.0),
                ),
                metric(
                    "send on a plain stream, the same",
                    "send",
                    Unit::Nanos,
                    Goal::Above(10.0),
                ),
                metric(
                    "recv on a plain stream, the same",
                    "recv",
                    Unit::Nanos,
                    Goal::Above(10.0),
                ),
            ],
        )
        .at(&[OneCore], &[OneCore])
        .stays_plain(),
        Work::new(
            "hookcost-unsettled",
            HookCost { settled: false },
            vec![
                metric(
                    "send, while the peer may answer",
                    "send",
                    Unit::Nanos,
                    Goal::None,
                ),
                metric("recv, the same", "recv", Unit::Nanos, Goal::None),
            ],
        )
        .at(&[OneCore], &[OneCore])
        .stays_plain(),
        Work::new(
            "sporadic",
            PingPong {
                size: 32,
                pause_us: 1000,
                warm: 0,
            },
            vec![
                metric(
                    "a message per ms, round trip p50",
                    "p50_us",
                    Unit::Micros,
                    Goal::Times(1.0 / 1.1),
                ),
                metric(
                    "  CPU time per message, both ends",
                    "cpu_us",
                    Unit::Micros,
                    Goal::Times(1.0 / 1.1),
                ),
            ],
        )
        .at(&[TwoCores], &[TwoCores])
        .stays_plain(),
        Work::new(
            "idle",
            Idle {
                streams: 100,
                seconds_quick: 2,
                seconds_full: 10,
            },
            vec![
                metric(
                    "100 idle streams, CPU time in all",
                    "cpu_us",
                    Unit::Micros,
                    Goal::Above(1000.0),
                ),
                metric(
                    "  how often they woke up",
                    "sleeps",
                    Unit::Count,
                    Goal::Above(4.0),
                ),
            ],
        )
        .at(&[Free], &[Free]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_every_row_has_both_sides() {
        let rows = all();
        let mut keys: Vec<_> = rows.iter().map(|work| work.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), rows.len());
        assert!(rows
            .iter()
            .all(|work| !work.plain.is_empty() && !work.sidewire.is_empty()));
    }
}
