//! What a run has come to: text for people, a line of JSON for programs.

use crate::ps::size::bytes;
use crate::view::totals::Totals;
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;

/// `--stats`: a few lines on stderr.
pub fn print(totals: &Totals) {
    let _ = io::stderr().write_all(text(totals).as_bytes());
}

fn text(t: &Totals) -> String {
    let mut lines = Vec::new();
    let open = match t.open {
        0 => String::new(),
        n => format!(", {n} still open"),
    };
    let plural = if t.streams == 1 { "" } else { "s" };
    lines.push(format!(
        "{} TCP stream{plural}, {} fast{open}",
        t.streams, t.fast
    ));
    for (word, shm, tcp) in [
        ("sent", t.shm_out, t.tcp_out),
        ("received", t.shm_in, t.tcp_in),
    ] {
        if shm > 0 || tcp > 0 {
            let (shm, tcp) = (bytes(shm), bytes(tcp));
            lines.push(format!("{word} {shm} by shared memory, {tcp} by TCP"));
        }
    }
    lines.extend(reasons(t));
    lines.iter().map(|l| format!("sidewire: {l}\n")).collect()
}

fn reasons(t: &Totals) -> impl Iterator<Item = String> + '_ {
    let line = |(text, n): (&&str, &u64)| format!("not fast: {n} x {text}");
    t.reasons.iter().map(line)
}

/// `--stats-file`: one line of JSON, in place of what was in the file.
pub fn write(path: &Path, child: libc::pid_t, totals: &Totals) -> io::Result<()> {
    #[derive(Serialize)]
    struct Line<'a> {
        pid: libc::pid_t,
        #[serde(flatten)]
        totals: &'a Totals,
    }
    let line = Line { pid: child, totals };
    let mut text = serde_json::to_string(&line)?;
    text.push('\n');
    std::fs::write(path, text)
}

/// `--require` was given in vain.
pub fn nothing_accelerated(totals: &Totals, obstacles: &[String]) {
    let mut text = String::from("sidewire: nothing was accelerated\n");
    let mut why: Vec<String> = obstacles.to_vec();
    why.extend(reasons(totals));
    if why.is_empty() {
        why.push("the program opened no TCP stream".to_owned());
    }
    for line in why {
        text.push_str(&format!("sidewire: {line}\n"));
    }
    let _ = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary() {
        let totals = Totals {
            streams: 3,
            fast: 2,
            shm_in: 5,
            tcp_in: 0,
            shm_out: 0,
            tcp_out: 3 << 20,
            reasons: [("policy: tcp", 1)].into(),
            open: 1,
        };
        let expected = "sidewire: 3 TCP streams, 2 fast, 1 still open\n\
            sidewire: sent 0 by shared memory, 3.0M by TCP\n\
            sidewire: received 5 by shared memory, 0 by TCP\n\
            sidewire: not fast: 1 x policy: tcp\n";
        assert_eq!(text(&totals), expected);
        assert_eq!(
            text(&Totals::default()),
            "sidewire: 0 TCP streams, 0 fast\n"
        );
    }
}
