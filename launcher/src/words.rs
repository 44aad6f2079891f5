//! The words of `--log`, for people who don't know how a stream moves.

use rdma_engine::abi::log::Event;

/// What a user should take from an event's line; with the level's name and the event's
/// text this is one row of the manual's list.
pub fn meaning(event: Event) -> &'static str {
    match event {
        Event::Loaded => "a process has started with the library",
        Event::Disabled => "no stream of this process leaves TCP, for the reason in brackets",
        Event::Exec => "the process becomes another program",
        Event::Fork => "a child process (pid) shares the process's streams",
        Event::Opened => "a TCP connection: made here (outgoing 1) or accepted here (0)",
        Event::Closed => {
            "the last close on this side; bytes of both directions by shared memory \
             (wire_bytes) and by TCP (tcp_bytes)"
        }
        Event::Ruled => "the rule with this number decides; `sidewire policy check` lists them",
        Event::Offered => {
            "the stream has carried enough messages, and asks whether the other end runs \
             Sidewire; it has asked as often before"
        }
        Event::Attached => {
            "the other end is found and proven, and shares memory with this one, which made \
             it (creator 1) or was passed it (0); bytes go by TCP still"
        }
        Event::Refused => "not now, for the reason in brackets; it may be tried again",
        Event::Pinned => "never again, for the reason in brackets",
        Event::Promised => {
            "the other end may send by shared memory from now on; TCP has brought tcp_bytes so far"
        }
        Event::Revoked => "the other end may do so no more, and had not begun",
        Event::CutOver => {
            "this end sends by shared memory from now on: the direction is Fast; TCP has \
             carried its first tcp_bytes"
        }
        Event::CutOverSeen => {
            "the other end sends by shared memory from now on, behind its first tcp_bytes"
        }
        Event::CutBack => "this end sends by TCP again, for the reason in brackets",
        Event::CutBackSeen => "the other end sends by TCP again",
        Event::Recalled => {
            "the program here does something that only the kernel can do, so that the other \
             end has to send by TCP again"
        }
        Event::Returned => {
            "whoever reads here next may not run Sidewire: what is unread in shared memory is \
             the other end's to send again by TCP"
        }
        Event::Detached => {
            "the other end has run another program (exec); that one is looked for as if the \
             connection were new"
        }
        Event::Resent => "what the other end had left unread in shared memory went by TCP",
        Event::PeerGone => {
            "the other end has closed or shut the connection (orderly 1), or its process has \
             ended without (0)"
        }
        Event::Broken => {
            "the other end has written what can't be: the connection is reset; please report it"
        }
        Event::Trace => "for developers",
        Event::Unknown => "the library is newer than the launcher",
    }
}

/// What stands in every line, and numbers that several events have.
pub const LINE: &str = "A line has the seconds since the start, the process, the level, the stream's addresses \
(local > remote) and what has happened. `epoch` counts how often a direction has been on shared memory. \
A level includes those before it; error is the first, debug the last.";

/// The rows: level, text with the names of its numbers, meaning.
pub fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let shown = |e: &&Event| !matches!(e, Event::Trace | Event::Unknown);
    Event::ALL
        .iter()
        .filter(shown)
        .map(|e| (e.level().name(), e.text(), meaning(*e)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdma_engine::abi::log::Arg;

    #[test]
    fn every_number_of_a_line_is_explained() {
        for event in Event::ALL {
            if matches!(event, Event::Trace | Event::Unknown) {
                continue;
            }
            for arg in event.args() {
                let (name, text) = match arg {
                    Arg::Number("epoch") => ("`epoch`", LINE),
                    // «asked as often before».
                    Arg::Number("tries before") => ("before", meaning(*event)),
                    // «the rule with this number».
                    Arg::Number(name) => (name, meaning(*event)),
                    Arg::Reason => ("reason in brackets", meaning(*event)),
                    Arg::Pid => ("(pid)", meaning(*event)),
                    Arg::Fd | Arg::No => continue,
                };
                assert!(text.contains(name), "{name} of «{}»", event.text());
            }
        }
    }
}
