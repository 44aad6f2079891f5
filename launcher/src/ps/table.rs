//! `sidewire ps` as text, in at most 120 columns.

use super::size::bytes;
use super::{Found, Row};
use crate::view::stream::shown;
use std::fmt::Write;

/// No line is longer, in characters.
pub const WIDTH: usize = 120;

/// The whole text.
pub fn table(found: &Found) -> String {
    let mut text = String::new();
    if found.rows.is_empty() {
        text.push_str("no streams\n");
    } else {
        let head = [
            "PID", "PROGRAM", "OUT", "IN", "WIRE", ">SHM", ">TCP", "<SHM", "<TCP", "MSGS",
        ];
        line(&mut text, &head.map(str::to_owned), "LOCAL  REMOTE");
    }
    for row in &found.rows {
        stream(&mut text, row);
    }
    for note in notes(found) {
        let _ = writeln!(text, "{note}");
    }
    text
}

/// What the rows don't show, a line each.
pub fn notes(found: &Found) -> Vec<String> {
    let plural = |n: u64, one: &str, many: &str| match n {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    };
    let mut notes = Vec::new();
    if found.unreadable > 0 {
        let who = plural(found.unreadable, "process", "processes");
        notes.push(format!(
            "{who} of other users cannot be looked into (root can)"
        ));
    }
    if found.strange > 0 {
        let what = plural(found.strange, "arena is", "arenas are");
        notes.push(format!("{what} of another version of Sidewire, or broken"));
    }
    notes
}

fn stream(text: &mut String, row: &Row) {
    let s = &row.stream;
    let pid = match row.pid {
        0 => "-".to_owned(),
        pid => pid.to_string(),
    };
    let more = if s.settled { "+" } else { "" };
    let cells = [
        pid,
        row.program.chars().take(12).collect(),
        s.out.state.text().to_owned(),
        s.inward.state.text().to_owned(),
        s.wire().to_owned(),
        bytes(s.out.wire_bytes),
        bytes(s.out.tcp_bytes),
        bytes(s.inward.wire_bytes),
        bytes(s.inward.tcp_bytes),
        bytes(s.out.messages.saturating_add(s.inward.messages)) + more,
    ];
    let addresses = format!("{}  {}", shown(s.local), shown(s.remote));
    line(text, &cells, &addresses);
    if let Some(reason) = s.reason_text() {
        let _ = writeln!(text, "{:8}{reason}", "");
    }
}

/// One row: fixed columns, then the addresses, on a line of their own if they
/// are long.
fn line(text: &mut String, cells: &[String; 10], addresses: &str) {
    let [pid, program, out, inward, wire, a, b, c, d, messages] = cells;
    let mut fixed = format!(
        "{pid:>7} {program:<12} {out:<5} {inward:<5} {wire:<4} {a:>5} {b:>5} {c:>5} {d:>5} {messages:>5}"
    );
    if fixed.chars().count() + 2 + addresses.len() > WIDTH {
        fixed.push_str("\n       ");
    }
    let _ = writeln!(text, "{fixed}  {addresses}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::stream::Traffic;
    use crate::view::{State, Stream};

    fn traffic(state: State) -> Traffic {
        Traffic {
            state,
            wire_bytes: u64::MAX,
            tcp_bytes: u64::MAX,
            messages: u64::MAX,
        }
    }

    fn row(local: &str, remote: &str) -> Row {
        let stream = Stream::example(
            local.parse().unwrap(),
            remote.parse().unwrap(),
            traffic(State::Fast),
            traffic(State::Ready),
        );
        Row {
            pid: 4_194_304,
            program: "a-rather-long-name".into(),
            arena: 1,
            stream,
        }
    }

    #[test]
    fn nothing_is_wider_than_a_screen() {
        let six = "[1111:2222:3333:4444:5555:6666:7777:8888]:65535";
        let found = Found {
            rows: vec![
                row("255.255.255.255:65535", "255.255.255.255:65535"),
                row(six, six),
            ],
            unreadable: 1,
            strange: 2,
        };
        let text = table(&found);
        assert!(text.lines().all(|l| l.chars().count() <= WIDTH), "{text}");
        assert!(
            text.contains(&format!("\n         {six}  {six}\n")),
            "{text}"
        );
        assert!(text.contains("1 process of other users"), "{text}");
        let v4 = text.lines().nth(1).unwrap();
        assert!(v4.contains("Fast") && v4.ends_with(":65535"), "{text}");
    }
}
