//! Runs the conformance programs (see `programs/program.h`) on plain TCP and in every mixture of ends.

mod build;
mod case;
mod compare;
mod process;

pub use case::Case;

use case::{Fast, Shape};
use compare::Outcome;
use process::{Mixture, Role};
use std::path::{Path, PathBuf};

/// Where compiled programs and their runs live.
fn work_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance")
}

/// Where this process runs a case; kept only if something failed.
fn runs_dir(case: &Case) -> PathBuf {
    work_dir()
        .join("runs")
        .join(format!("{}-{}", case.name, std::process::id()))
}

/// A number from the environment, for the runner's own settings.
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Only these mixtures, where `SIDEWIRE_TEST_MIXTURES` names any (`native,both,client,server`).
fn wanted(mixture: Mixture) -> bool {
    match std::env::var("SIDEWIRE_TEST_MIXTURES") {
        Ok(names) => names.split(',').any(|name| name == mixture.name()),
        Err(_) => true,
    }
}

/// Runs one case: natively for what is expected, then in all mixtures, and panics with a report of what differs.
pub fn check(case: &Case) {
    let program = build::program(case);
    let repeat = setting("SIDEWIRE_TEST_REPEAT").unwrap_or(1).max(1);
    let expected = process::run(case, &program, Mixture::Native, 0);
    if let Some(complaint) = expected.setup_failure() {
        panic!(
            "{}: the native run failed: {complaint}\n{}",
            case.name,
            expected.report()
        );
    }
    let mut failures = Vec::new();
    for round in 0..repeat {
        if wanted(Mixture::Native) && round > 0 {
            failures.extend(difference(
                case,
                &program,
                Mixture::Native,
                round,
                &expected,
            ));
        }
        for &mixture in case.mixtures() {
            if wanted(mixture) {
                failures.extend(difference(case, &program, mixture, round, &expected));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{}\nall output is in {}",
        failures.join("\n"),
        runs_dir(case).display()
    );
    let _ = std::fs::remove_dir_all(runs_dir(case));
}

/// The report of one run that is not like the native one, or whose streams were not on the wire they should be on.
fn difference(
    case: &Case,
    program: &Path,
    mixture: Mixture,
    round: u64,
    expected: &Outcome,
) -> Option<String> {
    let seen = process::run(case, program, mixture, round + 1);
    let mut complaints = seen.differences(expected);
    if mixture != Mixture::Native {
        complaints.extend(wire_complaints(case, mixture, &seen));
    }
    if complaints.is_empty() {
        return None;
    }
    Some(format!(
        "{}, mixture {}, round {round}:\n{}\n{}",
        case.name,
        mixture.name(),
        complaints.join("\n"),
        seen.report()
    ))
}

/// Were the streams moved where both ends could, and left alone where one could not?
fn wire_complaints(case: &Case, mixture: Mixture, seen: &Outcome) -> Vec<String> {
    let mut complaints = Vec::new();
    for ended in &seen.roles {
        let role = ended.role;
        if !mixture.accelerates(role) || case.silent.contains(&role) {
            continue;
        }
        let Some(stats) = &ended.stats else {
            complaints.push(format!("{}: no statistics were written", role.name()));
            continue;
        };
        let both_ends = mixture == Mixture::Both;
        match case.fast {
            Fast::Yes if both_ends && stats.fast == 0 => {
                complaints.push(format!(
                    "{}: no stream became fast: {}",
                    role.name(),
                    stats.text
                ));
            }
            Fast::No if stats.fast != 0 => {
                complaints.push(format!(
                    "{}: a stream became fast: {}",
                    role.name(),
                    stats.text
                ));
            }
            _ if !both_ends && stats.fast != 0 => complaints.push(format!(
                "{}: a stream became fast though the other end is plain: {}",
                role.name(),
                stats.text
            )),
            _ => {}
        }
    }
    complaints
}

/// Every program must be listed, and every listed program must exist.
pub fn check_list(listed: &[&str]) {
    let mut files: Vec<String> = std::fs::read_dir(build::source_dir())
        .expect("programs/ can be read")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".c")?.to_owned()))
        .collect();
    let mut names: Vec<String> = listed.iter().map(|&name| name.to_owned()).collect();
    files.sort();
    names.sort();
    let unlisted: Vec<_> = files.iter().filter(|name| !names.contains(name)).collect();
    let missing: Vec<_> = names.iter().filter(|name| !files.contains(name)).collect();
    assert!(
        unlisted.is_empty() && missing.is_empty(),
        "programs without a line in conformance.rs: {unlisted:?}; lines without a program: {missing:?}"
    );
}

impl Case {
    /// The mixtures that make sense for the case's roles.
    fn mixtures(&self) -> &'static [Mixture] {
        match self.shape {
            Shape::Pair => &[Mixture::Both, Mixture::Client, Mixture::Server],
            Shape::OneProcess => &[Mixture::Both],
        }
    }

    fn roles(&self) -> &'static [Role] {
        match self.shape {
            Shape::Pair => &[Role::Server, Role::Client],
            Shape::OneProcess => &[Role::SelfContained],
        }
    }
}
