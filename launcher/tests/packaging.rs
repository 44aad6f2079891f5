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

/// What install.sh copies, as far as it runs here.
fn built(scratch: &Scratch) -> PathBuf {
    let target = scratch.path("release");
    let built = Path::new(env!("CARGO_BIN_EXE_sidewire"));
    fs::create_dir_all(&target).unwrap();
    for name in ["sidewire", "sidewire-run"] {
        fs::copy(built.with_file_name(name), target.join(name)).unwrap();
    }
    scratch.file("release/sidewire-bench", "", 0o755);
    let library = scratch.library(rdma_engine::abi::VERSION);
    fs::rename(library, target.join("libsidewire.so")).unwrap();
    target
}

/// Runs install.sh with these paths: PREFIX, LIBDIR, DESTDIR.
fn act(verb: &str, target: &Path, [prefix, libdir, destdir]: [&Path; 3]) {
    let mut c = Command::new("sh");
    c.arg(script("install.sh")).arg(verb);
    c.env("TARGET", target)
        .env("PREFIX", prefix)
        .env("LIBDIR", libdir)
        .env("DESTDIR", destdir);
    let out = c.output().unwrap();
    assert!(out.status.success(), "{}", stderr(&out));
}

/// The library that an installed launcher preloads.
fn preloaded(launcher: &Path) -> String {
    let mut run = support::command(launcher, Path::new(""));
    let out = run
        .args(["run", "sh", "-c", "echo $LD_PRELOAD"])
        .output()
        .unwrap();
    stdout(&out)
}

/// install.sh and uninstall leave nothing behind, and what lies between runs.
#[test]
fn install_and_uninstall() {
    let scratch = Scratch::new();
    let target = built(&scratch);
    let root = scratch.path("root");
    let paths = [
        Path::new("/opt/sw"),
        Path::new("/opt/sw/lib/sidewire"),
        &root,
    ];
    // Twice: an upgrade.
    act("install", &target, paths);
    act("install", &target, paths);
    let installed = root.join("opt/sw/lib/sidewire/libsidewire.so");
    let launcher = root.join("opt/sw/bin/sidewire");
    assert_eq!(preloaded(&launcher), format!("{}\n", installed.display()));
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
    act("uninstall", &target, paths);
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
}

/// Directories that were there before, or hold something else, stay.
#[test]
fn uninstall_removes_only_its_own_directories() {
    let scratch = Scratch::new();
    let target = built(&scratch);
    let root = scratch.path("root");
    let paths = [Path::new("/opt/sw"), Path::new("/opt/sw/lib/s"), &root];
    let prefix = root.join("opt/sw");
    fs::create_dir_all(prefix.join("bin")).unwrap();
    act("install", &target, paths);
    let other = scratch.file("root/opt/sw/share/man/man1/other.1", "", 0o644);
    // An upgrade, which makes no directory, does not forget those of the first time.
    act("install", &target, paths);
    act("uninstall", &target, paths);
    assert_eq!(files_below(&root), [other]);
    assert!(prefix.join("bin").is_dir());
    let mut left: Vec<_> = fs::read_dir(&prefix)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["bin", "share"]);
    assert_eq!(fs::read_dir(prefix.join("share")).unwrap().count(), 1);
}

/// The launcher finds the library wherever LIBDIR was, and not an older one in the
/// prefix; uninstall finds it, too.
#[test]
fn a_library_directory_of_ones_own() {
    let scratch = Scratch::new();
    let target = built(&scratch);
    let (prefix, own) = (scratch.path("prefix"), scratch.path("else/where"));
    let usual = prefix.join("lib/sidewire");
    let nowhere = Path::new("");
    let launcher = prefix.join("bin/sidewire");
    let path_in = |dir: &Path| format!("{}/libsidewire.so\n", dir.display());

    act("install", &target, [&prefix, &usual, nowhere]);
    act("install", &target, [&prefix, &own, nowhere]);
    assert_eq!(preloaded(&launcher), path_in(&own));
    // Installed again without it: the usual place is the right one again.
    act("install", &target, [&prefix, &usual, nowhere]);
    assert_eq!(preloaded(&launcher), path_in(&usual));
    act("uninstall", &target, [&prefix, &usual, nowhere]);
    // What was left at the other place is the user's to remove.
    fs::remove_dir_all(scratch.path("else")).unwrap();

    act("install", &target, [&prefix, &own, nowhere]);
    act("uninstall", &target, [&prefix, &usual, nowhere]);
    assert!(!prefix.exists() && !scratch.path("else").exists());
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files
}
