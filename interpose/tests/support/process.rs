//! Starts the roles of a case, waits for them with a hard limit, and collects what they left.

use super::case::Case;
use super::compare::{Ended, Outcome, Stats};
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Which end of the stream a process is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Server,
    Client,
    SelfContained,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::Server => "server",
            Role::Client => "client",
            Role::SelfContained => "self",
        }
    }
}

/// Which ends are accelerated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mixture {
    Native,
    Both,
    Client,
    Server,
}

impl Mixture {
    pub(super) fn name(self) -> &'static str {
        match self {
            Mixture::Native => "native",
            Mixture::Both => "both",
            Mixture::Client => "client",
            Mixture::Server => "server",
        }
    }

    pub(super) fn accelerates(self, role: Role) -> bool {
        match self {
            Mixture::Native => false,
            Mixture::Both => true,
            Mixture::Client => role == Role::Client,
            Mixture::Server => role == Role::Server,
        }
    }
}

/// The preload library, beside this test in the target directory.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the test knows where it is");
    let profile = test
        .parent()
        .and_then(Path::parent)
        .expect("target/PROFILE/deps/TEST");
    let library = profile.join("libsidewire.so");
    assert!(
        library.exists(),
        "build the workspace first (cargo build): {} is missing",
        library.display()
    );
    library
}

/// Has the program start with the library; streams are offered after their first message.
fn accelerate(command: &mut Command, case: &Case, mixture: Mixture, stats: &Path) {
    command.env("LD_PRELOAD", library());
    command.env("SIDEWIRE_UPGRADE_AFTER", "1");
    command.env("SIDEWIRE_STATS_FILE", stats);
    let chaos = super::setting("SIDEWIRE_TEST_CHAOS").or(case.chaos.map(u64::from));
    if let (Some(calls), Mixture::Both) = (chaos, mixture) {
        command.env("SIDEWIRE_CHAOS", calls.to_string());
    }
}

/// A started role, killed with its whole group if it is dropped before it ended.
struct Running {
    role: Role,
    child: Child,
    dir: PathBuf,
    ended: bool,
}

impl Running {
    fn start(
        case: &Case,
        program: &Path,
        mixture: Mixture,
        role: Role,
        dir: &Path,
        address: &str,
    ) -> Running {
        let file = |suffix| {
            File::create(dir.join(format!("{}.{suffix}", role.name()))).expect("a file can be made")
        };
        let mut command = Command::new(program);
        command.arg(role.name());
        if role != Role::SelfContained {
            command.arg(address);
        }
        // What this process itself may have been started with must not reach the programs.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name == "LD_PRELOAD" || (name.starts_with("SIDEWIRE_") && name != "SIDEWIRE_LOG") {
                command.env_remove(name);
            }
        }
        // The program's own watchdog comes first: it can tell where it hung.
        command.env("SIDEWIRE_TEST_LIMIT", (case.limit - 5).to_string());
        if let Some((plain, both)) = case.bytes {
            let bytes = if mixture == Mixture::Both {
                both
            } else {
                plain
            };
            let bytes = super::setting("SIDEWIRE_TEST_BYTES").unwrap_or(bytes);
            command.env("SIDEWIRE_TEST_BYTES", bytes.to_string());
        }
        if mixture.accelerates(role) {
            accelerate(
                &mut command,
                case,
                mixture,
                &dir.join(format!("{}.stats", role.name())),
            );
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .process_group(0)
            .spawn()
            .expect("the program can be started");
        Running {
            role,
            child,
            dir: dir.to_owned(),
            ended: false,
        }
    }

    /// Waits until `deadline`, then kills; and collects what is there.
    fn finish(mut self, deadline: Instant) -> Ended {
        let mut pause = Duration::from_millis(1);
        let status = loop {
            match self.child.try_wait().expect("a child can be waited for") {
                Some(status) => break Some(status),
                None if Instant::now() >= deadline => break None,
                None => std::thread::sleep(pause),
            }
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        self.ended = status.is_some();
        let read = |suffix: &str| {
            let path = self.dir.join(format!("{}.{suffix}", self.role.name()));
            String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
        };
        let how = match status {
            None => "killed by the runner: it took too long".to_owned(),
            Some(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit {code}"),
                (_, signal) => format!("signal {}", signal.unwrap_or(0)),
            },
        };
        Ended {
            role: self.role,
            how,
            stdout: read("stdout"),
            stderr: read("stderr"),
            stats: Stats::parse(&read("stats")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            // SAFETY: a process group that this test made, whose leader has not been waited for.
            unsafe { libc::kill(-(self.child.id() as i32), libc::SIGKILL) };
            let _ = self.child.wait();
        }
    }
}

/// Waits for the server's port. None if the server ended, or took too long, before it had one.
fn port(server: &mut Running, portfile: &Path, deadline: Instant) -> Option<String> {
    loop {
        if let Ok(port) = std::fs::read_to_string(portfile) {
            return Some(port.trim().to_owned());
        }
        if Instant::now() > deadline || !matches!(server.child.try_wait(), Ok(None)) {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// One run of a case in one mixture.
pub(super) fn run(case: &Case, program: &Path, mixture: Mixture, round: u64) -> Outcome {
    let dir = super::runs_dir(case).join(format!("{}-{round}", mixture.name()));
    std::fs::create_dir_all(&dir).expect("the directory can be made");
    let deadline = Instant::now() + Duration::from_secs(case.limit.into());
    let portfile = dir.join("port");
    let mut roles = Vec::new();
    let mut address = portfile.to_string_lossy().into_owned();
    for &role in case.roles() {
        let mut running = Running::start(case, program, mixture, role, &dir, &address);
        if role == Role::Server {
            match port(&mut running, &portfile, deadline) {
                Some(port) => address = port,
                None => {
                    roles.push(running);
                    break;
                }
            }
        }
        roles.push(running);
    }
    Outcome {
        roles: roles
            .into_iter()
            .map(|running| running.finish(deadline))
            .collect(),
    }
}
