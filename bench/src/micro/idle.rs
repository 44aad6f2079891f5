//! Streams that have been busy and now rest: they must cost no CPU time.

use super::usage::Usage;
use super::{from_json, myself};
use crate::experiment::{End, Experiment, Failure, Run, Values};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Enough round trips for any stream to become Fast.
const WARM_ROUNDS: usize = 100;

/// Echo on all connections from one epoll loop. What the one long wait has used is the result.
pub fn server(port: u16, seconds: u32) -> io::Result<Usage> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let epoll = Epoll::new()?;
    epoll.add(&listener, 0)?;
    let mut streams: Vec<Option<TcpStream>> = Vec::new();
    let mut idle = Usage::default();
    let (mut open, mut accepted) = (0, 0);
    while accepted == 0 || open > 0 {
        let (before, start) = (Usage::now(), Instant::now());
        let ready = epoll.wait(2 * seconds + 10)?;
        if start.elapsed() >= Duration::from_secs(u64::from(seconds)) / 2 {
            idle = Usage::now().since(before);
        }
        if ready.is_empty() {
            break;
        }
        for token in ready {
            if token == 0 {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                streams.push(Some(stream));
                epoll.add(
                    streams[accepted].as_ref().expect("just pushed"),
                    accepted as u64 + 1,
                )?;
                accepted += 1;
                open += 1;
            } else if !echo_once(&mut streams[token as usize - 1])? {
                open -= 1;
            }
        }
    }
    Ok(idle)
}

/// Returns false when the stream has ended, and closes it.
fn echo_once(slot: &mut Option<TcpStream>) -> io::Result<bool> {
    let Some(stream) = slot else { return Ok(true) };
    let mut buffer = [0; 256];
    let count = stream.read(&mut buffer)?;
    stream.write_all(&buffer[..count])?;
    if count == 0 {
        *slot = None;
    }
    Ok(count > 0)
}

/// Warm all streams up, then wait on all of them for a message that never comes.
pub fn client(port: u16, seconds: u32, count: usize) -> io::Result<Usage> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    let mut message = [0x5a; 64];
    for stream in &mut streams {
        for _ in 0..WARM_ROUNDS {
            stream.write_all(&message)?;
            stream.read_exact(&mut message)?;
        }
    }
    let entry = |stream: &TcpStream| libc::pollfd {
        fd: stream.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let mut entries: Vec<_> = streams.iter().map(entry).collect();
    let before = Usage::now();
    // SAFETY: a valid array of pollfd.
    let ready = unsafe {
        libc::poll(
            entries.as_mut_ptr(),
            entries.len() as libc::nfds_t,
            seconds as i32 * 1000,
        )
    };
    match ready {
        0 => Ok(Usage::now().since(before)),
        _ => Err(io::Error::other(format!(
            "poll on idle streams gave {ready}"
        ))),
    }
}

/// Just enough of epoll, by libc's own names so that a preload library sees the calls.
struct Epoll(i32);

impl Epoll {
    fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers.
        match unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) } {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(Epoll(fd)),
        }
    }

    fn add(&self, source: &impl AsRawFd, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: token,
        };
        // SAFETY: a valid event.
        match unsafe {
            libc::epoll_ctl(self.0, libc::EPOLL_CTL_ADD, source.as_raw_fd(), &mut event)
        } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    fn wait(&self, seconds: u32) -> io::Result<Vec<u64>> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        // SAFETY: a valid array of events and its length.
        let count = unsafe {
            libc::epoll_wait(
                self.0,
                events.as_mut_ptr(),
                events.len() as i32,
                seconds as i32 * 1000,
            )
        };
        if count < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(events[..count as usize]
            .iter()
            .map(|event| event.u64)
            .collect())
    }
}

impl Drop for Epoll {
    fn drop(&mut self) {
        // SAFETY: our own descriptor, closed once.
        unsafe { libc::close(self.0) };
    }
}

/// One run: so many streams at rest between two processes.
pub struct Idle {
    pub streams: usize,
    pub seconds_quick: u32,
    pub seconds_full: u32,
}

impl Experiment for Idle {
    fn run(&self, run: &Run) -> Result<Values, Failure> {
        let seconds = if run.seconds > 1 {
            self.seconds_full
        } else {
            self.seconds_quick
        }
        .to_string();
        let port = crate::port::free()?;
        let mut command = run.command(&myself()?);
        command.args(["micro", "idle-server", &port.to_string(), &seconds]);
        let server = run.serve(command, "idle-server", port)?;
        let mut command = run.command(&myself()?);
        command.args([
            "micro",
            "idle-client",
            &port.to_string(),
            &seconds,
            &self.streams.to_string(),
        ]);
        let client: Usage = from_json(
            &run.start(command, "idle-client", End::Client)?
                .wait()?
                .stdout,
        )?;
        let server: Usage = from_json(&server.wait()?.stdout)?;
        Ok(Values::from([
            ("cpu_us", client.cpu_us + server.cpu_us),
            ("sleeps", client.sleeps + server.sleeps),
        ]))
    }
}
