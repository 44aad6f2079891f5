//! netperf and netserver.
//!
//! The `-k` output selectors give `NAME=VALUE` lines, which say what they mean whatever the test. Latency
//! selectors are left out on purpose: they make netperf read the clock twice per transaction, which would be a
//! good part of a round trip over shared memory, and they count in whole microseconds.

use crate::experiment::{find_program, End, Experiment, Failure, Run, Values};
use std::path::Path;

const PACKAGE: &str = "netperf";

/// So many identical netperf clients at once against one netserver.
pub struct Netperf {
    pub test: &'static str,
    /// Test-specific options, such as `-r 1,1`.
    pub options: &'static [&'static str],
    pub pairs: usize,
    pub length: Length,
}

/// How long one run takes.
#[derive(Clone, Copy)]
pub enum Length {
    Seconds,
    /// So many transactions for each second: a timed TCP_CRR keeps its server for four seconds more.
    Transactions(i64),
}

impl Experiment for Netperf {
    fn run(&self, run: &Run) -> Result<Values, Failure> {
        let netperf = find_program("netperf", PACKAGE)?;
        let netserver = find_program("netserver", PACKAGE)?;
        let port = crate::port::free()?;
        let mut command = run.command(&netserver);
        command.args(["-D", "-N", "-L", "127.0.0.1", "-p", &port.to_string()]);
        let server = run.serve(command, "netserver", port)?;
        let mut clients = Vec::new();
        for index in 0..self.pairs {
            clients.push(run.start(
                self.client(run, &netperf, port),
                &format!("netperf{index}"),
                End::Client,
            )?);
        }
        let mut rates = Vec::new();
        for client in clients {
            rates.push(throughput(&client.wait()?.stdout)?);
        }
        server.stop()?;
        let sum: f64 = rates.iter().sum();
        let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
        Ok(Values::from([
            ("rate", sum),
            ("slowest", slowest),
            ("rtt_us", 1e6 / slowest),
        ]))
    }
}

impl Netperf {
    /// netperf takes a negative length for a number of transactions.
    fn length(&self, seconds: u32) -> String {
        match self.length {
            Length::Seconds => seconds.to_string(),
            Length::Transactions(rate) => (-rate * i64::from(seconds)).to_string(),
        }
    }

    fn client(&self, run: &Run, netperf: &Path, port: u16) -> std::process::Command {
        let mut command = run.command(netperf);
        command.args(["-H", "127.0.0.1", "-P", "0", "-t", self.test]);
        command.args([
            "-p",
            &port.to_string(),
            "-l",
            &self.length(run.seconds),
            "--",
        ]);
        command
            .args(self.options)
            .args(["-k", "THROUGHPUT,THROUGHPUT_UNITS"]);
        command
    }
}

/// The rate, in transactions or megabits per second as the test has it.
fn throughput(output: &str) -> Result<f64, String> {
    let value = keyval(output, "THROUGHPUT").and_then(|text| text.parse::<f64>().ok());
    match value {
        Some(rate) if rate > 0.0 => Ok(rate),
        _ => Err(format!("netperf gave no throughput: {}", output.trim())),
    }
}

fn keyval<'a>(output: &'a str, key: &str) -> Option<&'a str> {
    output
        .lines()
        .filter_map(|line| line.split_once('='))
        .find(|(name, _)| *name == key)
        .map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_selected_output() {
        let output = "THROUGHPUT=44216.42\nTHROUGHPUT_UNITS=Trans/s\n";
        assert_eq!(throughput(output), Ok(44216.42));
        assert_eq!(keyval(output, "THROUGHPUT_UNITS"), Some("Trans/s"));
        assert_eq!(keyval(output, "P50_LATENCY"), None);
    }

    #[test]
    fn nonsense_is_an_error() {
        assert!(throughput("").is_err());
        assert!(throughput("THROUGHPUT=0.00\n").is_err());
        assert!(throughput("send_omni: connect failed\n").is_err());
    }
}
