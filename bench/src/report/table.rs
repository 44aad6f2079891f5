//! The table that a person reads in ten seconds, and what stands below it.

use super::format;
use super::judge::{row, Row};
use crate::catalog::{Goal, Metric};
use crate::compare::{Cell, Outcome};
use crate::machine::Machine;
use crate::side::{Accelerator, Side};
use comfy_table::{
    presets, CellAlignment, ColumnConstraint, ContentArrangement, Table, TableComponent, Width,
};
use std::fmt::Write;

/// One line for each metric: work, plain, Sidewire, ratio, goal, and whether it really went by the faster wire.
pub fn table(outcomes: &[Outcome], accelerator: &Accelerator) -> String {
    let mut table = empty(
        &[
            "work",
            "plain",
            "Sidewire",
            "ratio",
            "goal",
            "",
            "by the fast wire",
        ],
        1..=3,
        36,
    );
    for outcome in outcomes {
        for (index, metric) in outcome.work.metrics.iter().enumerate() {
            if let Some((program, _)) = outcome.missing {
                table.add_row([metric.title, "not installed:", program]);
                break;
            }
            let row = row(outcome, index);
            let side = |side: &Option<super::judge::Side>| match side {
                Some(side) => format::value(side.summary.median, metric.unit),
                None => "failed".into(),
            };
            table.add_row([
                metric.title.to_owned(),
                side(&row.plain),
                side(&row.sidewire),
                gain(metric, &row),
                format::goal(metric.goal, metric.unit),
                verdict(&row, accelerator).to_owned(),
                if index == 0 {
                    wire(outcome, accelerator)
                } else {
                    String::new()
                },
            ]);
        }
    }
    table.to_string()
}

fn gain(metric: &Metric, row: &Row) -> String {
    match (metric.goal, row.ratio, &row.plain, &row.sidewire) {
        (Goal::Above(_), _, Some(plain), Some(ours)) => {
            let more = ours.summary.median - plain.summary.median;
            format!(
                "{}{}",
                if more < 0.0 { "" } else { "+" },
                format::value(more, metric.unit)
            )
        }
        (_, Some(ratio), ..) => format!("{} x", format::digits(ratio)),
        _ => String::new(),
    }
}

fn verdict(row: &Row, accelerator: &Accelerator) -> &'static str {
    match (accelerator, row.met) {
        (Accelerator::Missing, _) | (_, None) => "",
        (_, Some(true)) => "met",
        (_, Some(false)) => "MISSED",
    }
}

/// The judged runs' own account of the bytes that they moved.
fn wire(outcome: &Outcome, accelerator: &Accelerator) -> String {
    let Some(cell) = outcome.judged() else {
        return String::new();
    };
    match accelerator {
        Accelerator::Missing => "no Sidewire".into(),
        _ if cell.runs.is_empty() => String::new(),
        _ if !outcome.work.fast && cell.stats.processes > 0 && cell.stats.fast == 0 => {
            "stays plain, as meant".into()
        }
        _ => cell.stats.verdict(),
    }
}

/// Median and spread of every cell.
pub fn details(outcomes: &[Outcome]) -> String {
    let mut table = empty(
        &["work", "side", "placement", "median", "min", "max", "runs"],
        3..=6,
        8,
    );
    for outcome in outcomes {
        for metric in &outcome.work.metrics {
            for cell in &outcome.cells {
                let Some(summary) = cell.summary(metric.value) else {
                    continue;
                };
                let show = |value| format::value(value, metric.unit);
                table.add_row([
                    format!("{}: {}", outcome.work.key, metric.value),
                    side_name(cell).to_owned(),
                    cell.placement.name().to_owned(),
                    show(summary.median),
                    show(summary.min),
                    show(summary.max),
                    summary.runs.to_string(),
                ]);
            }
        }
    }
    table.to_string()
}

fn side_name(cell: &Cell) -> &'static str {
    match cell.side {
        Side::Plain => "plain",
        Side::Sidewire => "Sidewire",
    }
}

/// Everything that a reader must not miss: failures, missing programs, a busy machine.
pub fn remarks(outcomes: &[Outcome], before: &Machine) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        if let Some((program, package)) = outcome.missing {
            let key = outcome.work.key;
            let _ = writeln!(
                text,
                "{key}: {program} is not installed; get it with: apt-get install {package}"
            );
        }
        for cell in &outcome.cells {
            for failure in &cell.failures {
                let (key, side, placement) =
                    (outcome.work.key, side_name(cell), cell.placement.name());
                let _ = writeln!(text, "{key}, {side}, {placement}: {failure}");
            }
        }
    }
    if before.busy() {
        let _ = writeln!(
            text,
            "The machine was busy (load {:.2}) when this began: repeat it on a quiet one.",
            before.load
        );
    }
    text
}

/// A table with some columns set to the right, and the last one wrapped at `width`.
pub fn empty(columns: &[&str], right: std::ops::RangeInclusive<usize>, width: u16) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_HORIZONTAL_ONLY)
        .remove_style(TableComponent::HorizontalLines)
        .remove_style(TableComponent::MiddleIntersections)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(300)
        .set_header(columns);
    for index in right {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    if let Some(last) = table.column_mut(columns.len() - 1) {
        last.set_constraint(ColumnConstraint::UpperBoundary(Width::Fixed(width)));
    }
    table
}
