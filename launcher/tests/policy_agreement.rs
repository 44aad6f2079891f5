//! What the launcher compiles, the library reads: both sides of the format.

use sidewire_launcher::policy::{compile, file, Numbered, MAX_RULES};

// The library's own reader: it needs nothing but the standard library.
#[allow(dead_code)]
#[path = "../../interpose/src/policy.rs"]
mod library;

const RULES: &str = r#"
    [[rule]]
    program = "another"
    verdict = "tcp"
    [[rule]]
    local = "10.0.0.0/8:4000-5000"
    direction = "in"
    verdict = "tcp"
    [[rule]]
    program = "name with ;,%*"
    remote = "[2001:db8::]/32"
    user = 7
    verdict = "shm"
    upgrade_after = 0
    [[rule]]
    user = 8
    verdict = "tcp"
    [[rule]]
    remote = "*:22"
    upgrade_after = 99
    [[rule]]
    program = "/bin/name*"
    verdict = "rdma"
"#;

#[test]
fn the_library_reads_what_the_launcher_writes() {
    let rules = file::parse(RULES).unwrap();
    let numbered = |rule| Numbered {
        rule,
        file: "x".into(),
    };
    let rules: Vec<_> = rules.into_iter().map(numbered).collect();
    let text = compile::compile(&rules);
    // The library's table is filled once in a process, hence one test.
    library::load(Some(text.as_bytes()), b"/bin/name with ;,%xyz", 7);
    let decide = |local: &str, remote: &str, outgoing| {
        let d = library::decide(&local.parse().unwrap(), &remote.parse().unwrap(), outgoing);
        (d.rule, format!("{:?}/{:?}", d.verdict, d.upgrade_after))
    };
    let expect = |rule: u16, text: &str| (rule, text.to_owned());
    let ten = "10.9.9.9:4000";
    assert_eq!(decide(ten, "1.1.1.1:2", false), expect(2, "Tcp/None"));
    assert_eq!(decide(ten, "1.1.1.1:2", true), expect(6, "Rdma/None"));
    assert_eq!(
        decide("[::1]:5", "[2001:db8:1::]:9", true),
        expect(3, "Shm/Some(0)")
    );
    assert_eq!(
        decide("1.1.1.1:1", "1.1.1.1:22", true),
        expect(5, "Auto/Some(99)")
    );
    assert_eq!(MAX_RULES + 1, library::MAX_RULES);
    assert_eq!(library::MAX_PATTERN, 256);
}
