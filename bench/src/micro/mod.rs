//! Our own small programs, for what no real program measures. Each runs as a child process of its own,
//! plain or under Sidewire like any other program, and prints one line of JSON when it ends.

pub mod busy;
pub mod hookcost;
pub mod idle;
pub mod ping;
mod usage;

use crate::experiment::Failure;
use clap::Subcommand;
use serde::de::DeserializeOwned;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// What this executable becomes when a measurement starts it.
#[derive(Subcommand)]
pub enum Role {
    Echo {
        port: u16,
    },
    Ping(ping::Options),
    IdleServer {
        port: u16,
        seconds: u32,
    },
    IdleClient {
        port: u16,
        seconds: u32,
        streams: usize,
    },
    Hookcost {
        port: u16,
        rounds: u32,
    },
    Busy,
}

pub fn run(role: Role) -> ExitCode {
    let line = match role {
        Role::Echo { port } => ping::echo(port).and_then(to_json),
        Role::Ping(options) => ping::ping(&options).and_then(to_json),
        Role::IdleServer { port, seconds } => idle::server(port, seconds).and_then(to_json),
        Role::IdleClient {
            port,
            seconds,
            streams,
        } => idle::client(port, seconds, streams).and_then(to_json),
        Role::Hookcost { port, rounds } => hookcost::measure(port, rounds).and_then(to_json),
        Role::Busy => busy::compute().and_then(to_json),
    };
    match line {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("sidewire-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn to_json(value: impl serde::Serialize) -> io::Result<String> {
    serde_json::to_string(&value).map_err(io::Error::other)
}

fn from_json<T: DeserializeOwned>(output: &str) -> Result<T, Failure> {
    serde_json::from_str(output.trim())
        .map_err(|error| Failure::Failed(format!("no result ({error}): {output}")))
}

fn myself() -> Result<PathBuf, Failure> {
    Ok(std::env::current_exe()?)
}
