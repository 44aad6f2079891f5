//! Numbers as people say them: three digits and a unit.

use crate::catalog::{Goal, Unit};

pub fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Rate if value >= 1e6 => format!("{} M/s", digits(value / 1e6)),
        Unit::Rate if value >= 1e3 => format!("{} k/s", digits(value / 1e3)),
        Unit::Rate => format!("{} /s", digits(value)),
        Unit::Megabits if value >= 1e3 => format!("{} Gb/s", digits(value / 1e3)),
        Unit::Megabits => format!("{} Mb/s", digits(value)),
        Unit::Micros => format!("{} us", digits(value)),
        Unit::Nanos => format!("{value:.1} ns"),
        Unit::Count => format!("{value:.0}"),
    }
}

/// Three significant digits, without an exponent.
pub fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

pub fn goal(goal: Goal, unit: Unit) -> String {
    match goal {
        Goal::Times(times) => format!(">= {} x", digits(times)),
        Goal::AtMost(limit) => format!("<= {}", value(limit, unit)),
        Goal::Above(limit) => format!("<= +{}", value(limit, unit)),
        Goal::None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        assert_eq!(value(106_000.0, Unit::Rate), "106 k/s");
        assert_eq!(value(1_810_000.0, Unit::Rate), "1.81 M/s");
        assert_eq!(value(54_321.0, Unit::Megabits), "54.3 Gb/s");
        assert_eq!(value(0.437, Unit::Micros), "0.44 us");
        assert_eq!(goal(Goal::Times(3.5), Unit::Rate), ">= 3.50 x");
        assert_eq!(goal(Goal::Above(5.0), Unit::Nanos), "<= +5.0 ns");
    }
}
