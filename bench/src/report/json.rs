//! The whole comparison as JSON: the rows as judged, and each single run behind them.

use super::judge::{row, Row};
use crate::compare::{Cell, Method, Outcome};
use crate::machine::Machine;
use crate::side::Accelerator;
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    machine: &'a Machine,
    sidewire: String,
    method: &'a Method,
    rows: Vec<Row>,
    raw: Vec<Raw<'a>>,
}

#[derive(Serialize)]
struct Raw<'a> {
    key: &'a str,
    not_installed: Option<&'a str>,
    cells: &'a [Cell],
}

pub fn json(
    outcomes: &[Outcome],
    machine: &Machine,
    accelerator: &Accelerator,
    method: &Method,
) -> String {
    let rows = outcomes
        .iter()
        .flat_map(|outcome| (0..outcome.work.metrics.len()).map(move |index| row(outcome, index)));
    let raw = outcomes.iter().map(|outcome| Raw {
        key: outcome.work.key,
        not_installed: outcome.missing.map(|(program, _)| program),
        cells: &outcome.cells,
    });
    let document = Document {
        machine,
        sidewire: accelerator.line(),
        method,
        rows: rows.collect(),
        raw: raw.collect(),
    };
    serde_json::to_string_pretty(&document).expect("plain data always serialises") + "\n"
}
