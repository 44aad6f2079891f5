//! What the manual pages, `--help` and the README's tables all say; a test holds
//! the README to it.

/// A name and what it stands for.
pub type Entry = (&'static str, &'static str);

/// The variables that a user may set, or should know of.
pub const ENVIRONMENT: &[Entry] = &[
    ("SIDEWIRE_PROFILE", "As --profile: latency, adaptive or frugal."),
    ("SIDEWIRE_TRANSPORT", "As --transport: auto, tcp, shm or rdma."),
    ("SIDEWIRE_UPGRADE_AFTER", "As --upgrade-after: a number."),
    ("SIDEWIRE_POLICY_FILE", "As --policy: a rule file."),
    (
        "SIDEWIRE_POLICY",
        "All rules in a short form, which the launcher hands on to the library, and to launchers within its program.",
    ),
    ("SIDEWIRE_LIBRARY", "The library, in place of the one that belongs to the launcher."),
    (
        "XDG_CONFIG_HOME",
        "Where the user's rule file is looked for, in place of ~/.config.",
    ),
    ("LD_PRELOAD", "The launcher puts the library before what stands there."),
];

/// Said behind the list.
pub const ENVIRONMENT_ORDER: &str = "An option on the command line comes before its variable.";

/// The files that are read.
pub const FILES: &[Entry] = &[
    ("/etc/sidewire/policy.toml", "The system's rules."),
    ("~/.config/sidewire/policy.toml", "The user's rules, which come before those."),
    (
        "/etc/ld.so.preload",
        "May name the library for every program; not read by the launcher, but by the dynamic linker.",
    ),
    (
        "libsidewire.so",
        "The library: beside the launcher, where it was installed (../share/sidewire/libdir has the directory if it is \
an unusual one), in ../lib/sidewire, or in sidewire of the machine's own directory in ../lib.",
    ),
];

/// What `run` exits with.
pub const RUN_STATUS: &[Entry] = &[
    ("the program's", "it has ended by itself"),
    ("128 + N", "signal N has ended it"),
    (
        "127",
        "there is no such program, or its interpreter is missing",
    ),
    ("126", "it cannot be executed"),
    ("125", "`--require` was given, and nothing was accelerated"),
    (
        "2",
        "the command line, a variable, or a rule file named on the command line is wrong",
    ),
];

/// What the other commands exit with.
pub const STATUS: &[Entry] = &[
    ("0", "all is well"),
    (
        "1",
        "the output cannot be written, or, of `doctor`, streams can't be accelerated",
    ),
    ("2", "the command line or a rule file is wrong"),
];

/// [`RUN_STATUS`] at the end of `--help`.
pub fn run_status_help() -> String {
    let mut text = String::from("Exit status:");
    for (code, meaning) in RUN_STATUS {
        text.push_str(&format!("\n  {code:<13}  {}", meaning.replace('`', "")));
    }
    text
}
