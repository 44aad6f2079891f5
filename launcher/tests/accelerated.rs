//! The launcher with the real library: two small processes talk, and everything
//! that shows streams shows theirs.

mod support;

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use support::{command, real_library, stderr, stdout, wait_for, Scratch};

const LAUNCHER: &str = env!("CARGO_BIN_EXE_sidewire");

fn sidewire(args: &[&str]) -> Command {
    let mut c = command(LAUNCHER, &real_library());
    c.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    c
}

/// An echo server under `sidewire run OPTIONS`; returns its address, too.
fn server(options: &[&str]) -> (Child, String) {
    let args = [&["run"], options, &[LAUNCHER, "pair"]].concat();
    let mut child = sidewire(&args).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut address = String::new();
    out.read_line(&mut address).unwrap();
    assert!(!address.is_empty(), "the server did not start");
    (child, address.trim().to_owned())
}

/// A client of the server at `address`, which sends some thousand messages.
fn client(options: &[&str], address: &str) -> Output {
    let args = [&["run"], options, &[LAUNCHER, "pair", address]].concat();
    sidewire(&args).output().unwrap()
}

#[test]
fn both_ends() {
    let scratch = Scratch::new();
    let file = scratch.path("stats.json");
    let (server, address) = server(&["--stats"]);
    let out = client(
        &["--require", "--stats-file", file.to_str().unwrap()],
        &address,
    );
    assert_eq!((out.status.code(), stderr(&out)), (Some(0), String::new()));
    let stats: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(
        (&stats["streams"], &stats["fast"]),
        (&1.into(), &1.into()),
        "{stats}"
    );
    // 5000 messages of 64 bytes each way, most of them by shared memory.
    for way in ["in", "out"] {
        let bytes = |wire: &str| stats[format!("{wire}_{way}")].as_u64().unwrap();
        assert_eq!(bytes("shm") + bytes("tcp"), 5000 * 64, "{stats}");
        assert!(bytes("shm") > 4000 * 64, "{stats}");
    }
    let out = server.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0));
    let text = stderr(&out);
    assert!(
        text.starts_with("sidewire: 1 TCP stream, 1 fast\n"),
        "{text}"
    );
}

/// What becomes of a stream, told while the program runs.
#[test]
fn the_log_tells_a_streams_life() {
    let (server, address) = server(&["--log", "info"]);
    let out = client(&["--log", "debug"], &address);
    let served = server.wait_with_output().unwrap();
    let (info, debug) = (stderr(&served), stderr(&out));
    assert_eq!(
        (out.status.code(), served.status.code()),
        (Some(0), Some(0))
    );
    for text in [&info, &debug] {
        let at = |event: &str| {
            text.find(event)
                .unwrap_or_else(|| panic!("{event}: {text}"))
        };
        let life = [
            at("library loaded"),
            at("looking for the other end"),
            at("attached to the other end"),
            at("send direction moves to the wire"),
        ];
        assert!(life.is_sorted(), "{text}");
        assert!(
            text.contains("receive direction moves to the wire"),
            "{text}"
        );
        assert!(text.contains(&address), "{text}");
    }
    let steps = [
        "stream opened",
        "receive direction is ready",
        "stream closed",
    ];
    assert!(steps.iter().all(|step| debug.contains(step)), "{debug}");
    assert!(steps.iter().all(|step| !info.contains(step)), "{info}");
}

/// Connects to port ARGV[1], and runs itself once more with the connection in hand.
const RUNS_AGAIN: &str = r#"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void talk(int fd, int rounds)
{
    char message[64] = "";
    for (int i = 0; i < rounds; i++) {
        if (write(fd, message, 64) != 64)
            exit(1);
        for (int got = 0, n; got < 64; got += n)
            if ((n = read(fd, message + got, 64 - got)) <= 0)
                exit(2);
    }
}
int main(int argc, char **argv)
{
    char number[12];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = argc == 3 ? atoi(argv[2]) : socket(AF_INET, SOCK_STREAM, 0);
    to.sin_port = htons(atoi(argv[1]));
    if (argc == 2 && connect(fd, (struct sockaddr *)&to, sizeof to))
        return 3;
    talk(fd, 3000);
    sprintf(number, "%d", fd);
    if (argc == 2)
        execl(argv[0], argv[0], argv[1], number, NULL);
    return 0;
}
"#;

