//! Which streams may leave TCP: rule files, read here, decided by in the library.
//!
//! The first matching rule wins. Rules are numbered through all files, in this
//! order: `--policy FILE` (or SIDEWIRE_POLICY_FILE), the user's, the system's. In a
//! run within a run the inner one's file comes before all that the outer one had.

pub mod address;
pub mod compile;
pub mod file;

use crate::cli::PolicyCommand;
use crate::{code, complain, print};
use file::Rule;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Names the file whose rules come first.
pub const FILE_VARIABLE: &str = "SIDEWIRE_POLICY_FILE";
/// The system's rules.
pub const SYSTEM: &str = "/etc/sidewire/policy.toml";
/// The user's rules, in XDG_CONFIG_HOME.
pub const USER: &str = "sidewire/policy.toml";
/// As many rules as the library has room for in one process, and one less: its
/// last place means «there were more».
pub const MAX_RULES: usize = 127;
/// The kernel takes no longer string (MAX_ARG_STRLEN), its name included.
const MAX_COMPILED: usize = 100_000;

/// A rule file that cannot be used.
#[derive(Debug)]
pub struct Wrong {
    pub message: String,
    /// It was named for this run, not found at a usual place.
    pub named: bool,
}

/// A rule and where it stands.
#[derive(Debug)]
pub struct Numbered {
    pub rule: Rule,
    pub file: PathBuf,
}

/// Reads and merges all rules; `first` is the file of `--policy`.
pub fn load(first: Option<&Path>) -> Result<Vec<Numbered>, Wrong> {
    let mut files: Vec<_> = named(first).map(|p| (p, true)).into_iter().collect();
    files.extend(usual().map(|p| (p, false)));
    read(files)
}

/// The compiled rules of the file that was named for this run, then those of the
/// launcher around us (`outer`), which has read the files at the usual places.
/// `None`: `outer` stays as it is.
pub fn load_before(first: Option<&Path>, outer: &str) -> Result<Option<String>, Wrong> {
    let Some(path) = named(first) else {
        return Ok(None);
    };
    let rules = read(vec![(path.clone(), true)])?;
    let text = compile::before(&rules, outer);
    let count = text.matches(';').count();
    if count > MAX_RULES || text.len() > MAX_COMPILED {
        let message = format!(
            "{}: too many rules ({count} with those of the launcher around, at most {MAX_RULES})",
            path.display()
        );
        let named = true;
        return Err(Wrong { message, named });
    }
    Ok(Some(text))
}

fn read(files: Vec<(PathBuf, bool)>) -> Result<Vec<Numbered>, Wrong> {
    let mut rules = Vec::new();
    for (path, named) in files {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if !named && is_absent(&path, e.kind()) => continue,
            Err(e) => {
                let message = format!("rule file {}: {e}", path.display());
                return Err(Wrong { message, named });
            }
        };
        let parsed = file::parse(&text).map_err(|why| Wrong {
            message: format!("{}: {why}", path.display()),
            named,
        })?;
        let numbered = |rule| Numbered {
            rule,
            file: path.clone(),
        };
        rules.extend(parsed.into_iter().map(numbered));
        let long = rules.len() > MAX_RULES || compile::compile(&rules).len() > MAX_COMPILED;
        if long {
            let n = rules.len();
            let message = format!(
                "{}: too many rules ({n} so far, at most {MAX_RULES})",
                path.display()
            );
            return Err(Wrong { message, named });
        }
    }
    Ok(rules)
}

/// Is a file at a usual place simply not there? Neither is a user's file that
/// the user may not read: it is another one's, whose HOME was kept (su, cron).
/// The system's must be readable: it may forbid something.
fn is_absent(path: &Path, why: ErrorKind) -> bool {
    match why {
        ErrorKind::NotFound | ErrorKind::NotADirectory => true,
        ErrorKind::PermissionDenied => path != Path::new(SYSTEM),
        _ => false,
    }
}

/// The file that was named for this run.
fn named(first: Option<&Path>) -> Option<PathBuf> {
    let variable = || std::env::var_os(FILE_VARIABLE).filter(|v| !v.is_empty());
    first
        .map(Path::to_owned)
        .or_else(|| variable().map(PathBuf::from))
}

/// The files at the usual places, in their order.
fn usual() -> impl Iterator<Item = PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    let config =
        absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|h| h.join(".config")));
    let user = config.map(|c| c.join(USER));
    user.into_iter().chain([SYSTEM.into()])
}

/// `sidewire policy ...`; returns the exit code.
pub fn command(command: &PolicyCommand) -> i32 {
    let PolicyCommand::Check { file } = command;
    match load(file.as_deref()) {
        Ok(rules) => print(listing(&rules).as_bytes()).err().unwrap_or(0),
        Err(wrong) => {
            complain(&wrong.message);
            code::USAGE
        }
    }
}

fn listing(rules: &[Numbered]) -> String {
    let mut text = String::new();
    let mut file: Option<&Path> = None;
    for (i, numbered) in rules.iter().enumerate() {
        if file != Some(&numbered.file) {
            file = Some(&numbered.file);
            text.push_str(&format!("{}\n", numbered.file.display()));
        }
        text.push_str(&format!("{:>5}  {}\n", i + 1, numbered.rule));
    }
    if rules.is_empty() {
        text.push_str("no rules\n");
    }
    text.push_str("other  verdict auto\n");
    text
}
