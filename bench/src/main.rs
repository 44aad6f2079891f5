//! `sidewire-bench`: what Sidewire is worth, measured so that anybody can repeat and believe it.
//!
//! ```text
//!   compare ──▶ catalog (the rows) ──▶ experiment (one run of one row, one side)
//!      │                                   │
//!      │                                   ├── tools/   netperf, NPtcp, redis: command line and parser
//!      │                                   └── micro/   our own small programs
//!      └──▶ report (table, details, JSON)
//!   apps ──▶ apps/*.sh, one script for each real program
//! ```
//!
//! Every measurement is a *pair*: plain, accelerated, plain, accelerated, ... on the same machine in the
//! same minutes, so that what the machine does meanwhile hits both sides alike.

mod apps;
mod catalog;
mod child;
mod compare;
mod experiment;
mod machine;
mod micro;
mod port;
mod registry;
mod report;
mod scratch;
mod side;
mod stats;
mod summary;
mod tools;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "sidewire-bench",
    version,
    about = "Paired measurements: plain TCP against Sidewire"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every measurement in pairs and print one table
    Compare(compare::Args),
    /// What a hooked call costs on a descriptor that is not accelerated
    Hookcost(compare::Common),
    /// One message per millisecond: latency and CPU time
    Sporadic(compare::Common),
    /// 100 idle streams: CPU time and context switches
    Idle(compare::Common),
    /// Run the scripts for real programs (apps/*.sh), each with a time limit
    Apps(apps::Args),
    /// The processes that the measurements above start
    #[command(hide = true, subcommand)]
    Micro(micro::Role),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Compare(args) => compare::run(&args.common, args.only.as_deref()),
        Command::Hookcost(common) => compare::run(&common, Some("hookcost")),
        Command::Sporadic(common) => compare::run(&common, Some("sporadic")),
        Command::Idle(common) => compare::run(&common, Some("idle")),
        Command::Apps(args) => apps::run(&args),
        Command::Micro(role) => micro::run(role),
    }
}
