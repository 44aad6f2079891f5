//! Rule files: their order, their mistakes, and what a run makes of them.

mod support;

use std::path::Path;
use std::process::{Command, Output};
use support::{assert_line, sidewire, stderr, stdout, Scratch};

/// `sidewire ARGS` for a user whose rules are in `home`.
fn user(scratch: &Scratch, home: &Path, args: &[&str]) -> Command {
    let mut command = sidewire(scratch, args);
    command.env_remove("XDG_CONFIG_HOME").env("HOME", home);
    command
}

fn output(mut command: Command) -> Output {
    command.output().unwrap()
}

const TCP: &str = "[[rule]]\nprogram = \"ssh*\"\nverdict = \"tcp\"\n";
const SHM: &str = "[[rule]]\nremote = \"127.0.0.0/8:5432\"\nverdict = \"shm\"\nupgrade_after = 3\n";

#[test]
fn the_merged_list() {
    let scratch = Scratch::new();
    let home = scratch.path("home");
    scratch.file("home/.config/sidewire/policy.toml", TCP, 0o644);
    let first = scratch.file("first.toml", format!("{SHM}{TCP}"), 0o644);
    let (first, home_file) = (first.display(), home.join(".config/sidewire/policy.toml"));
    let expected = format!(
        "{first}\n    1  verdict shm  remote 127.0.0.0/8:5432  upgrade_after 3\n    \
         2  verdict tcp  program ssh*\n{}\n    3  verdict tcp  program ssh*\n",
        home_file.display()
    );
    let name = first.to_string();
    let out = output(user(&scratch, &home, &["policy", "check", &name]));
    assert!(stdout(&out).starts_with(&expected), "{}", stdout(&out));
    assert!(stdout(&out).ends_with("other  verdict auto\n"));
    let mut by_variable = user(&scratch, &home, &["policy", "check"]);
    by_variable.env("SIDEWIRE_POLICY_FILE", &name);
    assert_eq!(stdout(&output(by_variable)), stdout(&out));
}

#[test]
fn rules_reach_the_library() {
    let scratch = Scratch::new();
    let home = scratch.path("home");
    scratch.file("home/.config/sidewire/policy.toml", TCP, 0o644);
    let first = scratch.file("first.toml", SHM, 0o644);
    let first = first.to_str().unwrap();
    let run = |options: &[&str]| {
        let args = [&["run"], options, &["sh", "-c", "echo $SIDEWIRE_POLICY"]].concat();
        user(&scratch, &home, &args)
    };
    let ours = stdout(&output(run(&[])));
    assert!(ours.starts_with("1;vt,pssh*"), "{ours}");
    let both = stdout(&output(run(&["--policy", first])));
    assert!(
        both.starts_with("1;vs,r7f000000/8:5432-5432,n3;vt,pssh*"),
        "{both}"
    );
    // What an outer launcher has found holds on; a file that is named comes before it.
    let mut inner = run(&[]);
    inner.env("SIDEWIRE_POLICY", "1;vr");
    assert_eq!(stdout(&output(inner)), "1;vr\n");
    let mut inner = run(&["--policy", first]);
    inner.env("SIDEWIRE_POLICY", "");
    assert_eq!(stdout(&output(inner)), both);
    let ours = "1;vs,r7f000000/8:5432-5432,n3";
    for (outer, expected) in [
        ("1;vr", format!("{ours};vr\n")),
        ("1", format!("{ours}\n")),
        // There already: nothing is said twice.
        (format!("{ours};vr").as_str(), format!("{ours};vr\n")),
        (
            format!("{ours}0;vr").as_str(),
            format!("{ours};{};vr\n", &ours[2..].replace("n3", "n30")),
        ),
        // Of a format that we do not know: a rule that the library cannot read.
        ("2;?", format!("{ours};2;?\n")),
    ] {
        let mut inner = run(&["--policy", first]);
        inner.env("SIDEWIRE_POLICY", outer);
        assert_eq!(stdout(&output(inner)), expected, "within {outer}");
    }
}

