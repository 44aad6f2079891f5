//! From the times of runs to a table.

use std::fmt::Write;
use std::time::Duration;

/// What the runs of one size come to, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The mean without the highest and the lowest run.
    pub mean: f64,
    /// The lowest run.
    pub lowest: f64,
    /// The highest run.
    pub highest: f64,
}

impl Summary {
    /// From the duration of each run. Fewer than three runs are all kept.
    pub fn of(runs: &[Duration], rounds: u32) -> Option<Self> {
        let latency = |t: &Duration| t.as_secs_f64() * 1e6 / (2.0 * f64::from(rounds));
        let mut all: Vec<f64> = runs.iter().map(latency).collect();
        all.sort_by(f64::total_cmp);
        let (&lowest, &highest) = (all.first()?, all.last()?);
        let kept = match all.len() {
            0..=2 => &all[..],
            n => &all[1..n - 1],
        };
        let mean = kept.iter().sum::<f64>() / kept.len() as f64;
        Some(Self {
            mean,
            lowest,
            highest,
        })
    }
}

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Bytes of payload.
    pub size: u32,
    /// The latency.
    pub latency: Summary,
}

/// How to print the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Table,
    /// For programs.
    Csv,
}

impl Format {
    /// The line or lines above the rows.
    pub fn head(self) -> String {
        match self {
            Self::Table => format!(
                "{:>8} {:>12} {:>12} {:>12}",
                "bytes", "latency/µs", "lowest", "highest"
            ),
            Self::Csv => "bytes,latency_us,lowest_us,highest_us".into(),
        }
    }

    /// One row.
    pub fn row(self, row: &Row) -> String {
        let Summary {
            mean,
            lowest,
            highest,
        } = row.latency;
        let mut line = String::new();
        let size = row.size;
        let _ = match self {
            Self::Table => write!(
                line,
                "{size:>8} {mean:>12.2} {lowest:>12.2} {highest:>12.2}"
            ),
            Self::Csv => write!(line, "{size},{mean:.3},{lowest:.3},{highest:.3}"),
        };
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_and_lowest_are_dropped() {
        let runs: Vec<_> = [90, 2, 4, 6, 1].map(Duration::from_micros).into();
        let summary = Summary::of(&runs, 1).unwrap();
        let (lowest, highest) = (0.5, 45.0);
        assert!((summary.mean - 2.0).abs() < 1e-9);
        assert_eq!((summary.lowest, summary.highest), (lowest, highest));
    }

    #[test]
    fn few_runs_are_all_kept() {
        let runs = [Duration::from_micros(2), Duration::from_micros(4)];
        assert!((Summary::of(&runs, 1).unwrap().mean - 1.5).abs() < 1e-9);
        assert_eq!(Summary::of(&[], 1), None);
    }
}
