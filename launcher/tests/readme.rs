//! The README's tables say what the program says.

use rdma_engine::abi::reason::Reason;
use sidewire_launcher::manual;

const README: &str = include_str!("../../README.md");

#[test]
fn every_reason_is_explained() {
    for reason in Reason::ALL {
        if matches!(reason, Reason::None | Reason::Unknown) {
            continue;
        }
        let row = format!("\n| {}", reason.text());
        assert!(README.contains(&row), "no row for «{}»", reason.text());
    }
}

#[test]
fn every_option_is_listed() {
    let cli = sidewire_launcher::cli::command();
    let run = cli.find_subcommand("run").unwrap();
    for option in run.get_opts().filter_map(|a| a.get_long()) {
        assert!(README.contains(&format!("`--{option}")), "--{option}");
    }
    for command in cli.get_subcommands().filter(|c| !c.is_hide_set()) {
        let name = format!("`sidewire {}", command.get_name());
        assert!(README.contains(&name), "{name}");
    }
}

#[test]
fn variables_files_and_exit_codes_are_those_of_the_manual() {
    for (name, _) in manual::ENVIRONMENT {
        // Those of others need no word here.
        let ours = name.starts_with("SIDEWIRE_");
        assert!(!ours || README.contains(&format!("`{name}`")), "{name}");
    }
    for (path, _) in manual::FILES {
        assert!(README.contains(&format!("`{path}`")), "{path}");
    }
    for (code, meaning) in manual::RUN_STATUS {
        let row = format!("\n| {code} | {meaning} |\n");
        assert!(README.contains(&row), "{row}");
    }
    for (code, meaning) in manual::STATUS {
        let text = README.replace('\n', " ");
        assert!(text.contains(&format!("{code}: {meaning}")), "{code}");
    }
}

/// And the other way round: no variable of the README is missing in the manual.
#[test]
fn the_manual_has_every_variable_of_the_readme() {
    let mut seen = 0;
    for (at, _) in README.match_indices("`SIDEWIRE_") {
        let name = README[at + 1..].split(['`', '=']).next().unwrap();
        let known = manual::ENVIRONMENT.iter().any(|(n, _)| *n == name);
        assert!(known, "{name}");
        seen += 1;
    }
    assert!(seen > 4);
}
