// SPDX-License-Identifier: Apache-2.0
//! Values of arguments: text to what it means, or why it means nothing.

use super::address::Address;
use super::url::Url;
use std::path::Path;
use std::time::Duration;
use tare_command::{Failure, ResultExt};

/// A target's name, and where it is.
#[derive(Debug, Clone)]
pub struct Named<Endpoint> {
    pub name: String,
    pub endpoint: Endpoint,
}

/// Bytes, written as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(pub Vec<u8>);

/// Processes of the target of that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    pub name: String,
    pub pids: Vec<libc::pid_t>,
}

/// CPUs by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(pub Vec<usize>);

pub fn named_url(text: &str) -> Result<Named<Url>, String> {
    let (name, url) = named(text, "NAME=URL")?;
    Ok(Named { name, endpoint: Url::parse(url)? })
}

pub fn address(text: &str) -> Result<Address, String> {
    Address::parse(text, None).map_err(|why| format!("expected HOST:PORT: {why}"))
}

pub fn named_address(text: &str) -> Result<Named<Address>, String> {
    let (name, endpoint) = named(text, "NAME=HOST:PORT")?;
    Ok(Named { name, endpoint: address(endpoint)? })
}

/// The targets and their names, that of a lone one without a name included.
pub fn targets<'all, Endpoint>(
    lone: Option<&'all Endpoint>,
    several: &'all [Named<Endpoint>],
) -> Result<Vec<(&'all str, &'all Endpoint)>, Failure> {
    let mut named: Vec<_> = lone.map(|endpoint| ("default", endpoint)).into_iter().collect();
    for Named { name, endpoint } in several {
        if named.iter().any(|(known, _)| known == name) {
            return Err(Failure::input(format_args!(
                "--target: two targets have the name '{name}'; \
                                                    give each its own name"
            )));
        }
        named.push((name, endpoint));
    }
    Ok(named)
}

/// The bytes of the file that an option names, if it does.
pub fn read(path: Option<&Path>, option: &str) -> Result<Option<Vec<u8>>, Failure> {
    path.map(|path| std::fs::read(path).or_input(format_args!("{option} {}", path.display())))
        .transpose()
}

/// Text with escapes for bytes that cannot be typed.
pub fn text(text: &str) -> Result<Text, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let (byte, length) = match rest.as_bytes() {
            [b'r', ..] => (b'\r', 1),
            [b'n', ..] => (b'\n', 1),
            [b't', ..] => (b'\t', 1),
            [b'0', ..] => (0, 1),
            [b'\\', ..] => (b'\\', 1),
            [b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (u8::from_str_radix(&rest[1..3], 16).unwrap_or_default(), 3)
            }
            _ => {
                let found: String = rest.chars().take(1).collect();
                return Err(format!(
                    "'\\{found}' is not an escape; expected \\r, \\n, \\t, \\0, \\xHH or \\\\"
                ));
            }
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(Text(bytes))
}

pub fn watched(text: &str) -> Result<Watched, String> {
    let (name, pids) = named(text, "NAME=PID[,PID]")?;
    let pids = pids
        .split(',')
        .map(|pid| pid.parse().ok().filter(|pid| *pid > 0))
        .collect::<Option<_>>()
        .ok_or_else(|| format!("found '{pids}', expected PID[,PID]"))?;
    Ok(Watched { name, pids })
}

fn named<'text>(text: &'text str, form: &str) -> Result<(String, &'text str), String> {
    match text.split_once('=') {
        Some((name, rest)) if !name.is_empty() && !rest.is_empty() => Ok((name.to_owned(), rest)),
        _ => Err(format!("expected {form}")),
    }
}

/// A time above zero.
pub fn duration(text: &str) -> Result<Duration, String> {
    duration_or_zero(text).and_then(|time| {
        if time.is_zero() { Err("expected a time above zero".to_owned()) } else { Ok(time) }
    })
}

/// A time in which a request can at least be started.
pub fn slice(text: &str) -> Result<Duration, String> {
    let time = duration_or_zero(text)?;
    if time < Duration::from_micros(50) {
        return Err("expected 50us or more".to_owned());
    }
    Ok(time)
}

