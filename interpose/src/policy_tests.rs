//! Rules that apply and rules that do not, and every kind of garbage.

use super::*;

fn table(env: &[u8]) -> Table {
    table_of(env, b"/usr/bin/netserver", 1000)
}

fn table_of(env: &[u8], program: &[u8], uid: u32) -> Table {
    let table = Table::new();
    table.load(Some(env), program, uid);
    table
}

fn ask(table: &Table, local: &str, remote: &str, outgoing: bool) -> Decision {
    table.decide(&local.parse().unwrap(), &remote.parse().unwrap(), outgoing)
}

fn rule_of(env: &str, local: &str, remote: &str, outgoing: bool) -> u16 {
    ask(&table(env.as_bytes()), local, remote, outgoing).rule
}

const A: &str = "10.1.2.3:4500";
const B: &str = "[2001:db8::7]:80";

#[test]
fn without_rules_everything_is_auto() {
    for env in [None, Some(&b""[..]), Some(b"1")] {
        let table = Table::new();
        table.load(env, b"/bin/x", 0);
        assert_eq!(ask(&table, A, B, true), DEFAULT);
    }
    assert_eq!(ask(&Table::new(), A, B, true), DEFAULT);
}

#[test]
fn the_first_match_wins_and_keeps_its_number() {
    let t = table(b"1;pnginx,vt;u1000,vs,n7;vt");
    let d = ask(&t, A, A, false);
    assert_eq!(
        (d.verdict, d.upgrade_after, d.rule),
        (Verdict::Shm, Some(7), 2)
    );
    let t = table_of(b"1;pnginx,vt;u1000,vs,n7;vt", b"/x/nginx", 5);
    assert_eq!(ask(&t, A, A, false).rule, 1);
    let t = table_of(b"1;pnginx,vt;u1000,vs,n7;vr", b"/x/sshd", 5);
    assert_eq!(ask(&t, A, A, false).verdict, Verdict::Rdma);
}

#[test]
fn a_second_load_changes_nothing() {
    let t = table(b"1;vt");
    t.load(Some(b"1;vs"), b"/bin/x", 0);
    assert_eq!(ask(&t, A, A, true).verdict, Verdict::Tcp);
}

#[test]
fn addresses_ports_and_directions() {
    assert_eq!(rule_of("1;l0a000000/8:4000-5000", A, B, true), 1);
    assert_eq!(rule_of("1;l0a000000/8:4501-5000", A, B, true), 0);
    assert_eq!(rule_of("1;r0a000000/8", A, B, true), 0);
    assert_eq!(rule_of("1;l*:4500-4500", A, B, true), 1);
    assert_eq!(rule_of("1;l00000000/0", A, B, true), 1);
    assert_eq!(rule_of("1;r00000000/0", A, B, true), 0, "IPv4 only");
    let six = "20010db8000000000000000000000000";
    assert_eq!(rule_of(&format!("1;r{six}/32"), A, B, true), 1);
    assert_eq!(rule_of(&format!("1;r{six}/128"), A, B, true), 0);
    assert_eq!(rule_of(&format!("1;r{six}/0"), A, B, true), 1);
    let mapped = "[::ffff:10.1.2.3]:4500";
    assert_eq!(rule_of("1;l0a010203/32", mapped, B, true), 1);
    assert_eq!(rule_of("1;do", A, B, true), 1);
    assert_eq!(rule_of("1;di", A, B, true), 0);
    assert_eq!(rule_of("1;di", A, B, false), 1);
}

#[test]
fn patterns_of_programs() {
    let hit = |pattern: &str| rule_of(&format!("1;p{pattern}"), A, B, true) == 1;
    for yes in [
        "netserver",
        "net*",
        "*",
        "*ser*er",
        "/usr/bin/netserver",
        "/usr/*",
        "n%65tserver",
        "**",
    ] {
        assert!(hit(yes), "{yes}");
    }
    for no in [
        "netserve",
        "netserver2",
        "etserver",
        "/bin/netserver",
        "*x*",
        "net*x",
    ] {
        assert!(!hit(no), "{no}");
    }
}

#[test]
fn what_cannot_be_read_means_tcp() {
    let long = format!("1;p{}", "x".repeat(MAX_PATTERN + 1));
    for env in [
        "2;vs",
        "garbage",
        "1;",
        "1;vx",
        "1;v",
        "1;;vs",
        "1;p",
        "1;p%4",
        "1;p%zz",
        "1;u-1",
        "1;u4294967296",
        "1;n99999999999999999999",
        "1;lzz/8",
        "1;l0a000000/33",
        "1;l0a000000",
        "1;l*:5",
        "1;l*:5-70000",
        "1;dx",
        "1;q",
        &long,
    ] {
        let d = ask(&table(env.as_bytes()), A, B, true);
        assert_eq!((d.verdict, d.rule), (Verdict::Tcp, 1), "{env}");
    }
    let d = ask(&table(b"1;r*:81-90,vs;vs,?;vs"), A, B, true);
    assert_eq!((d.verdict, d.rule), (Verdict::Tcp, 2));
}

#[test]
fn too_many_rules_end_in_tcp() {
    let mut env = String::from("1");
    for _ in 0..MAX_RULES {
        env.push_str(";l*:1-1,vs");
    }
    let d = ask(&table(env.as_bytes()), A, B, true);
    assert_eq!((d.verdict, d.rule), (Verdict::Tcp, MAX_RULES as u16));
    // Rules for others take no room.
    let mut env = String::from("1");
    for _ in 0..10 * MAX_RULES {
        env.push_str(";pothers,vt");
    }
    env.push_str(";vs");
    let d = ask(&table(env.as_bytes()), A, B, true);
    assert_eq!(
        (d.verdict, d.rule),
        (Verdict::Shm, 10 * MAX_RULES as u16 + 1)
    );
}

/// Random strings, and valid ones with random damage: nothing panics, and
/// what is not readable is never a licence.
#[test]
fn garbage_never_panics() {
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x
    };
    let valid = b"1;pnet*,u1000,l0a000000/8:4000-5000,r*:1-9,do,va,n16;vt;p%41,vs";
    let alphabet = b"1;,pulrdvn*:-/%0a9fzt\0\xff";
    for round in 0..60_000 {
        let env: Vec<u8> = if round % 2 == 0 {
            (0..random() % 40)
                .map(|_| alphabet[(random() % alphabet.len() as u64) as usize])
                .collect()
        } else {
            let mut v = valid.to_vec();
            for _ in 0..1 + random() % 3 {
                let at = (random() % v.len() as u64) as usize;
                match random() % 3 {
                    0 => v[at] = random() as u8,
                    1 => v.truncate(at.max(1)),
                    _ => v.insert(at, random() as u8),
                }
            }
            v
        };
        let t = table(&env);
        ask(&t, A, B, round % 3 == 0);
        ask(&t, B, A, round % 3 == 0);
        if !env.is_empty() && env != b"1" && !env.starts_with(b"1;") {
            assert_eq!(ask(&t, A, B, true).verdict, Verdict::Tcp);
        }
    }
}
