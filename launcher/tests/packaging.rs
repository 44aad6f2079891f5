//! The scripts that prepare a machine and install the program.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{stderr, stdout, Scratch};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("packaging")
        .join(name)
}

/// Runs enable-component.sh; returns what it says.
fn enable(component: &str, codename: &str, dir: &Path) -> String {
    let mut c = Command::new("sh");
    c.arg(script("enable-component.sh"))
        .args([component, codename])
        .arg(dir);
    let out = c.output().unwrap();
    assert!(out.status.success(), "{}", stderr(&out));
    stdout(&out)
}

const SOURCES: &str = "\
# Debian's own.


Types: deb deb-src
URIs: mirror
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /key

Types: deb
URIs: mirror
Suites: bookworm-security
Components: main non-free

Types: deb
URIs: third
Suites: bookworm
Components: stable

Types: deb
URIs: third
Suites: nodistro
Components: main

Enabled: no
Types: deb
URIs: off
Suites: bookworm
Components: main
";

#[test]
fn a_component_is_enabled_once() {
    let scratch = Scratch::new();
    let list = "# comment\n\
        deb mirror bookworm main contrib # mine\n\
        deb [arch=amd64 signed-by=/key] mirror bookworm-updates main\n\
        deb-src mirror bookworm main\n\
        deb mirror bookworm main non-free\n\
        deb third cloud-bookworm main\n";
    let plain = scratch.file("sources.list", list, 0o640);
    let stanzas = scratch.file("sources.list.d/debian.sources", SOURCES, 0o644);
    let other = scratch.file("sources.list.d/other.list", "deb third other main\n", 0o644);
    let dir = plain.parent().unwrap();
    let said = enable("non-free", "bookworm", dir);
    assert_eq!(said.lines().count(), 2, "{said}");
    let expected = list
        .replace("main contrib # mine", "main contrib non-free # mine")
        .replace(
            "bookworm-updates main\n",
            "bookworm-updates main non-free\n",
        );
    assert_eq!(fs::read_to_string(&plain).unwrap(), expected);
    let after = fs::read_to_string(&stanzas).unwrap();
    assert!(
        after.contains("Components: main contrib non-free\n"),
        "{after}"
    );
    assert_eq!(after.matches("non-free").count(), 2, "{after}");
    assert_eq!(
        fs::read_to_string(&other).unwrap(),
        "deb third other main\n"
    );

    assert_eq!(enable("non-free", "bookworm", dir), "");
    assert_eq!(fs::read_to_string(&plain).unwrap(), expected);
    assert_eq!(fs::read_to_string(&stanzas).unwrap(), after);
    let left = fs::read_dir(dir.join("sources.list.d")).unwrap().count();
    assert_eq!(left, 2, "no temporary files");
}

/// install.sh and uninstall leave nothing behind, and what lies between runs.
#[test]
fn install_and_uninstall() {
    let scratch = Scratch::new();
    let target = scratch.path("release");
    let built = Path::new(env!("CARGO_BIN_EXE_sidewire"));
    fs::create_dir_all(&target).unwrap();
    for name in ["sidewire", "sidewire-run"] {
        fs::copy(built.with_file_name(name), target.join(name)).unwrap();
    }
    scratch.file("release/sidewire-bench", "", 0o755);
    let library = scratch.library(rdma_engine::abi::VERSION);
    fs::rename(library, target.join("libsidewire.so")).unwrap();
    let root = scratch.path("root");
    let act = |verb: &str| {
        let mut c = Command::new("sh");
        c.arg(script("install.sh")).arg(verb);
        c.env("TARGET", &target)
            .env("PREFIX", "/opt/sw")
            .env("LIBDIR", "/opt/sw/lib/sidewire")
            .env("DESTDIR", &root);
        let out = c.output().unwrap();
        assert!(out.status.success(), "{}", stderr(&out));
    };
    // Twice: an upgrade.
    act("install");
    act("install");
    let mut run = support::command(root.join("opt/sw/bin/sidewire"), Path::new(""));
    let out = run
        .args(["run", "sh", "-c", "echo $LD_PRELOAD"])
        .output()
        .unwrap();
    let installed = root.join("opt/sw/lib/sidewire/libsidewire.so");
    assert_eq!(stdout(&out), format!("{}\n", installed.display()));
    for file in [
        "bin/sidewire-run",
        "bin/sidewire-bench",
        "share/man/man1/sidewire-run.1",
        "share/bash-completion/completions/sidewire",
        "share/sidewire/apps/lib.sh",
        "share/doc/sidewire/README.md",
    ] {
        assert!(root.join("opt/sw").join(file).is_file(), "{file}");
    }
    act("uninstall");
    assert_eq!(files_below(&root), [] as [PathBuf; 0]);
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files
}