/// A number and its unit, such as `1.5ms`.
pub fn duration_or_zero(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|letter: char| letter.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a number and a unit: ns, us, ms, s, m or h".to_owned()),
    };
    let number: f64 = number.trim().parse().map_err(|_| {
        format!(
            "found '{number}', expected a \
                                                                 number"
        )
    })?;
    // A week is more than any load and far from the end of an i64 of nanoseconds.
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(time) if time <= Duration::from_secs(7 * 24 * 3600) => Ok(time),
        _ => Err("expected a time from 0s to 168h".to_owned()),
    }
}

pub fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (1e-3..=1e7).contains(&rate) => Ok(rate),
        _ => Err("expected a number from 0.001 to 1e7".to_owned()),
    }
}

pub fn method(text: &str) -> Result<String, String> {
    if text.is_empty() || !text.bytes().all(is_token) {
        return Err("expected a word such as GET".to_owned());
    }
    Ok(text.to_owned())
}

/// A header, as one line `Name: value`.
pub fn header(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        Some((name, value))
            if !name.is_empty()
                && name.bytes().all(is_token)
                && !value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) =>
        {
            Ok(format!("{name}: {}", value.trim()))
        }
        _ => Err("expected 'Name: value', on one line".to_owned()),
    }
}

pub fn cpus(text: &str) -> Result<CpuList, String> {
    let most = libc::CPU_SETSIZE as usize;
    text.split(',')
        .map(|cpu| cpu.parse().ok().filter(|cpu| *cpu < most))
        .collect::<Option<_>>()
        .map(CpuList)
        .ok_or_else(|| "expected CPU numbers such as 0 or 0,2".to_owned())
}

/// The characters of RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_number_and_a_unit() {
        assert_eq!(duration("5ms"), Ok(Duration::from_millis(5)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("20us"), Ok(Duration::from_micros(20)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration_or_zero("0s"), Ok(Duration::ZERO));
        for text in ["", "5", "ms", "-1s", "1e400s", "5 parsecs", "0s", "169h", "NaNs"] {
            assert!(duration(text).is_err(), "{text:?}");
        }
        assert!(slice("49us").is_err() && slice("50us").is_ok());
    }

    #[test]
    fn escapes_are_bytes() {
        let bytes = |written| text(written).map(|text| text.0);
        assert_eq!(bytes("GET é\\r\\n").unwrap(), "GET é\r\n".as_bytes());
        assert_eq!(bytes("\\x00\\xfF\\t\\0\\\\n").unwrap(), b"\x00\xff\t\0\\n");
        assert_eq!(bytes("").unwrap(), b"");
        for wrong in ["\\", "a\\", "\\q", "\\é", "\\x", "\\x1", "\\xg0", "\\x+1", "\\x1é"] {
            assert!(text(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn headers_are_one_line() {
        assert_eq!(header("X-Y:  z"), Ok("X-Y: z".to_owned()));
        for text in ["", "X", ": y", "X y: z", "X: y\r\nZ: w"] {
            assert!(header(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn processes_and_cpus_are_lists_of_numbers() {
        assert_eq!(watched("a=1,22"), Ok(Watched { name: "a".to_owned(), pids: vec![1, 22] }));
        assert_eq!(cpus("0,2"), Ok(CpuList(vec![0, 2])));
        for text in ["a", "a=", "=1", "a=x", "a=0", "a=1,"] {
            assert!(watched(text).is_err(), "{text:?}");
        }
        for text in ["", "x", "-1", "1,", "99999"] {
            assert!(cpus(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn rates_and_methods() {
        assert_eq!(rate("0.5"), Ok(0.5));
        assert!(["0", "-1", "x", "inf", "1e9"].iter().all(|text| rate(text).is_err()));
        assert_eq!(method("PATCH"), Ok("PATCH".to_owned()));
        assert!(["", "GET /", "G\r\n"].iter().all(|text| method(text).is_err()));
    }
}
