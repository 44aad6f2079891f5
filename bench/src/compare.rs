//! The loop over all work: plain, accelerated, plain, accelerated, ...

use crate::catalog::{self, Work};
use crate::experiment::{Failure, Placement, Run, Values};
use crate::machine::Machine;
use crate::scratch::Scratch;
use crate::side::{Accelerator, Side};
use crate::stats::Stats;
use crate::summary::Summary;
use crate::{registry, report};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,
    /// Only the work whose key contains this, such as `netperf-rr` or `redis`
    #[arg(long, value_name = "SUBSTRING")]
    pub only: Option<String>,
}

#[derive(clap::Args)]
pub struct Common {
    /// Short runs and few of them: about 80 seconds for everything
    #[arg(long)]
    pub quick: bool,
    /// Pairs of runs for each row [default: 3, quick: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: Option<u32>,
    /// Seconds for each run [default: 2, quick: 1]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=60))]
    pub seconds: Option<u32>,
    /// Write everything, with each single run, to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// How much is measured.
#[derive(Serialize)]
pub struct Method {
    pub quick: bool,
    pub runs: u32,
    pub seconds: u32,
}

/// All runs of one piece of work on one side at one placement.
#[derive(Serialize)]
pub struct Cell {
    pub side: Side,
    pub placement: Placement,
    pub runs: Vec<Values>,
    pub stats: Stats,
    pub failures: Vec<String>,
    #[serde(skip)]
    dropped: bool,
}

/// One piece of work and what came of it.
pub struct Outcome {
    pub work: Work,
    pub cells: Vec<Cell>,
    /// Program and package that were missing.
    pub missing: Option<(&'static str, &'static str)>,
}

impl Cell {
    fn new(side: Side, placement: Placement) -> Cell {
        Cell {
            side,
            placement,
            runs: Vec::new(),
            stats: Stats::default(),
            failures: Vec::new(),
            dropped: false,
        }
    }

    pub fn summary(&self, value: &str) -> Option<Summary> {
        let values: Vec<f64> = self
            .runs
            .iter()
            .filter_map(|run| run.get(value).copied())
            .collect();
        Summary::of(&values)
    }
}

pub fn run(common: &Common, only: Option<&str>) -> ExitCode {
    registry::catch_interrupts();
    let method = Method {
        quick: common.quick,
        runs: common.runs.unwrap_or(if common.quick { 2 } else { 3 }),
        seconds: common.seconds.unwrap_or(if common.quick { 1 } else { 2 }),
    };
    let wanted = |work: &Work| only.is_none_or(|part| work.key.contains(part));
    let works: Vec<Work> = catalog::all().into_iter().filter(wanted).collect();
    if works.is_empty() {
        let keys: Vec<_> = catalog::all().iter().map(|work| work.key).collect();
        eprintln!(
            "sidewire-bench: no work matches; there is: {}",
            keys.join(" ")
        );
        return ExitCode::from(2);
    }
    let (machine, accelerator) = (Machine::describe(), Accelerator::find());
    println!("{}", report::header(&machine, &accelerator, &method));
    let outcomes = measure(works, &accelerator, &method);
    println!("{}", report::table(&outcomes, &accelerator));
    if !method.quick {
        println!("{}", report::details(&outcomes));
    }
    print!("{}", report::remarks(&outcomes, &machine));
    if let Some(path) = &common.json {
        let text = report::json(&outcomes, &machine, &accelerator, &method);
        if let Err(error) = std::fs::write(path, text) {
            eprintln!("sidewire-bench: cannot write {}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    if registry::interrupted() {
        println!("Interrupted: the table holds what was measured until then.");
        return ExitCode::from(130);
    }
    ExitCode::SUCCESS
}

fn measure(works: Vec<Work>, accelerator: &Accelerator, method: &Method) -> Vec<Outcome> {
    let bar = ProgressBar::new(works.len() as u64);
    let style = ProgressStyle::with_template("{elapsed:>4} [{bar:20}] {pos}/{len} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_secs(1));
    let mut outcomes = Vec::new();
    for work in works {
        if registry::interrupted() {
            break;
        }
        bar.set_message(work.key);
        outcomes.push(measure_one(work, accelerator, method));
        bar.inc(1);
    }
    bar.finish_and_clear();
    outcomes
}

fn measure_one(work: Work, accelerator: &Accelerator, method: &Method) -> Outcome {
    // A quick comparison judges one placement of ours; the others are for the details.
    let ours = if method.quick { 1 } else { work.sidewire.len() };
    let plain = work
        .plain
        .iter()
        .map(|&placement| Cell::new(Side::Plain, placement));
    let sidewire = work
        .sidewire
        .iter()
        .take(ours)
        .map(|&placement| Cell::new(Side::Sidewire, placement));
    let cells = plain.chain(sidewire).collect();
    let mut outcome = Outcome {
        work,
        cells,
        missing: None,
    };
    for _ in 0..method.runs * outcome.work.rounds {
        outcome.measure_round(accelerator, method);
        if outcome.missing.is_some() || registry::interrupted() {
            break;
        }
        if method.quick {
            outcome.drop_losers();
        }
    }
    outcome
}

impl Outcome {
    /// One run of each cell, plain and accelerated in turn.
    fn measure_round(&mut self, accelerator: &Accelerator, method: &Method) {
        for cell in self.cells.iter_mut().filter(|cell| !cell.dropped) {
            if registry::interrupted() {
                return;
            }
            match measure_cell(&self.work, cell, accelerator, method) {
                Ok(()) => {}
                // What we ended ourselves has not failed.
                Err(Failure::Failed(_)) if registry::interrupted() => return,
                Err(Failure::Failed(why)) => cell.failures.push(why),
                Err(Failure::NotInstalled { program, package }) => {
                    self.missing = Some((program, package));
                    return;
                }
            }
        }
    }

    /// Time is short: go on with plain's best placement only.
    fn drop_losers(&mut self) {
        let Some(best) = self.best_plain(0).map(|cell| cell.placement) else {
            return;
        };
        let plain = self
            .cells
            .iter_mut()
            .filter(|cell| cell.side == Side::Plain);
        plain.for_each(|cell| cell.dropped = cell.placement != best);
    }

    /// Plain TCP where it does best by this metric.
    pub fn best_plain(&self, metric: usize) -> Option<&Cell> {
        let metric = &self.work.metrics[metric];
        let score = |cell: &Cell| {
            let median = cell
                .summary(metric.value)
                .map_or(f64::INFINITY, |summary| summary.median);
            if metric.unit.more_is_better() && median.is_finite() {
                -median
            } else {
                median
            }
        };
        let plain = self.cells.iter().filter(|cell| cell.side == Side::Plain);
        plain.min_by(|a, b| score(a).total_cmp(&score(b)))
    }

    /// The accelerated cell that is judged.
    pub fn judged(&self) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.side == Side::Sidewire)
    }
}

fn measure_cell(
    work: &Work,
    cell: &mut Cell,
    accelerator: &Accelerator,
    method: &Method,
) -> Result<(), Failure> {
    let scratch = Scratch::new()?;
    let (side, placement) = (cell.side, cell.placement);
    let run = Run {
        accelerator,
        side,
        placement,
        seconds: method.seconds,
        dir: scratch.path(),
    };
    let result = work.experiment.run(&run);
    cell.stats.add(&Stats::read(&run.stats_file()));
    cell.runs.push(result?);
    Ok(())
}
