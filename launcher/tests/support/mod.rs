//! What the tests share: the launcher, scratch directories, stand-in programs.
#![allow(dead_code)]

use rdma_engine::arena::{self, ArenaRef};
use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A directory of this test's own, removed at its end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("launcher-{}-{n}", std::process::id());
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// Compiles C with the given flags.
    pub fn compile(&self, name: &str, source: &str, flags: &[&str]) -> PathBuf {
        let c = self.file(&format!("{name}.c"), source, 0o644);
        let out = self.path(name);
        let status = Command::new("cc")
            .args(flags)
            .arg("-o")
            .arg(&out)
            .arg(c)
            .status();
        assert!(status.expect("a C compiler").success());
        out
    }

    /// A library that does nothing, of this version of the layout.
    pub fn library(&self, version: u32) -> PathBuf {
        let source = format!("const unsigned SIDEWIRE_ABI_VERSION = {version};");
        self.compile("libstand-in.so", &source, &["-shared", "-fPIC"])
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A command with no settings of Sidewire, no rule files, and this library.
pub fn command(program: impl AsRef<OsStr>, library: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.as_bytes().starts_with(b"SIDEWIRE") || name == "LD_PRELOAD" {
            command.env_remove(name);
        }
    }
    command.env("SIDEWIRE_LIBRARY", library);
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command.stdin(Stdio::null());
    // Whoever started the tests may ignore signals (nohup, a shell's `&`), and a shell can't trap those.
    // SAFETY: signal(2) is async-signal-safe, and touches no memory.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGPIPE] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    command
}

/// `sidewire ARGS` with a stand-in library.
pub fn sidewire(scratch: &Scratch, args: &[&str]) -> Command {
    let library = scratch.library(rdma_engine::abi::VERSION);
    let mut command = command(env!("CARGO_BIN_EXE_sidewire"), &library);
    command.args(args);
    command
}

/// The real library, beside the launcher.
pub fn real_library() -> PathBuf {
    let dir = Path::new(env!("CARGO_BIN_EXE_sidewire")).parent().unwrap();
    let path = dir.join("libsidewire.so");
    assert!(
        path.is_file(),
        "{} is not built: build the whole workspace first (`make test` does)",
        path.display()
    );
    path
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Asserts that there is exactly this one line, apart from what stands for `*`.
pub fn assert_line(text: &str, pattern: &str) {
    let mut rest = text.strip_suffix('\n').unwrap_or_else(|| panic!("{text}"));
    assert!(!rest.contains('\n'), "more than one line: {text}");
    for (i, part) in pattern.split('*').enumerate() {
        let at = rest
            .find(part)
            .unwrap_or_else(|| panic!("{text} is not {pattern}"));
        assert!(i > 0 || at == 0, "{text} is not {pattern}");
        rest = &rest[at + part.len()..];
    }
    assert!(
        rest.is_empty() || pattern.ends_with('*'),
        "{text} is not {pattern}"
    );
}

/// Waits until `ready` gives something.
pub fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Maps the arena that a running launcher has made for its program, as the
/// library in the program would.
pub fn arena_of(launcher: &Child) -> ArenaRef {
    let dir = format!("/proc/{}/fd", launcher.id());
    let path = wait_for("the launcher's arena", || {
        let links = fs::read_dir(&dir).ok()?.flatten();
        links.map(|l| l.path()).find(|p| {
            let to = fs::read_link(p).unwrap_or_default();
            to.as_os_str()
                .as_bytes()
                .starts_with(b"/memfd:sidewire-arena")
        })
    });
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    arena::open(&path).expect("a sound arena").1
}

/// The letter of a process's state, as in `ps`.
pub fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
