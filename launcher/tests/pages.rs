//! Manual pages and completions exist and name the commands.

mod support;

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
