//! What a person reads, and what a program reads.

mod format;
mod json;
mod judge;
mod table;

pub use json::json;
pub use table::{details, empty, remarks, table};

use crate::compare::Method;
use crate::machine::Machine;
use crate::side::Accelerator;

/// What stands above each table: enough to repeat it, and to know when not to believe it.
pub fn header(machine: &Machine, accelerator: &Accelerator, method: &Method) -> String {
    format!(
        "Machine:  {}\nSidewire: {}\nMethod:   {} pairs of runs (plain, Sidewire, plain, ...) of {} s; medians; \
         plain TCP at its best placement",
        machine.line(),
        accelerator.line(),
        method.runs,
        method.seconds
    )
}
