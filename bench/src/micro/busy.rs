//! Another experiment beside programs that compute, one on each processor.
//!
//! Whoever waits by giving the processor away gives it to them, for milliseconds; whoever sleeps in the kernel is woken
//! ahead of them. Nothing shows better whether a way of waiting knows its neighbours.

use super::myself;
use crate::child::Child;
use crate::experiment::{Experiment, Failure, Run, Values};
use crate::machine;
use std::hint::black_box;
use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

/// A program that computes is ended when the experiment has; in any case after this.
const LIMIT: Duration = Duration::from_secs(120);

/// The experiment, and its neighbours.
pub struct Beside<E>(pub E);

impl<E: Experiment> Experiment for Beside<E> {
    fn run(&self, run: &Run) -> Result<Values, Failure> {
        let mut neighbours = Vec::new();
        for cpu in machine::cpus() {
            let mut command = Command::new(myself()?);
            command.args(["micro", "busy"]);
            let name = format!("busy{cpu}");
            neighbours.push(Child::start(command, &name, run.dir, Some(cpu), LIMIT)?);
        }
        let values = self.0.run(run);
        for neighbour in neighbours {
            neighbour.stop()?;
        }
        values
    }
}

/// Computes until it is ended.
pub fn compute() -> io::Result<u64> {
    let start = Instant::now();
    let mut sum = 0u64;
    while start.elapsed() < LIMIT {
        for i in 0..1_000_000u64 {
            sum = black_box(sum.wrapping_mul(31).wrapping_add(i));
        }
    }
    Ok(sum)
}
