//! `sidewire ps`: the live streams of this host.

pub mod json;
pub mod scan;
pub mod size;
pub mod table;

use crate::cli::PsArgs;
use crate::view::Stream;

/// One end of a stream, and the process that it is shown for.
#[derive(Clone, Debug)]
pub struct Row {
    /// As this host's /proc numbers it; 0 if no live process holds the end.
    pub pid: u32,
    /// The process's name.
    pub program: String,
    /// Inode of the arena: the same for all processes of one family.
    pub arena: u64,
    pub stream: Stream,
}

/// Everything that was found.
#[derive(Default)]
pub struct Found {
    pub rows: Vec<Row>,
    /// Processes of other users, which cannot be looked into.
    pub unreadable: u64,
    /// Arenas of another version of Sidewire, or broken ones.
    pub strange: u64,
}

/// Prints the streams; returns the exit code.
pub fn ps(args: &PsArgs) -> i32 {
    let mut found = scan::scan();
    if !args.all {
        found.rows.retain(|r| r.pid != 0);
    }
    found
        .rows
        .sort_by_key(|r| (r.pid, r.arena, r.stream.opened, r.stream.slot));
    for row in found.rows.iter_mut().filter(|r| r.pid != 0) {
        row.stream.ask_kernel();
    }
    let text = if args.json {
        // The array has no place for it, and an empty one must not look like «none».
        table::notes(&found).iter().for_each(|n| crate::complain(n));
        json::array(&found)
    } else {
        table::table(&found)
    };
    crate::print(text.as_bytes()).err().unwrap_or(0)
}
