//! What a run left behind, and in what it differs from the native run.

use super::process::Role;

/// What the library says about one process when it ends, summed over the lines of its statistics file.
pub(super) struct Stats {
    pub fast: u64,
    pub text: String,
}

impl Stats {
    /// None if nothing was written. A process that starts others appends a line for each.
    pub fn parse(text: &str) -> Option<Stats> {
        let mut fast = 0;
        for line in text.lines() {
            let value: serde_json::Value = serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("statistics are not JSON: {error}: {line}"));
            fast += value["fast"].as_u64().unwrap_or(0);
        }
        (!text.is_empty()).then(|| Stats {
            fast,
            text: text.trim_end().to_owned(),
        })
    }
}

/// One role after its end.
pub(super) struct Ended {
    pub role: Role,
    /// "exit 0", "signal 9"
    pub how: String,
    pub stdout: String,
    pub stderr: String,
    pub stats: Option<Stats>,
}

pub(super) struct Outcome {
    pub roles: Vec<Ended>,
}

impl Outcome {
    /// A reason why this run cannot serve as the expected one: a step that is not under test failed.
    pub fn setup_failure(&self) -> Option<String> {
        self.roles.iter().find_map(|ended| {
            let broken = match ended.how.strip_prefix("exit ") {
                Some(code) => code != "0",
                None => !ended.how.starts_with("signal"),
            };
            broken.then(|| format!("{}: {}", ended.role.name(), ended.how))
        })
    }

    /// Each way in which this run differs from `expected`.
    pub fn differences(&self, expected: &Outcome) -> Vec<String> {
        let mut found = Vec::new();
        for (index, wanted) in expected.roles.iter().enumerate() {
            let role = wanted.role.name();
            let Some(seen) = self.roles.get(index) else {
                found.push(format!("{role}: was not started"));
                continue;
            };
            if seen.how != wanted.how {
                found.push(format!(
                    "{role}: ended with {}, natively with {}",
                    seen.how, wanted.how
                ));
            }
            if seen.stdout != wanted.stdout {
                found.push(format!(
                    "{role}: printed (- natively, + here)\n{}",
                    lines_that_differ(wanted, seen)
                ));
            }
            if seen.stderr != wanted.stderr {
                found.push(format!("{role}: other messages on stderr than natively"));
            }
        }
        found
    }

    /// All that was seen, for a human.
    pub fn report(&self) -> String {
        let mut text = String::new();
        for ended in &self.roles {
            text += &format!("  {} ended with {}\n", ended.role.name(), ended.how);
            for line in ended
                .stderr
                .lines()
                .filter(|line| !line.is_empty())
                .take(20)
            {
                text += &format!("    stderr: {line}\n");
            }
            if let Some(stats) = &ended.stats {
                text += &format!("    stats: {}\n", stats.text);
            }
        }
        text
    }
}

/// Line by line; a missing line on one side moves the others, so the first few tell most.
fn lines_that_differ(wanted: &Ended, seen: &Ended) -> String {
    const SHOWN: usize = 6;
    let (wanted, seen): (Vec<_>, Vec<_>) = (
        wanted.stdout.lines().collect(),
        seen.stdout.lines().collect(),
    );
    let differing: Vec<String> = (0..wanted.len().max(seen.len()))
        .filter(|&index| wanted.get(index) != seen.get(index))
        .map(|index| {
            let line = |of: &[&str]| of.get(index).copied().unwrap_or("(nothing)").to_owned();
            format!("    - {}\n    + {}", line(&wanted), line(&seen))
        })
        .collect();
    let mut text = differing[..differing.len().min(SHOWN)].join("\n");
    if differing.len() > SHOWN {
        text += &format!("\n    and {} lines more", differing.len() - SHOWN);
    }
    text
}
