//! `10.0.0.0/8:4000-5000`: addresses and ports that a rule is about.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A prefix (or every address) and a range of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Address and number of leading bits that count.
    pub prefix: Option<(IpAddr, u8)>,
    /// First and last port.
    pub ports: Option<(u16, u16)>,
}

impl FromStr for Place {
    type Err = String;

    /// `ADDRESS`, `ADDRESS/BITS`, each perhaps with `:PORT` or `:LOW-HIGH`; `*` for
    /// every address. An IPv6 address with ports stands in brackets.
    fn from_str(text: &str) -> Result<Place, String> {
        let (address, ports) = split(text)?;
        let prefix = match address {
            "*" => None,
            address => Some(prefix(address)?),
        };
        let ports = ports.map(range).transpose()?;
        Ok(Place { prefix, ports })
    }
}

/// Address (without brackets, prefix length kept apart below) and ports.
fn split(text: &str) -> Result<(&str, Option<&str>), String> {
    if text.starts_with('[') || text.matches(':').count() > 1 {
        // [::1]:80, [2001:db8::]/32:80, or a bare IPv6 address.
        let Some(close) = text.find(']') else {
            return match text.starts_with('[') {
                true => Err(format!("`{text}`: the bracket is not closed")),
                false => Ok((text, None)),
            };
        };
        return match text[close..].find(':') {
            Some(colon) => Ok((&text[..close + colon], Some(&text[close + colon + 1..]))),
            None => Ok((text, None)),
        };
    }
    match text.split_once(':') {
        Some((address, ports)) => Ok((address, Some(ports))),
        None => Ok((text, None)),
    }
}

fn prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let bare = address
        .strip_prefix('[')
        .and_then(|a| a.strip_suffix(']'))
        .unwrap_or(address);
    let ip: IpAddr = bare
        .parse()
        .map_err(|_| format!("`{address}` is no IP address (names are not looked up)"))?;
    let width = if ip.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        None => width,
        Some(bits) => bits
            .parse()
            .ok()
            .filter(|b| *b <= width)
            .ok_or_else(|| format!("`/{bits}` is no prefix length from 0 to {width}"))?,
    };
    Ok((ip, bits))
}

fn range(text: &str) -> Result<(u16, u16), String> {
    let port = |t: &str| {
        t.parse::<u16>()
            .map_err(|_| format!("`{t}` is no port from 0 to 65535"))
    };
    let (low, high) = match text.split_once('-') {
        Some((low, high)) => (port(low)?, port(high)?),
        None => (port(text)?, port(text)?),
    };
    if low > high {
        return Err(format!("ports {low}-{high} are an empty range"));
    }
    Ok((low, high))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.prefix {
            None => write!(f, "*")?,
            Some((IpAddr::V4(ip), bits)) => write!(f, "{ip}/{bits}")?,
            Some((IpAddr::V6(ip), bits)) => write!(f, "[{ip}]/{bits}")?,
        }
        match self.ports {
            None => Ok(()),
            Some((low, high)) if low == high => write!(f, ":{low}"),
            Some((low, high)) => write!(f, ":{low}-{high}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form() {
        for (text, shown) in [
            ("*", "*"),
            ("*:22", "*:22"),
            ("10.0.0.0/8:4000-5000", "10.0.0.0/8:4000-5000"),
            ("127.0.0.1", "127.0.0.1/32"),
            ("127.0.0.1:80", "127.0.0.1/32:80"),
            ("::1", "[::1]/128"),
            ("2001:db8::/32", "[2001:db8::]/32"),
            ("[::1]:80", "[::1]/128:80"),
            ("[2001:db8::]/32:1-2", "[2001:db8::]/32:1-2"),
        ] {
            let place: Place = text.parse().expect(text);
            assert_eq!(place.to_string(), shown);
            assert_eq!(shown.parse(), Ok(place));
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("localhost:80", "`localhost` is no IP address"),
            ("10.0.0.0/33", "`/33`"),
            ("::1/129", "`/129`"),
            ("*:http", "`http` is no port"),
            ("*:9-3", "9-3"),
            ("*:70000", "`70000`"),
            ("[::1", "bracket"),
            ("", "``"),
            ("[]", "no IP address"),
            ("10.0.0.1:", "`` is no port"),
        ] {
            let error = text.parse::<Place>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
