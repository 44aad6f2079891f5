//! A rule file: TOML, a list of `[[rule]]`.

use super::address::Place;
use clap::ValueEnum;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::ffi::CString;
use std::fmt;

/// One rule. What is left out matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    #[serde(deserialize_with = "program")]
    pub program: Option<String>,
    pub user: Option<User>,
    #[serde(deserialize_with = "place")]
    pub local: Option<Place>,
    #[serde(deserialize_with = "place")]
    pub remote: Option<Place>,
    pub direction: Direction,
    pub verdict: Verdict,
    /// Messages on a stream before it looks for a faster wire.
    pub upgrade_after: Option<u64>,
}

/// A user, looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub uid: u32,
    /// As the file has it.
    pub name: String,
}

/// Who opened the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The peer.
    In,
    /// This program.
    Out,
    /// Either.
    #[default]
    Any,
}

/// Which wires may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The fastest that is there
    #[default]
    Auto,
    /// None: everything stays on TCP
    Tcp,
    /// Shared memory only
    Shm,
    /// RDMA only, which this version does not have: everything stays on TCP
    Rdma,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    #[serde(default)]
    rule: Vec<Rule>,
}

/// Reads a file's text; the error names line and column.
pub fn parse(text: &str) -> Result<Vec<Rule>, String> {
    match toml::from_str::<Rules>(text) {
        Ok(rules) => Ok(rules.rule),
        Err(e) => {
            let (line, column) = place_of(text, e.span().map_or(0, |s| s.start));
            let message = e.message().replace('\n', ", ");
            Err(format!("line {line}, column {column}: {message}"))
        }
    }
}

/// Line and column of a byte offset, both from 1 on.
fn place_of(text: &str, offset: usize) -> (usize, usize) {
    let before: String = text
        .char_indices()
        .take_while(|(at, _)| *at < offset)
        .map(|(_, c)| c)
        .collect();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}

fn program<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(d)?;
    // The library's limit; see its policy module.
    if text.is_empty() || text.len() > 255 {
        return Err(D::Error::custom("a program's pattern has 1 to 255 bytes"));
    }
    Ok(Some(text))
}

fn place<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Place>, D::Error> {
    let text = String::deserialize(d)?;
    text.parse().map(Some).map_err(D::Error::custom)
}

impl<'de> Deserialize<'de> for User {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<User, D::Error> {
        struct NameOrNumber;
        impl Visitor<'_> for NameOrNumber {
            type Value = User;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                write!(f, "a user's name or number")
            }
            fn visit_i64<E: Error>(self, n: i64) -> Result<User, E> {
                let uid = u32::try_from(n);
                let uid = uid.map_err(|_| E::invalid_value(Unexpected::Signed(n), &self))?;
                let name = uid.to_string();
                Ok(User { uid, name })
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<User, E> {
                match uid_of(name) {
                    Some(uid) => Ok(User {
                        uid,
                        name: name.to_owned(),
                    }),
                    None => Err(E::custom(format!("there is no user `{name}`"))),
                }
            }
        }
        d.deserialize_any(NameOrNumber)
    }
}

/// Looks a user up by name.
fn uid_of(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: getpwnam(3) with a C string; this process has one thread, so
    // that nobody else overwrites its static result before we have read it.
    unsafe { libc::getpwnam(name.as_ptr()).as_ref() }.map(|p| p.pw_uid)
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&crate::cli::name_of(*self))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "verdict {}", self.verdict)?;
        if let Some(program) = &self.program {
            write!(f, "  program {program}")?;
        }
        if let Some(User { uid, name }) = &self.user {
            write!(f, "  user {name}")?;
            if *name != uid.to_string() {
                write!(f, " ({uid})")?;
            }
        }
        if let Some(local) = &self.local {
            write!(f, "  local {local}")?;
        }
        if let Some(remote) = &self.remote {
            write!(f, "  remote {remote}")?;
        }
        match self.direction {
            Direction::In => write!(f, "  direction in")?,
            Direction::Out => write!(f, "  direction out")?,
            Direction::Any => {}
        }
        if let Some(n) = self.upgrade_after {
            write!(f, "  upgrade_after {n}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_rule() {
        let text = r#"
            [[rule]]
            program = "netserver"
            user = "root"
            local = "10.0.0.0/8:4000-5000"
            remote = "[::1]:80"
            direction = "in"
            verdict = "shm"
            upgrade_after = 5

            [[rule]]
        "#;
        let rules = parse(text).unwrap();
        assert_eq!(
            rules[0].to_string(),
            "verdict shm  program netserver  user root (0)  local 10.0.0.0/8:4000-5000  \
             remote [::1]/128:80  direction in  upgrade_after 5"
        );
        assert_eq!(rules[1], Rule::default());
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, expected) in [
            ("[[rule]]\nverdict = \"fast\"", "line 2, column 11: "),
            (
                "[[rule]]\nlocal = \"1.2.3\"",
                "line 2, column 9: `1.2.3` is no IP",
            ),
            (
                "[[rule]]\nuser = \"nobody-at-all\"",
                "line 2, column 8: there is no user",
            ),
            ("[[rule]]\nuser = -1", "line 2, column 8: "),
            ("[[rule]]\nupgrade_after = -1", "line 2, column 17: "),
            (
                "[[rule]]\n  verdit = \"tcp\"",
                "line 2, column 3: unknown field",
            ),
            ("[[rules]]", "line 1, column 3: unknown field"),
            ("[[rule]\n", "line 1, column 8: "),
            ("[[rule]]\nprogram = \"\"", "line 2, column 11: "),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
