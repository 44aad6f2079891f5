//! redis-server and redis-benchmark.

use crate::experiment::{find_program, End, Experiment, Failure, Run, Values};

const PACKAGE: &str = "redis-server redis-tools";

/// `redis-benchmark -t get` with so many clients.
pub struct RedisGet {
    pub clients: u32,
    /// Requests for each second of the run: redis-benchmark counts requests and not time.
    pub requests_per_second: u32,
}

impl Experiment for RedisGet {
    fn run(&self, run: &Run) -> Result<Values, Failure> {
        let server = find_program("redis-server", PACKAGE)?;
        let benchmark = find_program("redis-benchmark", PACKAGE)?;
        let port = crate::port::free()?.to_string();
        let mut command = run.command(&server);
        command.args([
            "--bind",
            "127.0.0.1",
            "--port",
            &port,
            "--save",
            "",
            "--appendonly",
            "no",
            "--daemonize",
            "no",
        ]);
        let server = run.serve(command, "redis-server", port.parse().unwrap_or(0))?;
        let mut command = run.command(&benchmark);
        command.args([
            "-h",
            "127.0.0.1",
            "-p",
            &port,
            "-t",
            "get",
            "--csv",
            "-c",
            &self.clients.to_string(),
        ]);
        command.args(["-n", &(self.requests_per_second * run.seconds).to_string()]);
        let output = run.start(command, "redis-benchmark", End::Client)?.wait()?;
        server.stop()?;
        Ok(Values::from([(
            "rate",
            requests_per_second(&output.stdout, "GET")?,
        )]))
    }
}

/// Lines of the CSV are: "test","requests per second", latencies ...
fn requests_per_second(csv: &str, test: &str) -> Result<f64, String> {
    csv.lines()
        .map(|line| {
            line.split(',')
                .map(|field| field.trim().trim_matches('"'))
                .collect::<Vec<_>>()
        })
        .find(|fields| fields.first() == Some(&test))
        .and_then(|fields| fields.get(1)?.parse().ok())
        .ok_or_else(|| format!("redis-benchmark gave no rate for {test}: {}", csv.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_csv() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\"\n\"GET\",\"30303.03\",\"0.029\"\n";
        assert_eq!(requests_per_second(csv, "GET"), Ok(30303.03));
        assert!(requests_per_second(csv, "SET").is_err());
        assert!(requests_per_second("Could not connect", "GET").is_err());
    }
}
