//! Compiles the programs, each once for as long as its source does not change.

use super::case::Case;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

pub(super) fn source_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

/// The compiled program of a case.
pub(super) fn program(case: &Case) -> PathBuf {
    let source = source_dir().join(case.name).with_extension("c");
    let binary = super::work_dir().join("bin").join(case.name);
    let own = modified(&source);
    assert!(own.is_some(), "{} is missing", source.display());
    let newest = headers().map(|path| modified(&path)).max().max(Some(own));
    if Some(modified(&binary)) > newest {
        return binary;
    }
    compile(case, &source, &binary);
    binary
}

/// What any of the programs may include.
fn headers() -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(source_dir()).expect("the programs' directory");
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|e| e == "h"))
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}

/// Compiled under another name and renamed, since test processes may run side by side.
fn compile(case: &Case, source: &Path, binary: &Path) {
    std::fs::create_dir_all(super::work_dir().join("bin")).expect("the directory can be made");
    let beside = binary.with_extension(format!("{}", std::process::id()));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "gcc".to_owned());
    let output = Command::new(&compiler)
        .args(["-O2", "-Wall", "-Wextra", "-pthread"])
        .args(case.flags)
        .arg(source)
        .arg("-o")
        .arg(&beside)
        .output()
        .unwrap_or_else(|error| panic!("{compiler} cannot be run: {error}"));
    assert!(
        output.status.success(),
        "{}: {compiler} failed:\n{}",
        case.name,
        String::from_utf8_lossy(&output.stderr)
    );
    std::fs::rename(&beside, binary).expect("the program can be renamed");
}
