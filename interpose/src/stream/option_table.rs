//! `docs/options.md`, written from the lists.

use super::flag_list::{Flag, Meaning, RECEIVING, SENDING};
use super::option_list::{Entry, Fate, SOCKET, TCP};
use rdma_engine::abi::reason::Reason;
use std::fmt::Write;

const HEAD: &str = "\
# Flags and options

What each flag of send(2) and recv(2), and each socket option of socket(7) and tcp(7), comes to on a Fast stream.
Written from the library's own lists: `SIDEWIRE_WRITE_DOCS=1 cargo test -p sidewire-interpose --lib option_table`.

- **kernel**: the call's effect on the TCP connection is the kernel's, and the wire needs none.
- **emulated**: the wire does the same.
- **pinned**: the stream goes back to TCP, where the kernel does it; the reason is what `sidewire ps` shows.

An option that is set before the stream is connected, or on the listening socket, counts as well. Options of ip(7) and
ipv6(7) are the kernel's: they concern addresses, routes, packets, and control data of datagrams. An option that is not
listed here pins the stream if the kernel takes it. A flag that is not listed means nothing to TCP.
";

/// Control calls have hooks of their own, which do what stands here.
const CONTROLS: &[(&str, u32, &str, &str)] = &[
    (
        "FIONREAD, SIOCINQ",
        0x541b,
        "emulated",
        "the kernel's count and the ring's",
    ),
    (
        "TIOCOUTQ, SIOCOUTQ",
        0x5411,
        "emulated",
        "the kernel's count and the ring's",
    ),
    ("SIOCOUTQNSD", 0x894b, "kernel", "on the wire all is sent"),
    (
        "SIOCATMARK",
        0x8905,
        "emulated",
        "what came by the wire stands before the mark",
    ),
    (
        "FIONBIO",
        0x5421,
        "emulated",
        "asked of the kernel before a wait",
    ),
    (
        "FIOASYNC",
        0x5452,
        "pinned (O_ASYNC) unless 0",
        "the signal comes of the kernel's own wake-ups",
    ),
    ("FIOSETOWN", 0x8901, "kernel", "concerns SIGIO and SIGURG"),
    ("SIOCSPGRP", 0x8902, "kernel", "concerns SIGIO and SIGURG"),
    ("FIOGETOWN", 0x8903, "kernel", ""),
    ("SIOCGPGRP", 0x8904, "kernel", ""),
    ("SIOCGSTAMP", 0x8906, "kernel", "times of datagrams"),
    ("SIOCGSTAMPNS", 0x8907, "kernel", "times of datagrams"),
];

fn pinned(reason: Reason) -> String {
    format!("pinned ({})", reason.text().trim_start_matches("pinned: "))
}

fn option(entry: &Entry) -> String {
    let what = match entry.fate {
        Fate::Kernel => "kernel".into(),
        Fate::Emulated => "emulated".into(),
        Fate::Always(reason) => pinned(reason),
        Fate::Unless(idle, reason) => {
            let idle: Vec<_> = idle.iter().map(ToString::to_string).collect();
            format!("{} unless {}", pinned(reason), idle.join(" or "))
        }
    };
    row(entry.name, &entry.number.to_string(), &what, entry.note)
}

fn flag(flag: &Flag) -> String {
    let what = match flag.meaning {
        Meaning::Nothing => "kernel".into(),
        Meaning::Emulated => "emulated".into(),
        Meaning::Call => "kernel: its own call".into(),
        Meaning::Refused => "kernel: refused".into(),
        Meaning::Pins(reason) => pinned(reason),
    };
    row(flag.name, &format!("{:#x}", flag.bit), &what, flag.note)
}

fn row(name: &str, number: &str, what: &str, note: &str) -> String {
    let note = if note.is_empty() {
        "tells something"
    } else {
        note
    };
    format!("| {name} | {number} | {what} | {note} |\n")
}

fn table(text: &mut String, title: &str, rows: impl Iterator<Item = String>) {
    let columns = "| name | number | on a Fast stream | how, or why |\n|---|---|---|---|\n";
    write!(text, "\n## {title}\n\n{columns}").unwrap();
    rows.for_each(|row| text.push_str(&row));
}

#[test]
fn docs_say_what_the_lists_say() {
    let mut text = HEAD.to_string();
    table(&mut text, "Flags on sending", SENDING.iter().map(flag));
    table(&mut text, "Flags on receiving", RECEIVING.iter().map(flag));
    table(
        &mut text,
        "Options of the socket (SOL_SOCKET)",
        SOCKET.iter().map(option),
    );
    table(
        &mut text,
        "Options of TCP (IPPROTO_TCP)",
        TCP.iter().map(option),
    );
    let controls = CONTROLS.iter();
    table(
        &mut text,
        "Control calls (ioctl(2))",
        controls.map(|(name, number, what, note)| row(name, &format!("{number:#x}"), what, note)),
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/options.md");
    if std::env::var_os("SIDEWIRE_WRITE_DOCS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).is_ok_and(|now| now == text),
        "docs/options.md differs from the lists; write it again: \
         SIDEWIRE_WRITE_DOCS=1 cargo test -p sidewire-interpose --lib option_table"
    );
}

/// A conformance program has each row, by name.
#[test]
fn each_row_is_tested() {
    let kept = include_str!("../../tests/programs/options_kept.c");
    let pinned = include_str!("../../tests/programs/options_pinned.c");
    for entry in SOCKET.iter().chain(TCP) {
        let program = match entry.fate {
            Fate::Kernel | Fate::Emulated => kept,
            Fate::Always(_) | Fate::Unless(..) => pinned,
        };
        let name = format!("\"{}\"", entry.name);
        assert!(program.contains(&name), "{name} is not tested");
    }
    let flags = include_str!("../../tests/programs/flags_all.c");
    for flag in SENDING.iter().chain(RECEIVING) {
        assert!(flags.contains(flag.name), "{} is not tested", flag.name);
    }
}

#[test]
fn lists_are_sorted() {
    for list in [SOCKET, TCP] {
        assert!(list.windows(2).all(|pair| pair[0].number < pair[1].number));
    }
}
