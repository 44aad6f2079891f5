//! The two sides of each pair, and how a program is put under Sidewire.

use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    Plain,
    Sidewire,
}

/// The best way to accelerate that was found beside our own executable.
pub enum Accelerator {
    /// `sidewire run -- PROGRAM`, as a user does it.
    Launcher(PathBuf),
    /// There is no launcher: preload the library ourselves.
    Preload(PathBuf),
    /// Neither is there: both sides are plain, which at least tests the harness.
    Missing,
}

impl Accelerator {
    /// `$SIDEWIRE` if it names a launcher, else what lies beside us: build tree, install prefix and package
    /// all put launcher and library where one of these looks.
    pub fn find() -> Accelerator {
        if let Some(path) = std::env::var_os("SIDEWIRE").map(PathBuf::from) {
            // Programs run in directories of their own, so a relative name has to be made absolute.
            return Accelerator::Launcher(path.canonicalize().unwrap_or(path));
        }
        let here = std::env::current_exe()
            .ok()
            .and_then(|exe| exe.parent().map(Path::to_owned))
            .unwrap_or_default();
        let existing = |names: &[&str]| {
            names
                .iter()
                .map(|name| here.join(name))
                .find(|path| path.is_file())
        };
        if let Some(launcher) = existing(&["sidewire"]) {
            return Accelerator::Launcher(launcher);
        }
        match existing(&[
            "libsidewire.so",
            "../lib/libsidewire.so",
            "../lib/sidewire/libsidewire.so",
        ]) {
            Some(library) => Accelerator::Preload(library),
            None => Accelerator::Missing,
        }
    }

    /// A command that runs `program` on this side; accelerated processes append to `stats` when they end.
    pub fn command(&self, side: Side, program: &Path, stats: &Path) -> Command {
        let mut command = match (side, self) {
            (Side::Sidewire, Accelerator::Launcher(launcher)) => {
                let mut command = Command::new(launcher);
                command.arg("run").arg("--").arg(program);
                command
            }
            _ => Command::new(program),
        };
        // Whoever runs the whole benchmark under Sidewire must still get a plain side.
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_ours(name)) {
            command.env_remove(name);
        }
        if let (Side::Sidewire, Accelerator::Preload(library)) = (side, self) {
            command.env("LD_PRELOAD", library);
        }
        if side == Side::Sidewire {
            for (name, value) in std::env::vars_os().filter(|(name, _)| is_tuning(name)) {
                command.env(name, value);
            }
            command.env("SIDEWIRE_STATS_FILE", stats);
        }
        command
    }

    pub fn line(&self) -> String {
        match self {
            Accelerator::Launcher(path) => format!("`{} run -- PROGRAM`", path.display()),
            Accelerator::Preload(path) => format!("LD_PRELOAD={} (no launcher beside this program)", path.display()),
            Accelerator::Missing => "NOT FOUND (no sidewire or libsidewire.so beside this program): both sides are plain".into(),
        }
    }
}

fn is_ours(name: &std::ffi::OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| name == "LD_PRELOAD" || name.starts_with("SIDEWIRE"))
}

/// Settings such as `SIDEWIRE_PROFILE` are the accelerated side's, and only its.
fn is_tuning(name: &std::ffi::OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| name.starts_with("SIDEWIRE_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_side_is_plain() {
        let launcher = Accelerator::Launcher("/opt/sidewire".into());
        let command = launcher.command(Side::Plain, Path::new("/bin/true"), Path::new("stats"));
        assert_eq!(command.get_program(), "/bin/true");
        assert!(command.get_envs().all(|(_, value)| value.is_none()));
    }

    #[test]
    fn the_launcher_goes_in_front() {
        let launcher = Accelerator::Launcher("/opt/sidewire".into());
        let command = launcher.command(Side::Sidewire, Path::new("/bin/true"), Path::new("stats"));
        assert_eq!(command.get_program(), "/opt/sidewire");
        assert_eq!(
            command.get_args().collect::<Vec<_>>(),
            ["run", "--", "/bin/true"]
        );
    }
}
