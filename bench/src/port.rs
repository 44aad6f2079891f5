//! Free ports on 127.0.0.1, and waiting until somebody listens on one.

use std::net::TcpListener;
use std::time::{Duration, Instant};

/// A port that was free a moment ago.
pub fn free() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Wait until a socket listens on `port`.
///
/// This reads the kernel's table and does not connect: NPtcp takes the first connection that it gets for its
/// measurement, and a connection of ours would show up in the server's statistics.
pub fn wait_listening(port: u16, limit: Duration) -> bool {
    let end = Instant::now() + limit;
    loop {
        if listening("/proc/net/tcp", port) || listening("/proc/net/tcp6", port) {
            return true;
        }
        if Instant::now() >= end || crate::registry::interrupted() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn listening(table: &str, port: u16) -> bool {
    std::fs::read_to_string(table).is_ok_and(|text| has_listener(&text, port))
}

/// Column 2 is `ADDRESS:PORT` in hex, column 4 the state, of which `0A` is LISTEN.
fn has_listener(table: &str, port: u16) -> bool {
    let wanted = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let mut columns = line.split_whitespace().skip(1);
        columns.next().is_some_and(|local| local.ends_with(&wanted)) && columns.nth(1) == Some("0A")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_listeners_only() {
        let table = "  sl  local_address rem_address   st\n\
                     0: 0100007F:56CE 00000000:0000 0A 0 0\n\
                     1: 0100007F:1F90 0100007F:56CE 01 0 0\n";
        assert!(has_listener(table, 0x56CE));
        assert!(!has_listener(table, 0x1F90));
        assert!(!has_listener(table, 1));
    }

    #[test]
    fn sees_a_real_listener() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(wait_listening(port, Duration::from_secs(1)));
    }
}
