//! The federate's connection to the RTI: requests out, answers and callbacks in, all in the caller's thread.

use crate::sys::{poll, send_now, Interest};
use crate::wire::{self, FrameReader, Notice, Request, Service};
use crate::RtiException;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::time::Duration;

/// For how long to wait for an answer, or for room to send. An RTI that takes longer is as good as dead.
const PATIENCE: Duration = Duration::from_secs(60);

/// The RTI's answer to a service, or its refusal.
type Outcome = Result<u32, RtiException>;

/// The connection.
pub(super) struct Connection {
    stream: TcpStream,
    pub(super) reader: FrameReader,
    /// The read timeout that the socket has.
    timeout: Option<Duration>,
    out: Vec<u8>,
    serial: u32,
    /// Callbacks that came while something else was waited for, as they came.
    pub(super) early: VecDeque<Vec<u8>>,
    /// Refusals of services that wait for no answer.
    pub(super) late: VecDeque<RtiException>,
    /// Why the connection is of no use any more.
    broken: Option<RtiException>,
}

impl Connection {
    pub(super) fn open(address: impl ToSocketAddrs) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            reader: FrameReader::default(),
            timeout: None,
            out: Vec::new(),
            serial: 0,
            early: VecDeque::new(),
            late: VecDeque::new(),
            broken: None,
        })
    }

    pub(super) fn check(&self) -> Result<(), RtiException> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    /// Nothing works from here on.
    pub(super) fn fail(&mut self, exception: RtiException) -> RtiException {
        self.broken.get_or_insert(exception).clone()
    }

    fn fail_as(&mut self, what: impl std::fmt::Display) -> RtiException {
        self.fail(RtiException::internal(what.to_string()))
    }

    /// Sends a service and waits for its answer.
    pub(super) fn call(&mut self, service: Service) -> Result<u32, RtiException> {
        let serial = self.send(service)?;
        loop {
            if let Some(outcome) = self.sort(Some(serial))? {
                return outcome;
            }
            if !self.wait(PATIENCE)? {
                return Err(self.fail_as("the RTI gives no answer"));
            }
        }
    }

    /// Sends a service, and takes in what comes meanwhile if it can't be sent at once: an RTI that waits for this federate
    /// to read is never waited for.
    pub(super) fn send(&mut self, service: Service) -> Result<u32, RtiException> {
        self.check()?;
        self.serial = self.serial.checked_add(1).unwrap_or(1);
        let serial = self.serial;
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        let outcome = wire::append(&mut out, &Request { serial, service })
            .map_err(|e| RtiException::internal(e.to_string()))
            .and_then(|()| self.send_all(&out));
        self.out = out;
        outcome.map(|()| serial)
    }

    fn send_all(&mut self, mut rest: &[u8]) -> Result<(), RtiException> {
        while !rest.is_empty() {
            match send_now(self.stream.as_fd(), rest) {
                Ok(n) => rest = &rest[n..],
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    let mut interest = [Interest::new(&self.stream, true, true)];
                    let ready = poll(&mut interest, Some(PATIENCE));
                    if ready.map_err(|e| self.fail_as(e))? == 0 {
                        return Err(self.fail_as("the RTI takes nothing"));
                    }
                    if interest[0].readable() {
                        self.fill()?;
                        self.sort(None)?;
                    }
                }
                Err(e) => return Err(self.last_words(e)),
            }
        }
        Ok(())
    }

    /// The RTI may have said why it closed the connection before the write found out.
    fn last_words(&mut self, error: io::Error) -> RtiException {
        while matches!(self.wait(Duration::from_millis(100)), Ok(true)) {
            if let Err(told) = self.sort(None) {
                return told;
            }
        }
        self.fail_as(error)
    }

    /// Puts away every frame that is there, up to the outcome of the service that is waited for.
    fn sort(&mut self, awaited: Option<u32>) -> Result<Option<Outcome>, RtiException> {
        // Away from here, so that a frame can borrow from it while the rest of the connection changes.
        let mut reader = std::mem::take(&mut self.reader);
        let outcome = self.sort_from(&mut reader, awaited);
        self.reader = reader;
        outcome
    }

    fn sort_from(
        &mut self,
        reader: &mut FrameReader,
        awaited: Option<u32>,
    ) -> Result<Option<Outcome>, RtiException> {
        while let Some(body) = reader.next_frame().map_err(|e| self.fail_as(e))? {
            match wire::decode(body).map_err(|e| self.fail_as(e))? {
                Notice::Callback { .. } => self.early.push_back(body.to_vec()),
                Notice::Answered { serial, answer } if Some(serial) == awaited => {
                    return Ok(Some(Ok(answer)))
                }
                Notice::Answered { serial, .. } => {
                    return Err(self.fail_as(format!("an answer to service {serial}")))
                }
                Notice::Refused { serial, exception } if Some(serial) == awaited => {
                    return Ok(Some(Err(exception)))
                }
                Notice::Refused {
                    serial: 0,
                    exception,
                } => return Err(self.fail(exception)),
                Notice::Refused { exception, .. } => self.late.push_back(exception),
            }
        }
        Ok(None)
    }

    /// Waits for bytes and takes them in; `false` if none came in time.
    pub(super) fn wait(&mut self, timeout: Duration) -> Result<bool, RtiException> {
        if timeout.is_zero() {
            let mut interest = [Interest::new(&self.stream, true, false)];
            let ready = poll(&mut interest, Some(timeout));
            if ready.map_err(|e| self.fail_as(e))? == 0 {
                return Ok(false);
            }
        } else if self.timeout != Some(timeout) {
            let set = self.stream.set_read_timeout(Some(timeout));
            set.map_err(|e| self.fail_as(e))?;
            self.timeout = Some(timeout);
        }
        self.fill()
    }

    fn fill(&mut self) -> Result<bool, RtiException> {
        match self.reader.fill(&mut self.stream) {
            Ok(0) => Err(match self.reader.finish() {
                Ok(()) => self.fail_as("the RTI has closed the connection"),
                Err(e) => self.fail_as(e),
            }),
            Ok(_) => Ok(true),
            Err(e) => match e.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(false),
                ErrorKind::Interrupted => Ok(true),
                _ => Err(self.fail_as(e)),
            },
        }
    }
}
