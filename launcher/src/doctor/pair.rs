//! Two small processes of our own that talk over 127.0.0.1, plain and under the
//! library: does the connection become Fast?

use super::Finding;
use crate::cli::PairArgs;
use crate::run::environment::names;
use crate::view::{totals::Totals, View};
use rdma_engine::arena;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Round trips of one run, and bytes in each direction of a trip.
const TRIPS: usize = 5000;
const BYTES: usize = 64;
/// A run takes well under a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// One end: listens and echoes, or connects, measures, and prints the median
/// round trip in nanoseconds. Returns the exit code.
pub fn end(args: &PairArgs) -> i32 {
    let result = match args.connect {
        None => echo(),
        Some(address) => measure(address),
    };
    i32::from(result.is_err())
}

fn echo() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    writeln!(io::stdout(), "{}", listener.local_addr()?)?;
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut message = [0; BYTES];
    loop {
        match stream.read_exact(&mut message) {
            Ok(()) => stream.write_all(&message)?,
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(e) => return Err(e),
        }
    }
}

fn measure(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut times = Vec::with_capacity(TRIPS);
    let mut message = [7; BYTES];
    for _ in 0..TRIPS {
        let start = Instant::now();
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        times.push(start.elapsed().as_nanos());
    }
    times.sort_unstable();
    writeln!(io::stdout(), "{}", times[TRIPS / 2])
}

/// Runs the pair plainly and accelerated.
pub fn findings(library: &Path) -> Vec<Finding> {
    let plain = round_trip(None, "");
    let (fast, totals) = match arena::create() {
        Err(_) => return vec![Finding::bad("no memory for a test connection")],
        Ok(fd) => {
            // SAFETY: the new descriptor is nobody else's.
            let fd = unsafe { OwnedFd::from_raw_fd(fd) };
            let path = format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd());
            let fast = round_trip(Some(library), &path);
            (fast, View::new(File::from(fd)).map(|v| Totals::of(&v)))
        }
    };
    let totals = totals.unwrap_or_default();
    vec![match (plain, fast) {
        (Err(why), _) => Finding::bad(format!("plain test connection: {why}")),
        (_, Err(why)) => Finding::bad(format!("accelerated test connection: {why}")),
        (Ok(plain), Ok(fast)) if totals.fast > 0 => {
            let us = |ns: u64| ns as f64 / 1000.0;
            Finding::good(format!(
                "test connection: Fast ({:.2} us a round trip, {:.2} us on plain TCP)",
                us(fast),
                us(plain)
            ))
        }
        _ => {
            let mut why: Vec<&str> = totals.reasons.keys().copied().collect();
            if totals.streams == 0 {
                why.push("the library saw no stream");
            }
            Finding::bad(format!("test connection: not Fast: {}", why.join("; ")))
        }
    }]
}

/// The median round trip in nanoseconds, under the library if one is given.
fn round_trip(library: Option<&Path>, arena: &str) -> Result<u64, String> {
    let text = |e: io::Error| e.to_string();
    let start = |argument: Option<&str>| -> Result<Guard, String> {
        let own = std::env::current_exe().map_err(text)?;
        let mut command = Command::new(own);
        command.arg("pair").args(argument).stdout(Stdio::piped());
        // The test is of the machine, not of the settings around us.
        for name in [names::TRANSPORT, names::POLICY, names::PRELOAD] {
            command.env_remove(name);
        }
        if let Some(library) = library {
            command.env(names::PRELOAD, library);
            command.env(names::ARENA, arena);
            command.env(names::UPGRADE_AFTER, "0");
        }
        command.spawn().map(Guard).map_err(text)
    };
    let mut server = start(None)?;
    let address = server.line()?;
    let mut client = start(Some(&address))?;
    let deadline = Instant::now() + PATIENCE;
    let ended = |child: &mut Guard| -> Result<(), String> {
        while child.0.try_wait().map_err(text)?.is_none() {
            if Instant::now() > deadline {
                return Err("it hangs".to_owned());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    };
    ended(&mut client)?;
    let median = client.line()?;
    ended(&mut server)?;
    median.parse().map_err(|_| "it broke".to_owned())
}

/// A child that never outlives us.
struct Guard(Child);

impl Guard {
    /// The first line that it prints.
    fn line(&mut self) -> Result<String, String> {
        let out = self.0.stdout.take().ok_or("no output")?;
        let mut line = String::new();
        let read = BufReader::new(out).read_line(&mut line);
        match read {
            Ok(n) if n > 0 => Ok(line.trim().to_owned()),
            _ => Err("it ended early".to_owned()),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
