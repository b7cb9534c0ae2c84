// SPDX-License-Identifier: Apache-2.0
//! An event as a line of JSON. At a million a second there is no time for a serializer that
//! knows nothing of what it writes.

use std::io::Write;
use std::net::Ipv6Addr;
use tare_hook_segment::{Action, Direction, Event, Symbol};

/// The columns of the table `events` that a line has.
pub const COLUMNS: &[&str] = &[
    "layer",
    "time_ns",
    "pid",
    "tid",
    "function",
    "direction",
    "local",
    "remote",
    "keyword",
    "offset",
    "action",
];

/// Appends the line of `event`, whose keyword is `keyword` as JSON; nothing, and false, where
/// it names no function that there is.
pub fn append(line: &mut Vec<u8>, event: &Event, keyword: &str, time_ns: i64) -> bool {
    let Some(function) = Symbol::ALL.get(usize::from(event.symbol)) else { return false };
    line.extend(br#"{"layer":"hook","time_ns":"#);
    if time_ns < 0 {
        line.push(b'-');
    }
    number(line, time_ns.unsigned_abs());
    line.extend(br#","pid":"#);
    number(line, event.pid.into());
    line.extend(br#","tid":"#);
    number(line, event.tid.into());
    line.extend(br#","function":""#);
    line.extend(function.name().as_bytes());
    line.extend(match event.direction {
        Direction::In => br#"","direction":"in","local":"#.as_slice(),
        Direction::Out => br#"","direction":"out","local":"#,
    });
    address(line, event.family, event.local, event.local_port);
    line.extend(br#","remote":"#);
    address(line, event.family, event.remote, event.remote_port);
    line.extend(br#","keyword":"#);
    line.extend(keyword.as_bytes());
    line.extend(br#","offset":"#);
    number(line, event.offset);
    line.extend(match event.action {
        Action::Trace => br#","action":"trace"}"#.as_slice(),
        Action::Block => br#","action":"block"}"#,
    });
    line.push(b'\n');
    true
}

/// Null where there is none: a datagram socket that is not connected has no other end.
fn address(line: &mut Vec<u8>, family: u16, bytes: [u8; 16], port: u16) {
    let is_there = port != 0 || bytes != [0; 16];
    match i32::from(family) {
        libc::AF_INET if is_there => {
            for (place, byte) in bytes[..4].iter().enumerate() {
                line.push(if place == 0 { b'"' } else { b'.' });
                number(line, (*byte).into());
            }
        }
        libc::AF_INET6 if is_there => {
            // Into memory: it cannot fail.
            let _ = write!(line, "\"[{}]", Ipv6Addr::from(bytes));
        }
        _ => {
            line.extend(b"null");
            return;
        }
    }
    line.push(b':');
    number(line, port.into());
    line.push(b'"');
}

fn number(line: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    line.extend(&digits[first..]);
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    pub const EVENT: Event = Event {
        ticks: 1_500,
        pid: 7,
        tid: 8,
        generation: 1,
        keyword: 0,
        symbol: Symbol::recv as u16,
        direction: Direction::In,
        action: Action::Trace,
        offset: 40,
        family: libc::AF_INET as u16,
        local_port: 80,
        remote_port: 4000,
        local: [127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        remote: [10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    };

    fn read(event: &Event, time_ns: i64) -> Value {
        let mut line = Vec::new();
        assert!(append(&mut line, event, r#""pass\"word""#, time_ns));
        assert_eq!(line.pop(), Some(b'\n'));
        assert!(!line.contains(&b'\n'));
        serde_json::from_slice(&line).unwrap()
    }

    #[test]
    fn a_line_has_the_declared_columns() {
        let expected = json!({
            "layer": "hook", "time_ns": 5_250, "pid": 7, "tid": 8, "function": "recv",
            "direction": "in", "local": "127.0.0.1:80", "remote": "10.0.0.2:4000",
            "keyword": "pass\"word", "offset": 40, "action": "trace",
        });
        let value = read(&EVENT, 5_250);
        assert_eq!(value, expected);
        let keys = value.as_object().unwrap();
        assert_eq!(keys.len(), COLUMNS.len());
        assert!(COLUMNS.iter().all(|name| keys.contains_key(*name)));
        tare_tables::EVENTS.select(COLUMNS);
    }

    #[test]
    fn numbers_are_written_to_their_last_digit() {
        for value in [0, 9, 10, 12_345_678_901, u64::MAX] {
            let event = Event { offset: value, pid: u32::MAX, ..EVENT };
            let line = read(&event, i64::MIN);
            assert_eq!((&line["offset"], &line["pid"]), (&json!(value), &json!(u32::MAX)));
            assert_eq!(line["time_ns"], json!(i64::MIN));
        }
    }

    #[test]
    fn addresses_are_as_the_standard_library_writes_them_or_null() {
        let bytes: [u8; 16] = std::array::from_fn(|place| (place * 31) as u8);
        let mut loopback = [0; 16];
        loopback[15] = 1;
        for (family, local) in [
            (libc::AF_INET, bytes),
            (libc::AF_INET, [255; 16]),
            (libc::AF_INET6, bytes),
            (libc::AF_INET6, loopback),
            (libc::AF_UNIX, bytes),
        ] {
            let address: Option<IpAddr> = match family {
                libc::AF_INET => local.first_chunk::<4>().map(|four| Ipv4Addr::from(*four).into()),
                libc::AF_INET6 => Some(Ipv6Addr::from(local).into()),
                _ => None,
            };
            let expected = address.map(|address| SocketAddr::new(address, 65_535).to_string());
            let event = Event { family: family as u16, local, local_port: 65_535, ..EVENT };
            assert_eq!(read(&event, 0)["local"], json!(expected));
        }
    }

    #[test]
    fn an_address_that_there_is_not_is_null() {
        for family in [libc::AF_INET, libc::AF_INET6, libc::AF_UNSPEC] {
            let event = Event { family: family as u16, remote_port: 0, remote: [0; 16], ..EVENT };
            assert_eq!(read(&event, 0)["remote"], Value::Null);
        }
        let any = Event { local: [0; 16], ..EVENT };
        assert_eq!(read(&any, 0)["local"], json!("0.0.0.0:80"));
    }

    #[test]
    fn a_function_that_there_is_not_has_no_line() {
        let mut line = Vec::new();
        assert!(!append(&mut line, &Event { symbol: u16::MAX, ..EVENT }, "\"x\"", 0));
        assert!(line.is_empty());
    }
}
