//! A child process that cannot outlive its welcome.
//!
//! Each child leads a process group of its own, has a time limit, writes its output to files (a pipe would block
//! a program that nobody reads, and would stay open in its grandchildren), dies with us, and is ended by its own
//! process id, with everything that it has started, at the latest when its handle is dropped.

use crate::registry;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

pub struct Child {
    inner: std::process::Child,
    pidfd: OwnedFd,
    name: String,
    deadline: Instant,
    files: PathBuf,
    status: Option<ExitStatus>,
}

/// What a finished child has left.
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    pub status: ExitStatus,
}

impl Output {
    /// The last thing that the program said, for a failure message.
    pub fn last_words(&self) -> String {
        let said = |text: &str| {
            text.lines()
                .map(str::trim)
                .rfind(|line| !line.is_empty())
                .map(str::to_owned)
        };
        said(&self.stderr)
            .or_else(|| said(&self.stdout))
            .unwrap_or_else(|| "no output".into())
    }
}

impl Child {
    /// Start `command` in `dir`, on `cpu` only if one is given, to live for `limit` at most.
    pub fn start(
        mut command: Command,
        name: &str,
        dir: &Path,
        cpu: Option<usize>,
        limit: Duration,
    ) -> io::Result<Child> {
        let files = dir.join(name);
        command.stdin(std::process::Stdio::null());
        command
            .stdout(File::create(files.with_extension("out"))?)
            .stderr(File::create(files.with_extension("err"))?);
        command.current_dir(dir).process_group(0);
        let set = cpu.map(single_cpu);
        // SAFETY: between fork and exec only async-signal-safe system calls are made, on memory made before.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if let Some(set) = &set {
                    libc::sched_setaffinity(0, size_of_val(set), set);
                }
                Ok(())
            });
        }
        let mut inner = command.spawn()?;
        let pid = inner.id() as i32;
        registry::add(pid);
        let pidfd = pidfd_open(pid).inspect_err(|_| {
            let _ = inner.kill();
            let _ = inner.wait();
            registry::remove(pid);
        })?;
        Ok(Child {
            inner,
            pidfd,
            name: name.into(),
            deadline: Instant::now() + limit,
            files,
            status: None,
        })
    }

    fn pid(&self) -> i32 {
        self.inner.id() as i32
    }

    /// Wait for the end of the program; a program that exceeds its limit or fails is an error.
    pub fn wait(mut self) -> Result<Output, String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if !self.exits_within(left) {
            self.ask_to_end();
            return Err(format!("{} exceeded its time limit", self.name));
        }
        let output = self
            .output()
            .map_err(|error| format!("{}: {error}", self.name))?;
        match (output.status.code(), output.status.signal()) {
            (Some(0), _) => Ok(output),
            (Some(code), _) => Err(format!(
                "{} ended with {code}: {}",
                self.name,
                output.last_words()
            )),
            (None, signal) => Err(format!(
                "{} died of signal {}",
                self.name,
                signal.unwrap_or(0)
            )),
        }
    }

    /// End a server: SIGTERM to it alone, so that what it has forked can finish and write its statistics;
    /// then everything that is left of its group.
    pub fn stop(mut self) -> Result<Output, String> {
        self.ask_to_end();
        self.output()
            .map_err(|error| format!("{}: {error}", self.name))
    }

    /// SIGTERM, and a while to tidy up.
    fn ask_to_end(&self) {
        // SAFETY: kill takes no pointers; the child has not been reaped, so the pid is its own.
        unsafe { libc::kill(self.pid(), libc::SIGTERM) };
        self.exits_within(Duration::from_secs(3));
    }

    /// Has the child ended within `limit`? Sleeps in the kernel meanwhile: a poll of ours would take CPU
    /// time from what is measured.
    fn exits_within(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now()).as_millis() as i32;
            let mut entry = libc::pollfd {
                fd: self.pidfd.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: one valid pollfd.
            if unsafe { libc::poll(&mut entry, 1, left) } > 0 {
                return true;
            }
            if left == 0 || registry::interrupted() {
                return false;
            }
        }
    }

    fn output(&mut self) -> io::Result<Output> {
        self.finish();
        let read = |extension| {
            let bytes = std::fs::read(self.files.with_extension(extension))?;
            Ok::<_, io::Error>(String::from_utf8_lossy(&bytes).into_owned())
        };
        let status = self.status.ok_or_else(|| io::Error::other("not reaped"))?;
        Ok(Output {
            stdout: read("out")?,
            stderr: read("err")?,
            status,
        })
    }

    /// Reap the leader, give its children a moment to end by themselves, and end the rest.
    fn finish(&mut self) {
        if self.status.is_some() {
            return;
        }
        let pid = self.pid();
        if !self.exits_within(Duration::ZERO) {
            registry::signal_group(pid, libc::SIGKILL);
        }
        self.status = self.inner.wait().ok();
        // The number of a group stays taken while anybody is in it, so this cannot hit a stranger.
        for _ in 0..100 {
            if !registry::signal_group(pid, 0) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        registry::signal_group(pid, libc::SIGKILL);
        registry::remove(pid);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.status.is_none() {
            registry::signal_group(self.pid(), libc::SIGKILL);
            self.finish();
        }
    }
}

fn pidfd_open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: the system call takes no pointers and returns a descriptor that nobody else owns.
    unsafe {
        match libc::syscall(libc::SYS_pidfd_open, pid, 0) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd as i32)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn single_cpu(cpu: usize) -> libc::cpu_set_t {
    // SAFETY: cpu_set_t is plain data, for which all zeroes is the empty set; CPU_SET checks its index.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn shell(script: &str, limit: Duration) -> (Scratch, Child) {
        let dir = Scratch::new().unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let child = Child::start(command, "sh", dir.path(), None, limit).unwrap();
        (dir, child)
    }

    #[test]
    fn returns_what_the_program_said() {
        let (_dir, child) = shell("echo out; echo err >&2", Duration::from_secs(5));
        let output = child.wait().unwrap();
        assert_eq!(
            (output.stdout.as_str(), output.stderr.as_str()),
            ("out\n", "err\n")
        );
    }

    #[test]
    fn reports_failure_with_the_last_words() {
        let (_dir, child) = shell("echo no such luck >&2; exit 3", Duration::from_secs(5));
        assert_eq!(child.wait().err().unwrap(), "sh ended with 3: no such luck");
    }

    #[test]
    fn ends_a_program_that_takes_too_long_with_its_children() {
        let (dir, child) = shell("sleep 60 & echo $! >pid; wait", Duration::from_millis(300));
        assert!(child.wait().err().unwrap().contains("time limit"));
        let pid: i32 = std::fs::read_to_string(dir.path().join("pid"))
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        // A killed orphan may linger as a zombie until its new parent reaps it.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(
            stat.is_empty() || stat.contains(") Z "),
            "still alive: {stat}"
        );
    }
}
