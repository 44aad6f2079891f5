//! Federates that are lost, and federates that don't read.

mod support;

use rti_demo::rtig::Options;
use rti_demo::wire::Service;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{rtig, rtig_with, Federate, Raw};

#[test]
fn one_that_dies_in_the_midst_of_an_update_is_resigned() {
    let address = rtig();
    let mut a = Federate::join(address, "a");
    let mut raw = Raw::join(address, "victim");
    let (class, message) = (a.class, a.message);
    let attributes = vec![message];
    raw.call(Service::PublishObjectClass { class, attributes })
        .unwrap();
    let name = "doomed".into();
    let register = Service::RegisterObjectInstance { class, name };
    let object = rti_demo::handle::ObjectHandle(raw.call(register).unwrap());
    assert_eq!(a.next(), "discover doomed");
    let update = Service::UpdateAttributeValues {
        object,
        values: vec![(message, vec![7; 1000].into())],
        tag: vec![].into(),
    };
    let frame = raw.frame(update);
    raw.stream.write_all(&frame).unwrap();
    assert_eq!(a.next(), "reflect 1000 bytes");
    raw.stream.write_all(&frame[..600]).unwrap();
    drop(raw);
    assert_eq!(a.next(), "remove");
    let missing = frame.len() - 600;
    let reason = format!("the stream ended {missing} bytes before the end of a frame");
    assert_eq!(a.next(), format!("lost victim: {reason}"));
    // Its name is free, and what it had is gone.
    let mut again = Federate::join(address, "victim");
    again.rti.register_object_instance(class, "doomed").unwrap();
    assert_eq!(a.next(), "discover doomed");
}

#[test]
fn one_that_resigns_is_not_lost() {
    let address = rtig();
    let (mut a, mut b) = (Federate::join(address, "a"), Federate::join(address, "b"));
    b.rti.register_object_instance(b.class, "own").unwrap();
    assert_eq!(a.next(), "discover own");
    b.rti.resign_federation_execution().unwrap();
    drop(b);
    assert_eq!(a.next(), "remove");
    let more = Duration::from_millis(50);
    assert!(!a.rti.evoke_callback(more, &mut a.heard).unwrap());
}

/// Two that flood each other and read nothing meanwhile: both get through, since sending takes in what comes.
#[test]
fn a_mutual_flood_blocks_nobody() {
    const UPDATES: usize = 300;
    let address = rtig();
    let federates = ["a", "b"].map(|name| Federate::join(address, name));
    let (begun, barrier) = (Instant::now(), std::sync::Barrier::new(2));
    let flood = |mut f: Federate| {
        let object = f.rti.register_object_instance(f.class, "").unwrap();
        assert!(f.next().starts_with("discover"));
        barrier.wait();
        let payload = vec![1; 100_000];
        for _ in 0..UPDATES {
            let values = [(f.message, &payload[..])];
            f.rti.update_attribute_values(object, &values, b"").unwrap();
        }
        for _ in 0..UPDATES {
            assert_eq!(f.next(), "reflect 100000 bytes");
        }
        barrier.wait();
    };
    std::thread::scope(|scope| {
        for federate in federates {
            scope.spawn(|| flood(federate));
        }
    });
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// One that subscribes and never reads holds its sender back for a while, and is lost then.
#[test]
fn one_that_takes_nothing_is_given_up() {
    let address = rtig_with(Options {
        stall_limit: Duration::from_secs(1),
        ..Options::default()
    });
    let mut a = Federate::join(address, "a");
    let (class, message) = (a.class, a.message);
    let mut stuck = Raw::join(address, "stuck");
    let attributes = vec![message];
    stuck
        .call(Service::SubscribeObjectClass { class, attributes })
        .unwrap();
    let object = a.rti.register_object_instance(class, "").unwrap();
    let payload = vec![1; 500_000];
    for _ in 0..60 {
        let values = [(message, &payload[..])];
        a.rti.update_attribute_values(object, &values, b"").unwrap();
    }
    assert_eq!(a.next(), "lost stuck: it took nothing for 1 s");
}

/// R2 is killed in mid-game: R1 ends with an error that says so.
#[test]
fn a_killed_recorder_ends_the_game() {
    let address = rtig().to_string();
    let recorder = |role| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recorder"));
        command
            .args(["--role", role, "--connect", &address])
            .args(["--rounds", "50", "--runs", "1", "--csv"])
            .args(["--sizes", &["64"; 10_000].join(",")])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let mut r2 = recorder("r2").spawn().unwrap();
    let mut r1 = recorder("r1").spawn().unwrap();
    // After the first row of ten thousand the game is in its midst.
    let mut rows = BufReader::new(r1.stdout.take().unwrap()).lines();
    assert!(rows.next().is_some() && rows.next().is_some());
    r2.kill().unwrap();
    r2.wait().unwrap();
    let mut told = String::new();
    let mut stderr = BufReader::new(r1.stderr.take().unwrap());
    stderr.read_line(&mut told).unwrap();
    assert!(!r1.wait().unwrap().success());
    assert!(
        told.contains("RTIinternalError: recorder R2 is lost"),
        "{told}"
    );
}
