//! Numbers of bytes in at most six characters.

/// `n` bytes with a binary unit: `999`, `1.5K`, `20K`, `3.2G`.
pub fn bytes(n: u64) -> String {
    if n < 1000 {
        return n.to_string();
    }
    let mut value = n as f64;
    for unit in ["K", "M", "G", "T", "P", "E"] {
        value /= 1024.0;
        // What would round to 1000 belongs to the next unit.
        if value < 9.95 {
            return format!("{value:.1}{unit}");
        }
        if value < 999.5 {
            return format!("{value:.0}{unit}");
        }
    }
    format!("{value:.0}E")
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn short_and_right() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1.0K"),
            (1536, "1.5K"),
            (20 << 10, "20K"),
            (1023 << 10, "1.0M"),
            (5 << 30, "5.0G"),
            (u64::MAX, "16E"),
        ] {
            assert_eq!(bytes(n), text, "{n}");
        }
    }
}
