//! The connections: input cut into frames, output queued and never waited for.

use super::executions::Standing;
use super::federation::Post;
use crate::wire::{self, Callback, FrameReader, Notice};
use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A connection's place in the table; given again once the connection is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub usize);

/// Who makes a queue longer than this is not read from ...
const HIGH: usize = 4 << 20;
/// ... until the queue is as short as this again.
const LOW: usize = 1 << 20;

/// One connection.
pub(super) struct Link {
    pub(super) stream: TcpStream,
    pub(super) reader: FrameReader,
    pub(super) standing: Standing,
    /// Receivers that have to catch up before more is read from this one.
    waits_for: Vec<LinkId>,
    queue: Vec<u8>,
    sent: usize,
    /// Since when the other end has taken nothing of the queue.
    blocked_since: Option<Instant>,
}

impl Link {
    /// Bytes that the other end has yet to take.
    pub(super) fn queued(&self) -> usize {
        self.queue.len() - self.sent
    }

    /// Whether more may be read from it.
    pub(super) fn may_send(&self) -> bool {
        self.waits_for.is_empty()
    }

    /// Whether the other end has taken nothing for so long.
    pub(super) fn stalled(&self, limit: Duration) -> bool {
        self.blocked_since.is_some_and(|t| t.elapsed() > limit)
    }

    /// Sends what the socket takes at once.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let mut progress = false;
        while self.sent < self.queue.len() {
            match self.stream.write(&self.queue[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => {
                    self.sent += n;
                    progress = true;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    self.tidy();
                    if progress || self.blocked_since.is_none() {
                        self.blocked_since = Some(Instant::now());
                    }
                    return Ok(());
                }
                Err(e) => return Err(e),
            }
        }
        self.queue.clear();
        self.sent = 0;
        self.blocked_since = None;
        Ok(())
    }

    /// Drops what was sent once it is most of the queue, so that moving the rest costs little.
    fn tidy(&mut self) {
        if self.sent > self.queue.len() / 2 {
            self.queue.drain(..self.sent);
            self.sent = 0;
        }
    }
}

/// All connections.
#[derive(Default)]
pub(super) struct Links {
    slots: Vec<Option<Link>>,
    free: Vec<usize>,
    /// Whose queues have got something since they were last flushed.
    touched: Vec<LinkId>,
}

impl Links {
    pub(super) fn add(&mut self, stream: TcpStream) -> LinkId {
        let link = Link {
            stream,
            reader: FrameReader::default(),
            standing: Standing::default(),
            waits_for: Vec::new(),
            queue: Vec::new(),
            sent: 0,
            blocked_since: None,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(link);
        LinkId(slot)
    }

    pub(super) fn get(&mut self, id: LinkId) -> Option<&mut Link> {
        self.slots.get_mut(id.0)?.as_mut()
    }

    pub(super) fn remove(&mut self, id: LinkId) -> Option<Link> {
        let link = self.slots.get_mut(id.0)?.take()?;
        self.free.push(id.0);
        Some(link)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (LinkId, &Link)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(i, slot)| Some((LinkId(i), slot.as_ref()?)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Queues a notice. It fits a frame: what it quotes has come in one, and names and reasons are bounded.
    pub(super) fn notify(&mut self, to: LinkId, notice: &Notice) {
        if let Some(link) = self.slots.get_mut(to.0).and_then(Option::as_mut) {
            if wire::append(&mut link.queue, notice).is_ok() {
                self.touched.push(to);
            }
        }
    }

    /// Whose queues have got something; the list starts anew.
    pub(super) fn take_touched(&mut self) -> Vec<LinkId> {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// The sender waits for those of its receivers whose queues have got too long.
    pub(super) fn hold_back(&mut self, sender: LinkId, receivers: &[LinkId]) {
        for &receiver in receivers {
            let long = self.get(receiver).is_some_and(|l| l.queued() > HIGH);
            if let (true, Some(link)) = (long, self.get(sender)) {
                link.waits_for.push(receiver);
            }
        }
    }

    /// Lets those be read from again whose receivers have caught up.
    pub(super) fn release(&mut self) {
        let behind = self.iter().filter(|(_, link)| link.queued() > LOW);
        let behind: Vec<LinkId> = behind.map(|(id, _)| id).collect();
        for link in self.slots.iter_mut().flatten() {
            link.waits_for.retain(|receiver| behind.contains(receiver));
        }
    }
}

impl Post for Links {
    fn post(&mut self, to: &[LinkId], callback: Callback) {
        let notice = Notice::Callback { callback };
        let Some((&first, rest)) = to.split_first() else {
            return;
        };
        if rest.is_empty() {
            return self.notify(first, &notice);
        }
        // Encoded once for all.
        let mut frame = Vec::new();
        if wire::append(&mut frame, &notice).is_err() {
            return;
        }
        for &id in to {
            if let Some(link) = self.get(id) {
                link.queue.extend_from_slice(&frame);
                self.touched.push(id);
            }
        }
    }
}