/// The program after an exec gets the wire, too.
#[test]
fn a_stream_is_fast_again_after_an_exec() {
    let scratch = Scratch::new();
    let program = scratch.compile("runs-again", RUNS_AGAIN, &[]);
    let (server, address) = server(&["--log", "info"]);
    let (_, port) = address.rsplit_once(':').unwrap();
    let program = program.to_str().unwrap();
    let args = ["run", "--log", "info", program, port];
    let out = sidewire(&args).output().unwrap();
    let served = stderr(&server.wait_with_output().unwrap());
    let text = stderr(&out);
    assert_eq!(out.status.code(), Some(0), "{text}");
    for text in [&text, &served] {
        let twice = [
            "attached to the other end",
            "send direction moves to the wire",
        ];
        for event in twice {
            assert_eq!(text.matches(event).count(), 2, "{event}: {text}");
        }
    }
}

#[test]
fn one_end_alone() {
    let mut plain = Command::new(LAUNCHER);
    plain.arg("pair").stdout(Stdio::piped());
    let mut plain = plain.spawn().unwrap();
    let mut address = String::new();
    let mut out = BufReader::new(plain.stdout.take().unwrap());
    out.read_line(&mut address).unwrap();
    let out = client(&["--require"], address.trim());
    assert_eq!(out.status.code(), Some(125));
    let text = stderr(&out);
    // Whichever comes first: the end of the client, or of its patience.
    let whys = [
        "peer does not run Sidewire",
        "offered, waiting for the peer",
    ];
    let told = |why: &str| text.contains(&format!("not fast: 1 x {why}"));
    assert!(whys.into_iter().any(told), "{text}");
    plain.wait().unwrap();
}

/// What is on TCP for good is not counted call by call; the kernel knows.
#[test]
fn a_settled_stream_is_counted_at_its_end() {
    let scratch = Scratch::new();
    let file = scratch.path("stats.json");
    let (server, address) = server(&[]);
    let settled = ["--transport", "tcp", "--stats-file", file.to_str().unwrap()];
    assert_eq!(client(&settled, &address).status.code(), Some(0));
    let stats: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    for way in ["tcp_in", "tcp_out"] {
        assert_eq!(stats[way].as_u64(), Some(5000 * 64), "{way}: {stats}");
    }
    server.wait_with_output().unwrap();
}

/// The same while it lives.
#[test]
fn a_settled_stream_is_counted_by_ps() {
    let (mut server, address) = server(&["--transport", "tcp"]);
    let mut near = TcpStream::connect(&address).unwrap();
    let mut answer = [0; 64];
    for _ in 0..500 {
        near.write_all(&[1; 64]).unwrap();
        near.read_exact(&mut answer).unwrap();
    }
    let remote = near.local_addr().unwrap().to_string();
    let out = sidewire(&["ps", "--json"]).output().unwrap();
    let all: Value = serde_json::from_str(&stdout(&out)).unwrap();
    let row = all.as_array().unwrap().iter();
    let row = row.clone().find(|r| r["remote"] == *remote).unwrap();
    assert_eq!(row["settled"], true, "{row}");
    for way in ["in", "out"] {
        assert_eq!(row[way]["tcp_bytes"].as_u64(), Some(500 * 64), "{row}");
        assert!(row[way]["messages"].as_u64() < Some(500), "{row}");
    }
    drop(near);
    server.wait().unwrap();
}

