//! Finding libsidewire.so, and telling whether it is ours.

use crate::elf::Elf;
use rdma_engine::abi::VERSION;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Its file name.
pub const NAME: &str = "libsidewire.so";
/// Names the library instead of all search.
pub const OVERRIDE: &str = "SIDEWIRE_LIBRARY";
/// What install.sh leaves, seen from the launcher, if the library is at none of the
/// places that are searched anyway.
const RECORD: &str = "../share/sidewire/libdir";
/// The symbol with the version of the shared layout.
const VERSION_SYMBOL: &str = "SIDEWIRE_ABI_VERSION";

/// The library that goes with this launcher; `Err` is what a user should read.
pub fn find() -> Result<PathBuf, String> {
    let path = match std::env::var_os(OVERRIDE).filter(|v| !v.is_empty()) {
        Some(named) => {
            let path = std::path::absolute(&named).unwrap_or_else(|_| named.into());
            if !path.is_file() {
                return Err(format!("{OVERRIDE} names no file: {}", path.display()));
            }
            path
        }
        None => search()?,
    };
    check(&path)?;
    Ok(path)
}

/// Looks beside the launcher: build tree, where `make install LIBDIR=...` has put
/// it, install prefix, package.
fn search() -> Result<PathBuf, String> {
    let own = own_path().ok_or("cannot tell where the launcher is")?;
    let dir = own.parent().unwrap_or(Path::new("/"));
    let multiarch = format!("{}-linux-gnu", std::env::consts::ARCH);
    let mut places = vec![dir.to_owned()];
    // Before the prefix, where an older installation may have left one.
    places.extend(recorded(&dir.join(RECORD)));
    places.push(dir.join("../lib/sidewire"));
    places.push(dir.join("../lib").join(multiarch).join("sidewire"));
    places
        .iter()
        .map(|place| place.join(NAME))
        .find(|p| p.is_file())
        .map(|p| p.canonicalize().unwrap_or(p))
        .ok_or_else(|| {
            let dir = dir.display();
            format!("{NAME} not found beside {dir} or in its ../lib/sidewire")
        })
}

/// The library's directory, as the file `record` has it: one line, an absolute path.
fn recorded(record: &Path) -> Option<PathBuf> {
    let text = std::fs::read(record).ok()?;
    let line = text.split(|b| *b == b'\n').next()?;
    let path = PathBuf::from(OsStr::from_bytes(line));
    path.is_absolute().then_some(path)
}

/// Our own executable, symbolic links resolved.
fn own_path() -> Option<PathBuf> {
    let own = std::env::current_exe().ok().or_else(|| {
        // Without /proc: what the kernel executed.
        // SAFETY: getauxval(3) only reads; AT_EXECFN is a C string in the
        // process's initial stack, or 0.
        let text = unsafe {
            let p = libc::getauxval(libc::AT_EXECFN) as *const libc::c_char;
            (!p.is_null()).then(|| CStr::from_ptr(p))
        }?;
        Some(PathBuf::from(OsStr::from_bytes(text.to_bytes())))
    })?;
    Some(own.canonicalize().unwrap_or(own))
}

/// Can this file be preloaded by us?
fn check(path: &Path) -> Result<(), String> {
    let shown = path.display();
    let bytes = path.as_os_str().as_bytes();
    // ld.so takes both for separators, and knows no escape.
    if bytes.iter().any(|b| *b == b':' || b.is_ascii_whitespace()) {
        return Err(format!(
            "{shown} cannot be preloaded: a blank or colon in its path"
        ));
    }
    match version(path) {
        Some(v) if v == VERSION => Ok(()),
        Some(v) => Err(format!(
            "{shown} is of another version ({v}, this launcher has {VERSION})"
        )),
        None => Err(format!("{shown} is not a {NAME} for this machine")),
    }
}

/// The version of the shared layout that a library was built with.
pub fn version(path: &Path) -> Option<u32> {
    let file = File::open(path).ok()?;
    Elf::new(&file)?.number(VERSION_SYMBOL)
}
