//! Manual pages and completions exist and name the commands.

mod support;

use rdma_engine::abi::log::Event;
use std::fs;
use support::{sidewire, stdout, Scratch};

#[test]
fn completions() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish"] {
        let out = sidewire(&scratch, &["completions", shell])
            .output()
            .unwrap();
        assert!(out.status.success());
        let text = stdout(&out);
        assert!(
            text.contains("upgrade-after") && text.contains("doctor"),
            "{shell}"
        );
    }
}

#[test]
fn manual_pages() {
    let scratch = Scratch::new();
    let dir = scratch.path("man");
    fs::create_dir_all(&dir).unwrap();
    let out = sidewire(&scratch, &["man", dir.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(out.status.success());
    for (page, word) in [
        ("sidewire.1", "doctor"),
        ("sidewire-run.1", "require"),
        ("sidewire-ps.1", "json"),
        ("sidewire-policy-check.1", "number"),
    ] {
        let text = fs::read_to_string(dir.join(page)).expect(page);
        assert!(text.contains(word), "{page}");
    }
    assert!(
        !dir.join("sidewire-pair.1").exists(),
        "hidden commands have no page"
    );
}

/// The sections that every manual page of a command should have, in their order.
#[test]
fn sections_of_the_manual() {
    let scratch = Scratch::new();
    let dir = scratch.path("man");
    fs::create_dir_all(&dir).unwrap();
    let out = sidewire(&scratch, &["man", dir.to_str().unwrap()]).output();
    assert!(out.unwrap().status.success());
    let page = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let titles = |name: &str| -> Vec<String> {
        let text = page(name);
        let titles = text.lines().filter_map(|l| l.strip_prefix(".SH "));
        titles.map(|t| t.trim_matches('"').to_owned()).collect()
    };
    for (name, expected) in [
        (
            "sidewire.1",
            &["ENVIRONMENT", "FILES", "EXIT STATUS", "VERSION"][..],
        ),
        ("sidewire-run.1", &["ENVIRONMENT", "FILES", "EXIT STATUS"]),
        ("sidewire-ps.1", &["EXIT STATUS"]),
        ("sidewire-doctor.1", &["FILES", "EXIT STATUS"]),
        ("sidewire-policy-check.1", &["FILES", "EXIT STATUS"]),
    ] {
        let found = titles(name);
        let positions: Vec<_> = expected
            .iter()
            .map(|e| found.iter().position(|f| f == e))
            .collect();
        assert!(positions.iter().all(Option::is_some), "{name}: {found:?}");
        assert!(positions.is_sorted(), "{name}: {found:?}");
    }
    let run = page("sidewire-run.1");
    for word in ["SIDEWIRE_PROFILE", "/etc/sidewire/policy.toml", "128 + N"] {
        assert!(run.contains(word), "{word} in {run}");
    }
    assert!(!run.contains(".SH EXTRA"), "{run}");
}

/// Every line that `--log` prints can be looked up.
#[test]
fn words_of_the_log() {
    let scratch = Scratch::new();
    let dir = scratch.path("man");
    fs::create_dir_all(&dir).unwrap();
    let out = sidewire(&scratch, &["man", dir.to_str().unwrap()]).output();
    assert!(out.unwrap().status.success());
    let page = fs::read_to_string(dir.join("sidewire-run.1")).unwrap();
    let (_, words) = page.split_once(".SH \"LOG WORDS\"").expect(&page);
    for event in Event::ALL {
        if matches!(event, Event::Trace | Event::Unknown) {
            continue;
        }
        let head = format!("{} ({})", event.text(), event.level().name());
        let head = head.replace('-', "\\-");
        assert!(words.contains(&head), "«{head}» is not in {words}");
    }
}
