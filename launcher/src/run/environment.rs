//! What the launcher tells the library, through the environment.

use crate::cli::{name_of, LogLevel, Profile, RunArgs};
use crate::policy::file::Verdict;
use crate::policy::{self, Wrong};
use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The variables that the library reads.
pub mod names {
    /// `latency`, `adaptive` or `frugal`.
    pub const PROFILE: &str = "SIDEWIRE_PROFILE";
    /// `auto`, `tcp`, `shm` or `rdma`.
    pub const TRANSPORT: &str = "SIDEWIRE_TRANSPORT";
    /// Messages before an offer, a decimal number.
    pub const UPGRADE_AFTER: &str = "SIDEWIRE_UPGRADE_AFTER";
    /// The compiled rules.
    pub const POLICY: &str = "SIDEWIRE_POLICY";
    /// `error`, `warn`, `info` or `debug`.
    pub const LOG: &str = "SIDEWIRE_LOG";
    /// Path of the arena that the family shares.
    pub const ARENA: &str = "SIDEWIRE_ARENA";
    /// The dynamic linker's own.
    pub const PRELOAD: &str = "LD_PRELOAD";
}

/// The compiled rules for this run; `None` if there are none, or if those that
/// were inherited hold on.
pub fn policy(file: Option<&Path>) -> Result<Option<String>, Wrong> {
    // Empty is as good as not set: it must not hide the system's rules.
    if let Some(outer) = env::var_os(names::POLICY).filter(|v| !v.is_empty()) {
        // What is no text is nothing that the library could read either.
        return policy::load_before(file, &outer.to_string_lossy());
    }
    let rules = policy::load(file)?;
    Ok((!rules.is_empty()).then(|| policy::compile::compile(&rules)))
}

/// The library may be preloaded already (by a launcher around us): then its streams
/// stay on TCP too.
pub fn stay_plain() {
    env::set_var(names::TRANSPORT, "tcp");
}

/// Are the variables, where they are set, what the library reads? It has nobody to
/// tell that it does not understand them. `Err` says which is wrong.
pub fn check() -> Result<(), String> {
    fn known<T: clap::ValueEnum>(word: &str) -> bool {
        T::from_str(word, false).is_ok()
    }
    type Check = fn(&str) -> bool;
    let checks: [(&str, Check); 4] = [
        (names::PROFILE, known::<Profile>),
        (names::TRANSPORT, known::<Verdict>),
        (names::UPGRADE_AFTER, |word| word.parse::<u64>().is_ok()),
        (names::LOG, known::<LogLevel>),
    ];
    for (name, fits) in checks {
        let Some(value) = env::var_os(name).filter(|v| !v.is_empty()) else {
            continue;
        };
        if !value.to_str().is_some_and(fits) {
            let value = value.to_string_lossy();
            return Err(format!("{name} cannot be '{value}'"));
        }
    }
    Ok(())
}

/// Sets what was given on the command line; what was inherited stays otherwise.
pub fn set_options(args: &RunArgs, rules: Option<String>) {
    let given = [
        (names::PROFILE, args.profile.map(name_of)),
        (names::TRANSPORT, args.transport.map(name_of)),
        (
            names::UPGRADE_AFTER,
            args.upgrade_after.map(|n| n.to_string()),
        ),
        (names::LOG, args.log.map(name_of)),
        (names::POLICY, rules),
    ];
    // Its rules are in SIDEWIRE_POLICY now: a launcher within this one must not put
    // them before those of a file that was named in between.
    env::remove_var(policy::FILE_VARIABLE);
    for (name, value) in given {
        if let Some(value) = value {
            env::set_var(name, value);
        }
    }
}

/// Puts the library before whatever is preloaded already.
pub fn set_preload(library: &Path) {
    let others = env::var_os(names::PRELOAD).unwrap_or_default();
    env::set_var(names::PRELOAD, preload(library, others));
}

fn preload(library: &Path, others: OsString) -> OsString {
    let ours = library.as_os_str();
    let mut value = ours.as_bytes().to_vec();
    let separator = |b: &u8| *b == b':' || *b == b' ';
    for other in others.as_bytes().split(separator) {
        if !other.is_empty() && other != ours.as_bytes() {
            value.push(b':');
            value.extend_from_slice(other);
        }
    }
    OsString::from_vec(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_stay_behind_ours() {
        let with = |others: &str| preload(Path::new("/l/s.so"), others.into());
        assert_eq!(with(""), "/l/s.so");
        assert_eq!(with("libjemalloc.so.2"), "/l/s.so:libjemalloc.so.2");
        assert_eq!(with("a.so b.so:c.so"), "/l/s.so:a.so:b.so:c.so");
        assert_eq!(with("a.so:/l/s.so"), "/l/s.so:a.so");
    }
}
