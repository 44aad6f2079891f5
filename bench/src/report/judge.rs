//! From two cells to one row: ratio, and whether the goal is met.

use crate::catalog::{Goal, Metric};
use crate::compare::Outcome;
use crate::experiment::Placement;
use crate::summary::Summary;
use serde::Serialize;

/// One row of the comparison.
#[derive(Serialize)]
pub struct Row {
    pub key: &'static str,
    pub title: &'static str,
    pub plain: Option<Side>,
    pub sidewire: Option<Side>,
    /// How many times better Sidewire is; above 1 is better whatever the unit.
    pub ratio: Option<f64>,
    pub met: Option<bool>,
}

#[derive(Serialize)]
pub struct Side {
    pub placement: Placement,
    pub summary: Summary,
}

pub fn row(outcome: &Outcome, index: usize) -> Row {
    let metric = &outcome.work.metrics[index];
    let side = |cell: Option<&crate::compare::Cell>| {
        cell.and_then(|cell| {
            Some(Side {
                placement: cell.placement,
                summary: cell.summary(metric.value)?,
            })
        })
    };
    let (plain, sidewire) = (side(outcome.best_plain(index)), side(outcome.judged()));
    let medians = plain
        .as_ref()
        .zip(sidewire.as_ref())
        .map(|(a, b)| (a.summary.median, b.summary.median));
    Row {
        key: outcome.work.key,
        title: metric.title,
        ratio: medians.and_then(|(plain, ours)| ratio(metric, plain, ours)),
        met: medians
            .and_then(|(plain, ours)| met(metric, plain, ours))
            .map(|met| met && really_fast(outcome)),
        plain,
        sidewire,
    }
}

/// A number that was reached on plain TCP says nothing about us.
fn really_fast(outcome: &Outcome) -> bool {
    !outcome.work.fast || outcome.judged().is_some_and(|cell| cell.stats.fast > 0)
}

fn ratio(metric: &Metric, plain: f64, ours: f64) -> Option<f64> {
    let (above, below) = if metric.unit.more_is_better() {
        (ours, plain)
    } else {
        (plain, ours)
    };
    (below > 0.0 && above > 0.0 && !matches!(metric.goal, Goal::Above(_))).then(|| above / below)
}

fn met(metric: &Metric, plain: f64, ours: f64) -> Option<bool> {
    match metric.goal {
        Goal::Times(times) => Some(ratio(metric, plain, ours)? >= times),
        Goal::AtMost(limit) => Some(ours <= limit),
        Goal::Above(limit) => Some(ours - plain <= limit),
        Goal::None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Unit;

    fn metric(unit: Unit, goal: Goal) -> Metric {
        Metric {
            title: "",
            value: "",
            unit,
            goal,
        }
    }

    #[test]
    fn better_is_above_one_whatever_the_unit() {
        let rate = metric(Unit::Rate, Goal::Times(8.0));
        assert_eq!(
            (ratio(&rate, 100.0, 900.0), met(&rate, 100.0, 900.0)),
            (Some(9.0), Some(true))
        );
        let time = metric(Unit::Micros, Goal::Times(1.0 / 1.1));
        assert_eq!(
            (ratio(&time, 10.0, 5.0), met(&time, 10.0, 10.9)),
            (Some(2.0), Some(true))
        );
        assert_eq!(met(&time, 10.0, 11.1), Some(false));
    }

    #[test]
    fn other_goals() {
        assert_eq!(
            met(&metric(Unit::Micros, Goal::AtMost(1.0)), 9.0, 1.1),
            Some(false)
        );
        let above = metric(Unit::Nanos, Goal::Above(5.0));
        assert_eq!(
            (met(&above, 1.0, 5.9), ratio(&above, 1.0, 5.9)),
            (Some(true), None)
        );
        assert_eq!(met(&metric(Unit::Rate, Goal::None), 1.0, 2.0), None);
    }
}
