//! The federate library.
//!
//! ```text
//!   program ──▶ RtiAmbassador   services ──▶ book (what is mine?) ──▶ connection ──▶ rtig
//!   program ◀── FederateAmbassador ◀──────── evoke_callback ◀──────── connection ◀── rtig
//! ```
//!
//! Everything happens in the calling thread; there is none behind it. Services wait for the RTI's answer, except
//! [`update_attribute_values`](RtiAmbassador::update_attribute_values) and
//! [`send_interaction`](RtiAmbassador::send_interaction), which are checked here and sent; should the RTI refuse one all the
//! same, the next [`evoke_callback`](RtiAmbassador::evoke_callback) says so. Callbacks come only within that one. A federate
//! that is dropped without having resigned is resigned by the RTI, as lost.

mod ambassador;
mod book;
mod connection;
mod services;

pub use ambassador::FederateAmbassador;

use crate::wire::{self, Notice, Service, PROTOCOL};
use crate::RtiException;
use book::Book;
use connection::Connection;
use std::net::ToSocketAddrs;
use std::time::{Duration, Instant};

/// The RTI ambassador: a federate's access to the RTI.
pub struct RtiAmbassador {
    connection: Connection,
    book: Book,
}

impl RtiAmbassador {
    /// Connects to an `rtig` (connect).
    pub fn connect(address: impl ToSocketAddrs) -> Result<Self, RtiException> {
        let opened = Connection::open(address);
        let mut connection = opened.map_err(|e| RtiException::internal(format!("connect: {e}")))?;
        let protocol = PROTOCOL;
        connection.call(Service::Connect { protocol })?;
        let book = Book::default();
        Ok(Self { connection, book })
    }

    /// evokeCallback: delivers one callback, which it waits for at most so long; whether there was one.
    pub fn evoke_callback(
        &mut self,
        timeout: Duration,
        federate: &mut impl FederateAmbassador,
    ) -> Result<bool, RtiException> {
        if let Some(exception) = self.connection.late.pop_front() {
            return Err(exception);
        }
        if let Some(body) = self.connection.early.pop_front() {
            self.deliver(&body, federate)?;
            return Ok(true);
        }
        self.connection.check()?;
        let (start, mut left) = (Instant::now(), timeout);
        loop {
            // Away from the connection, so that the callback can borrow from it.
            let mut reader = std::mem::take(&mut self.connection.reader);
            let outcome = match reader.next_frame() {
                Ok(None) => Ok(false),
                Ok(Some(body)) => self.deliver(body, federate).map(|()| true),
                Err(e) => Err(self.connection.fail(RtiException::internal(e.to_string()))),
            };
            self.connection.reader = reader;
            if outcome? {
                return Ok(true);
            }
            if !self.connection.wait(left)? {
                return Ok(false);
            }
            left = timeout.saturating_sub(start.elapsed());
        }
    }

    fn deliver(
        &mut self,
        body: &[u8],
        federate: &mut impl FederateAmbassador,
    ) -> Result<(), RtiException> {
        match wire::decode(body) {
            Ok(Notice::Callback { callback }) => {
                self.book.note(&callback);
                ambassador::dispatch(&callback, federate);
                Ok(())
            }
            Ok(Notice::Refused {
                serial: 0,
                exception,
            }) => Err(self.connection.fail(exception)),
            Ok(Notice::Refused { exception, .. }) => Err(exception),
            Ok(Notice::Answered { serial, .. }) => {
                let what = format!("an answer to service {serial}");
                Err(self.connection.fail(RtiException::internal(what)))
            }
            Err(e) => Err(self.connection.fail(RtiException::internal(e.to_string()))),
        }
    }
}
