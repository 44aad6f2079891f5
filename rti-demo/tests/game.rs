//! A short game, with real processes.

use std::process::{Command, Output};

fn recorder(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recorder"));
    command.args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_short_game_has_its_rows_and_counts() {
    // Two sizes, three runs, twenty rounds.
    let game = ["game", "--rounds", "20", "--runs", "3", "--csv"];
    let output = recorder(&[&game[..], &["--sizes", "32,4096"]].concat());
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{err}");
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[0], "bytes,latency_us,lowest_us,highest_us");
    assert_eq!(lines.len(), 3, "{out}");
    for (line, size) in lines[1..].iter().zip([32.0, 4096.0]) {
        let fields: Vec<f64> = line.split(',').map(|f| f.parse().unwrap()).collect();
        let [bytes, mean, lowest, highest] = fields[..] else {
            panic!("{line}");
        };
        assert_eq!(bytes, size);
        assert!(lowest > 0.0 && lowest <= mean && mean <= highest, "{line}");
    }
    assert!(err.contains("recorder: R1 played 120 rounds"), "{err}");
    assert!(err.contains("recorder: R2 answered 120 rounds"), "{err}");
}

#[test]
fn every_process_gets_the_prefix() {
    let game = ["game", "--rounds", "5", "--runs", "1", "--sizes", "64"];
    let output = recorder(&[&game[..], &["--prefix", "env LANG=C"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = recorder(&[&game[..], &["--prefix", "/no/such/command"]].concat());
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("/no/such/command"));
}

#[test]
fn a_recorder_without_an_rti_says_so() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap().to_string();
    drop(port);
    let output = recorder(&["--role", "r1", "--connect", &address, "--csv"]);
    assert!(!output.status.success());
    let told = text(&output.stderr);
    assert!(told.contains("RTIinternalError: connect:"), "{told}");
}
