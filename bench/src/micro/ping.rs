//! A ping-pong that times each round trip in nanoseconds, busy or with pauses, and counts both ends' CPU time.

use super::usage::Usage;
use super::{from_json, myself};
use crate::experiment::{End, Experiment, Failure, Run, Values};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct Options {
    port: u16,
    #[arg(long)]
    size: usize,
    #[arg(long)]
    seconds: u32,
    /// Pause before each message; 0 sends at once
    #[arg(long)]
    pause_us: u64,
    /// Round trips before the measurement
    #[arg(long)]
    warm: u32,
}

#[derive(Serialize, Deserialize)]
pub struct Report {
    p50_ns: u64,
    p99_ns: u64,
    count: u64,
    usage: Usage,
}

/// The echoing end: one connection, until it closes.
pub fn echo(port: u16) -> io::Result<Usage> {
    let (mut stream, _) = TcpListener::bind(("127.0.0.1", port))?.accept()?;
    stream.set_nodelay(true)?;
    let start = Usage::now();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(Usage::now().since(start)),
            count => stream.write_all(&buffer[..count])?,
        }
    }
}

/// The measuring end.
pub fn ping(options: &Options) -> io::Result<Report> {
    let mut stream = TcpStream::connect(("127.0.0.1", options.port))?;
    stream.set_nodelay(true)?;
    let mut message = vec![0x5a; options.size.max(1)];
    let mut round_trip = || {
        stream
            .write_all(&message)
            .and_then(|()| stream.read_exact(&mut message))
    };
    for _ in 0..options.warm {
        round_trip()?;
    }
    let mut times = Histogram::<u64>::new(3).map_err(io::Error::other)?;
    let pause = Duration::from_micros(options.pause_us);
    let usage = Usage::now();
    let end = Instant::now() + Duration::from_secs(u64::from(options.seconds));
    loop {
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
        let sent = Instant::now();
        round_trip()?;
        let received = Instant::now();
        times
            .record((received - sent).as_nanos() as u64)
            .map_err(io::Error::other)?;
        if received >= end {
            break;
        }
    }
    Ok(Report {
        p50_ns: times.value_at_quantile(0.5),
        p99_ns: times.value_at_quantile(0.99),
        count: times.len(),
        usage: Usage::now().since(usage),
    })
}

/// One run with both ends as processes of their own.
pub struct PingPong {
    pub size: usize,
    pub pause_us: u64,
    pub warm: u32,
}

impl Experiment for PingPong {
    fn run(&self, run: &Run) -> Result<Values, Failure> {
        let port = crate::port::free()?;
        let mut command = run.command(&myself()?);
        command.args(["micro", "echo", &port.to_string()]);
        let server = run.serve(command, "echo", port)?;
        let mut command = run.command(&myself()?);
        command.args([
            "micro",
            "ping",
            &port.to_string(),
            "--size",
            &self.size.to_string(),
        ]);
        command.args([
            "--seconds",
            &run.seconds.to_string(),
            "--pause-us",
            &self.pause_us.to_string(),
        ]);
        command.args(["--warm", &self.warm.to_string()]);
        let report: Report = from_json(&run.start(command, "ping", End::Client)?.wait()?.stdout)?;
        let echo: Usage = from_json(&server.wait()?.stdout)?;
        Ok(Values::from([
            ("p50_us", report.p50_ns as f64 / 1e3),
            ("p99_us", report.p99_ns as f64 / 1e3),
            (
                "cpu_us",
                (report.usage.cpu_us + echo.cpu_us) / report.count.max(1) as f64,
            ),
        ]))
    }
}
