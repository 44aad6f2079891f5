//! The compact form of the rules that the library reads from its environment.
//! `interpose/src/policy.rs` documents it; a test holds the two together.

use super::address::Place;
use super::file::{Direction, Rule, Verdict};
use super::Numbered;
use std::fmt::Write;
use std::net::IpAddr;

/// All rules as one string.
pub fn compile(rules: &[Numbered]) -> String {
    let mut text = String::from("1");
    for numbered in rules {
        text.push(';');
        rule(&mut text, &numbered.rule);
    }
    text
}

/// `rules`, then those that stand in `outer`, a compiled string that was inherited.
/// What is there already in front is not put there again: a program that runs
/// itself under the same file must not fill the table.
pub fn before(rules: &[Numbered], outer: &str) -> String {
    let text = compile(rules);
    // Of another format: the library takes it for a rule that it cannot read, so
    // that whatever it may have forbidden stays on TCP.
    let theirs = match outer.split_once(';') {
        Some(("1", theirs)) => theirs,
        None if outer == "1" => return text,
        _ => outer,
    };
    let inside = |rest: &str| rest.is_empty() || rest.starts_with(';');
    if outer.strip_prefix(text.as_str()).is_some_and(inside) {
        return outer.to_owned();
    }
    format!("{text};{theirs}")
}

fn rule(text: &mut String, rule: &Rule) {
    text.push_str(match rule.verdict {
        Verdict::Auto => "va",
        Verdict::Tcp => "vt",
        Verdict::Shm => "vs",
        Verdict::Rdma => "vr",
    });
    if let Some(program) = &rule.program {
        text.push_str(",p");
        pattern(text, program);
    }
    if let Some(user) = &rule.user {
        let _ = write!(text, ",u{}", user.uid);
    }
    for (letter, side) in [('l', &rule.local), ('r', &rule.remote)] {
        if let Some(side) = side {
            text.push(',');
            text.push(letter);
            place(text, side);
        }
    }
    match rule.direction {
        Direction::In => text.push_str(",di"),
        Direction::Out => text.push_str(",do"),
        Direction::Any => {}
    }
    if let Some(n) = rule.upgrade_after {
        let _ = write!(text, ",n{n}");
    }
}

fn pattern(text: &mut String, program: &str) {
    for b in program.bytes() {
        if b.is_ascii_alphanumeric() || b"._-/*+".contains(&b) {
            text.push(char::from(b));
        } else {
            let _ = write!(text, "%{b:02x}");
        }
    }
}

fn place(text: &mut String, place: &Place) {
    let _ = match place.prefix {
        None => write!(text, "*"),
        Some((ip, bits)) => match ip {
            IpAddr::V4(ip) => write!(text, "{:08x}/{bits}", u32::from(ip)),
            IpAddr::V6(ip) => write!(text, "{:032x}/{bits}", u128::from(ip)),
        },
    };
    if let Some((low, high)) = place.ports {
        let _ = write!(text, ":{low}-{high}");
    }
}
