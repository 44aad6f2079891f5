//! The README's tables say what the program says.

use rdma_engine::abi::reason::Reason;

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
