//! The central process: holds the federations and routes between their members.
//!
//! ```text
//!            ┌──────────────── Rtig: poll(2), one thread ────────────────┐
//!   socket ──▶ link: frames ──▶ executions ──▶ federation ──▶ link: queue ──▶ sockets
//!            └───────────────────────────────────────────────────────────┘
//! ```
//!
//! One thread polls all connections, which never block. It could have been a thread for each, and was not, for three
//! reasons. Routing changes state that all connections share, so threads would queue for one lock. A thread that writes
//! to a slow federate blocks, and two federates that flood each other would then block for ever; here output waits in a
//! queue. And a message costs no change of threads: it is read, routed and written by the one that is awake. poll(2)
//! comes straight from libc; its cost per wait grows with the number of connections, which a hundred federates bear.
//!
//! A federate that makes another's queue grow too long is not read from until that has caught up; one that takes nothing
//! for [`Options::stall_limit`] is lost. A lost federate is resigned and the others are told.

mod executions;
pub mod federation;
mod link;

pub use executions::{Executions, Standing};
pub use link::LinkId;

use crate::sys::{poll, Interest};
use crate::wire::{self, Notice, Request};
use crate::RtiException;
use link::Links;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How often to look after federates that take nothing.
const LOOK: Duration = Duration::from_secs(1);

/// For how long nobody is accepted after that failed, as it does when descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How an RTIG behaves.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// End once all federations have been destroyed and all connections closed.
    pub once: bool,
    /// For how long a federate may take nothing of what is queued for it.
    pub stall_limit: Duration,
    /// Tell on standard error who is lost, and why.
    pub log: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            once: false,
            stall_limit: Duration::from_secs(30),
            log: false,
        }
    }
}

/// The central process.
pub struct Rtig {
    listener: TcpListener,
    options: Options,
    links: Links,
    executions: Executions,
    accept_again: Option<Instant>,
}

/// Why a connection ends.
type Ending = (LinkId, String);

impl Rtig {
    /// Listens for federates.
    pub fn bind(address: impl ToSocketAddrs, options: Options) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            options,
            links: Links::default(),
            executions: Executions::default(),
            accept_again: None,
        })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves: for ever, or with [`Options::once`] until there is nothing left.
    pub fn run(&mut self) -> io::Result<()> {
        let mut interests = Vec::new();
        let mut ids = Vec::new();
        while !(self.options.once && self.executions.over() && self.links.is_empty()) {
            let timeout = self.interests(&mut interests, &mut ids);
            poll(&mut interests, timeout)?;
            let mut endings = Vec::new();
            for (&id, interest) in ids.iter().zip(&interests[1..]) {
                if interest.readable() {
                    endings.extend(self.serve(id));
                }
                // What a call above has queued for it is sent at once; this is for what was left before.
                if interest.writable() {
                    endings.extend(self.flush(id));
                }
            }
            endings.extend(self.stalled());
            self.end(endings);
            if interests[0].readable() {
                self.accept();
            }
        }
        Ok(())
    }

    /// What to wait for: the listener first, then each link; and for how long.
    fn interests(&mut self, out: &mut Vec<Interest>, ids: &mut Vec<LinkId>) -> Option<Duration> {
        out.clear();
        ids.clear();
        self.links.release();
        self.accept_again = self.accept_again.filter(|t| *t > Instant::now());
        out.push(Interest::new(
            &self.listener,
            self.accept_again.is_none(),
            false,
        ));
        let mut queued = false;
        for (id, link) in self.links.iter() {
            let output = link.queued() > 0;
            queued |= output;
            out.push(Interest::new(&link.stream, link.may_send(), output));
            ids.push(id);
        }
        match (self.accept_again, queued) {
            (Some(_), _) => Some(ACCEPT_PAUSE),
            (None, true) => Some(LOOK),
            (None, false) => None,
        }
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    // A connection that is dead already shows when it is read from.
                    let _ = stream.set_nodelay(true);
                    if stream.set_nonblocking(true).is_ok() {
                        self.links.add(stream);
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    self.accept_again = Some(Instant::now() + ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    /// Reads once from a link, does all that it asks for, and sends what comes of it.
    fn serve(&mut self, id: LinkId) -> Vec<Ending> {
        let mut endings = Vec::new();
        endings.extend(self.read(id).err().map(|reason| (id, reason)));
        let touched = self.links.take_touched();
        for &receiver in &touched {
            endings.extend(self.flush(receiver));
        }
        self.links.hold_back(id, &touched);
        endings
    }

    /// One read, and all frames that are whole; why the connection ends, if it does.
    fn read(&mut self, id: LinkId) -> Result<(), String> {
        let Some(link) = self.links.get(id) else {
            return Ok(());
        };
        match link.reader.fill(&mut link.stream) {
            Ok(0) => {
                return Err(match link.reader.finish() {
                    Ok(()) => "the connection was closed".into(),
                    Err(e) => e.to_string(),
                })
            }
            Ok(_) => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(())
            }
            Err(e) => return Err(e.to_string()),
        }
        // Away from the table, so that what is read can be posted to the others while it is borrowed.
        let mut reader = std::mem::take(&mut link.reader);
        let mut standing = link.standing;
        let outcome = loop {
            match reader.next_frame() {
                Ok(None) => break Ok(()),
                Ok(Some(body)) => match wire::decode::<Request>(body) {
                    Ok(request) => self.answer(id, &mut standing, request),
                    Err(e) => break Err(e),
                },
                Err(e) => break Err(e),
            }
        };
        if let Some(link) = self.links.get(id) {
            link.reader = reader;
            link.standing = standing;
        }
        outcome.map_err(|e| {
            let exception = RtiException::internal(e.to_string());
            let serial = 0;
            self.links
                .notify(id, &Notice::Refused { serial, exception });
            e.to_string()
        })
    }

    fn answer(&mut self, id: LinkId, standing: &mut Standing, request: Request) {
        let Request { serial, service } = request;
        let notice = match self
            .executions
            .serve(id, standing, service, &mut self.links)
        {
            Ok(None) => return,
            Ok(Some(answer)) => Notice::Answered { serial, answer },
            Err(exception) => Notice::Refused { serial, exception },
        };
        self.links.notify(id, &notice);
    }

    fn flush(&mut self, id: LinkId) -> Option<Ending> {
        let error = self.links.get(id)?.flush().err()?;
        Some((id, error.to_string()))
    }

    fn stalled(&self) -> Vec<Ending> {
        let limit = self.options.stall_limit;
        let stalled = self.links.iter().filter(|(_, link)| link.stalled(limit));
        let reason = || format!("it took nothing for {} s", limit.as_secs());
        stalled.map(|(id, _)| (id, reason())).collect()
    }

    /// Closes connections; telling the others can find that more of them are dead.
    fn end(&mut self, mut endings: Vec<Ending>) {
        while let Some((id, reason)) = endings.pop() {
            let Some(link) = self.links.remove(id) else {
                continue;
            };
            if self.options.log && matches!(link.standing, Standing::Joined { .. }) {
                eprintln!("rtig: lost a federate: {reason}");
            }
            drop(link.stream);
            self.executions
                .lose(link.standing, &reason, &mut self.links);
            for touched in self.links.take_touched() {
                endings.extend(self.flush(touched));
            }
        }
    }
}