#[test]
fn options_and_rules_keep_streams_on_tcp() {
    let scratch = Scratch::new();
    let rules = "[[rule]]\nremote = \"127.0.0.0/8\"\nprogram = \"sidewire\"\nverdict = \"tcp\"\n";
    let file = scratch.file("policy.toml", rules, 0o644);
    for options in [["--transport", "tcp"], ["--policy", file.to_str().unwrap()]] {
        let (server, address) = server(&[]);
        let out = client(&[&options[..], &["--require"]].concat(), &address);
        let text = stderr(&out);
        assert_eq!(out.status.code(), Some(125), "{options:?}: {text}");
        assert!(text.contains("policy: tcp"), "{options:?}: {text}");
        server.wait_with_output().unwrap();
    }
}

#[test]
fn rules_say_after_how_many_messages() {
    let scratch = Scratch::new();
    let script = "import socket
s = socket.create_server(('127.0.0.1', 0))
c = socket.create_connection(s.getsockname())
a, _ = s.accept()
for i in range(14):
    c.sendall(b'x'); a.recv(1); a.sendall(b'y'); c.recv(1)";
    let other = "program = \"other\"\nupgrade_after = 4\n";
    for (rule, code) in [("", 125), (other, 125), ("upgrade_after = 4\n", 0)] {
        let file = scratch.file("policy.toml", format!("[[rule]]\n{rule}"), 0o644);
        let policy = ["run", "--require", "--policy", file.to_str().unwrap()];
        let out = sidewire(&[&policy[..], &["python3", "-c", script]].concat())
            .output()
            .unwrap();
        if out.status.code() == Some(127) {
            println!("skipped: there is no python3");
            return;
        }
        assert_eq!(out.status.code(), Some(code), "{rule}: {}", stderr(&out));
    }
}

#[test]
fn the_doctor_finds_this_machine_well() {
    let out = sidewire(&["doctor"]).output().unwrap();
    let text = stdout(&out);
    assert!(text.contains("test connection: Fast ("), "{text}");
    assert_eq!(out.status.code(), Some(0), "{text}");
}

/// What a program's streams look like while it runs.
#[test]
fn live_streams_are_listed() {
    let script = "import socket, sys
s = socket.create_server(('127.0.0.1', 0))
c = socket.create_connection(s.getsockname())
a, _ = s.accept()
for i in range(200):
    c.sendall(b'x' * 10); a.recv(10); a.sendall(b'y' * 20); c.recv(20)
print('ready', flush=True)
sys.stdin.read()";
    let mut run = sidewire(&["run", "python3", "-c", script]);
    let mut child = match run.stdin(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(why) => panic!("{why}"),
    };
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    if line.is_empty() && child.wait().unwrap().code() == Some(127) {
        println!("skipped: there is no python3");
        return;
    }
    let ours = || -> Vec<Value> {
        let out = sidewire(&["ps", "--json"]).output().unwrap();
        let all: Vec<Value> = serde_json::from_slice(&out.stdout).unwrap();
        // Python may be started by a script of that name.
        let python = |v: &Value| v["program"].as_str().unwrap().starts_with("python");
        all.into_iter().filter(python).collect()
    };
    let rows = wait_for("two ends", || Some(ours()).filter(|r| r.len() == 2));
    assert_eq!(rows[0]["local"], rows[1]["remote"]);
    let bytes = |row: &Value, way: &str| {
        let n = |wire: &str| row[way][wire].as_u64().unwrap();
        n("shm_bytes") + n("tcp_bytes")
    };
    let mut sent = [bytes(&rows[0], "out"), bytes(&rows[1], "out")];
    sent.sort_unstable();
    assert_eq!(sent, [2000, 4000], "{rows:?}");
    assert!(rows
        .iter()
        .all(|r| r["reason"].is_null()
            == (r["in"]["state"] == "Fast" && r["out"]["state"] == "Fast")));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(ours(), [] as [Value; 0]);
}