/// The inner file's rules come first, then all of the outer run's, each once.
#[test]
fn a_run_within_a_run() {
    let scratch = Scratch::new();
    let home = scratch.path("home");
    scratch.file("home/.config/sidewire/policy.toml", TCP, 0o644);
    let outer = scratch.file("outer.toml", "[[rule]]\nverdict = \"tcp\"\n", 0o644);
    let inner = scratch.file("inner.toml", SHM, 0o644);
    let launcher = env!("CARGO_BIN_EXE_sidewire");
    let script = format!(
        "{launcher} run --policy {} {launcher} run sh -c 'echo $SIDEWIRE_POLICY'",
        inner.display()
    );
    let expected = "1;vs,r7f000000/8:5432-5432,n3;vt;vt,pssh*";
    let outer = outer.to_str().unwrap();
    let by_option = user(
        &scratch,
        &home,
        &["run", "--policy", outer, "sh", "-c", &script],
    );
    let mut by_variable = user(&scratch, &home, &["run", "sh", "-c", &script]);
    by_variable.env("SIDEWIRE_POLICY_FILE", outer);
    for command in [by_option, by_variable] {
        let text = stdout(&output(command));
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(text.matches(";vt,pssh*").count(), 1, "{text}");
    }
}

#[test]
fn too_many_rules_within_a_run() {
    let scratch = Scratch::new();
    let file = scratch.file("many.toml", TCP.repeat(100), 0o644);
    let mut inner = sidewire(
        &scratch,
        &["run", "--policy", file.to_str().unwrap(), "true"],
    );
    inner.env("SIDEWIRE_POLICY", format!("1{}", ";vt".repeat(28)));
    let out = output(inner);
    assert_eq!(out.status.code(), Some(2));
    assert_line(
        &stderr(&out),
        "sidewire: *: too many rules (128 with those of the launcher around, at most 127)",
    );
}

#[test]
fn mistakes_have_a_line_and_a_column() {
    let scratch = Scratch::new();
    let bad = "[[rule]]\nverdict = \"tcp\"\n\n[[rule]]\nlocal = \"localhost:80\"\n";
    let file = scratch.file("bad.toml", bad, 0o644);
    let name = file.to_str().unwrap();
    let message = "sidewire: *bad.toml: line 5, column 9: `localhost` is no IP address *";
    for args in [
        &["policy", "check", name][..],
        &["run", "--policy", name, "echo", "x"],
    ] {
        let out = output(sidewire(&scratch, args));
        assert_eq!(out.status.code(), Some(2));
        assert_eq!(stdout(&out), "");
        assert_line(&stderr(&out), message);
    }
    let out = output(sidewire(
        &scratch,
        &["run", "--policy", "/no/such/file", "true"],
    ));
    assert_eq!(out.status.code(), Some(2));
    assert_line(
        &stderr(&out),
        "sidewire: rule file /no/such/file: No such file *",
    );
}

/// A broken file at a usual place breaks no program, and allows nothing.
#[test]
fn a_broken_file_means_plain_tcp() {
    let scratch = Scratch::new();
    let home = scratch.path("home");
    scratch.file("home/.config/sidewire/policy.toml", "[[rule]\n", 0o644);
    let out = output(user(
        &scratch,
        &home,
        &["run", "sh", "-c", "echo x$LD_PRELOAD"],
    ));
    assert_eq!((out.status.code(), stdout(&out)), (Some(0), "x\n".into()));
    assert_line(
        &stderr(&out),
        "sidewire: *policy.toml: line 1, column *; * runs on plain TCP",
    );
}

#[test]
fn too_many_rules() {
    let scratch = Scratch::new();
    let file = scratch.file("many.toml", TCP.repeat(200), 0o644);
    let out = output(sidewire(
        &scratch,
        &["policy", "check", file.to_str().unwrap()],
    ));
    assert_eq!(out.status.code(), Some(2));
    assert_line(
        &stderr(&out),
        "sidewire: *: too many rules (200 so far, at most 127)",
    );
}
