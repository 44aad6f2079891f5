//! Can a library be preloaded into this program?

use crate::elf::{self, Elf, Kind};
use std::ffi::{CString, OsStr};
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Scripts whose interpreter is a script: the kernel goes no deeper either.
const MAX_SCRIPTS: usize = 5;

/// The answer, with one line for the user where it is no.
#[derive(Debug, PartialEq, Eq)]
pub enum Fitness {
    /// Yes, as far as one can see.
    Fit,
    /// The program itself runs on plain TCP; those that it starts may be fit.
    Itself(String),
    /// The library must not be preloaded: it would only cause messages, or
    /// keep the program from starting.
    Never(String),
}

/// Looks at the program at `path` (for a script, at its interpreter).
pub fn of(path: &Path) -> Fitness {
    let mut path = path.to_owned();
    for _ in 0..MAX_SCRIPTS {
        // Unreadable but executable: nothing can be seen, and nothing is said.
        let Ok(file) = File::open(&path) else {
            return Fitness::Fit;
        };
        match elf::kind(&file) {
            Kind::Script(interpreter) => path = OsStr::from_bytes(&interpreter).into(),
            Kind::Bits32 => return never(&path, "is a 32-bit program"),
            Kind::Foreign => return never(&path, "is for another kind of machine"),
            // A script without #!: execvp gives it to /bin/sh.
            Kind::Other => return Fitness::Fit,
            Kind::Native => return native(&path, &file),
        }
    }
    Fitness::Fit
}

/// The interpreter of the program at `path` (a script's, or its dynamic linker) that
/// keeps it from starting, since it is not there or cannot be executed.
pub fn bad_interpreter(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_SCRIPTS {
        let file = File::open(&path).ok()?;
        let next = match elf::kind(&file) {
            Kind::Script(interpreter) => interpreter,
            Kind::Native => Elf::new(&file)?.interpreter()?,
            _ => return None,
        };
        path = OsStr::from_bytes(&next).into();
        if !super::is_executable(&path) {
            return Some(path);
        }
    }
    None
}

fn native(path: &Path, file: &File) -> Fitness {
    let Some(interpreter) = Elf::new(file).and_then(|e| e.interpreter()) else {
        if is_linker(path) {
            return Fitness::Fit;
        }
        return itself(path, "is statically linked");
    };
    let interpreter = Path::new(OsStr::from_bytes(&interpreter));
    if !is_linker(interpreter) {
        return never(path, "uses another C library");
    }
    let Ok(meta) = file.metadata() else {
        return Fitness::Fit;
    };
    match privileges(path, &meta) {
        Some(what) => itself(path, what),
        None => Fitness::Fit,
    }
}

/// Is this glibc's dynamic linker?
fn is_linker(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_bytes().starts_with(b"ld-linux") || name.as_bytes().starts_with(b"ld-2.")
}

fn itself(path: &Path, what: &str) -> Fitness {
    Fitness::Itself(format!("{} {what}: it runs on plain TCP", path.display()))
}

fn never(path: &Path, what: &str) -> Fitness {
    Fitness::Never(format!("{} {what}: it runs on plain TCP", path.display()))
}

/// The privileges that the program gains when it starts, for which the dynamic
/// linker ignores preloads.
fn privileges(path: &Path, meta: &Metadata) -> Option<&'static str> {
    let c = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: system calls with a C string, a zeroed plain C struct and a null
    // buffer of size 0.
    let (uid, gid, nosuid, capabilities) = unsafe {
        let mut fs: libc::statvfs = std::mem::zeroed();
        let mounted = libc::statvfs(c.as_ptr(), &mut fs) == 0;
        let nosuid = mounted && fs.f_flag & libc::ST_NOSUID != 0;
        let no_new = libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
        let name = c"security.capability";
        let size = libc::getxattr(c.as_ptr(), name.as_ptr(), std::ptr::null_mut(), 0);
        (libc::getuid(), libc::getgid(), nosuid || no_new, size > 0)
    };
    if nosuid {
        return None;
    }
    let mode = meta.mode();
    let set_gid = libc::S_ISGID | libc::S_IXGRP;
    if mode & libc::S_ISUID != 0 && meta.uid() != uid {
        Some("is set-uid")
    } else if mode & set_gid == set_gid && meta.gid() != gid {
        Some("is set-gid")
    } else if capabilities && uid != 0 {
        Some("has file capabilities")
    } else {
        None
    }
}
