// SPDX-License-Identifier: Apache-2.0
//! Services that misbehave: what they do is recorded, and the load goes on. Each test is run by
//! one user, who blocks, by several, who are polled, and by some with several requests under way.

use crate::server::{Server, measure_tcp, read_line, reset};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;

const USERS: [&[&str]; 3] =
    [&["--users", "1"], &["--users", "3"], &["--users", "2", "--pipeline", "3"]];
const RESP: &[&str] = &["--reply", "resp"];

/// What came of 12 requests of one kind of users.
fn measured(
    users: &[&str],
    more: &[&str],
    serve: impl Fn(TcpStream) + Send + Sync + 'static,
) -> Value {
    let server = Server::start(move |stream, _| serve(stream));
    let target =
        measure_tcp(&server, &[users, &["--send", "x\\n", "--requests", "12"], more].concat());
    assert_eq!(target["requests"], json!(12), "{target}");
    target
}

/// Every request fails by this error when the service does the same on each connection.
fn all_fail(kind: &str, more: &[&str], serve: impl Fn(TcpStream) + Send + Sync + Clone + 'static) {
    for users in USERS {
        let target = measured(users, more, serve.clone());
        assert_eq!(target["errors_by_kind"], json!({kind: 12}), "{users:?} {target}");
    }
}

/// Sends this after the first request, and the end of the stream when the client is gone.
fn after_a_request(reply: &'static [u8]) -> impl Fn(TcpStream) + Send + Sync + Clone + 'static {
    move |mut stream| {
        if read_line(&mut stream) && stream.write_all(reply).is_ok() {
            while read_line(&mut stream) {}
        }
    }
}

/// Sends this after the first request, over and over.
fn endlessly(
    first: &'static [u8],
    more: &'static [u8],
) -> impl Fn(TcpStream) + Send + Sync + Clone + 'static {
    let more = more.repeat(4096);
    move |mut stream| {
        if read_line(&mut stream) && stream.write_all(first).is_ok() {
            while stream.write_all(&more).is_ok() {}
        }
    }
}

#[test]
fn a_reply_without_end_ends_at_its_limit() {
    let limit = ["--reply-limit", "1000000"];
    all_fail("limit", &[RESP, &limit].concat(), endlessly(b"+", b"x"));
    all_fail("limit", &[RESP, &limit].concat(), endlessly(b"", b"*1\r\n"));
    all_fail("limit", &[&["--reply-until", "\\n"][..], &limit].concat(), endlessly(b"", b"x"));
}

#[test]
fn a_reply_without_end_below_its_limit_is_given_up_in_time() {
    let time = ["--timeout", "100ms", "--reply-limit", "1000000000000"];
    all_fail("timeout", &[RESP, &time].concat(), endlessly(b"+", b"x"));
}

#[test]
fn what_is_announced_above_the_limit_is_refused_at_once() {
    // The time-out would be an error of another kind.
    let time = ["--timeout", "60s"];
    for bomb in [
        &b"*1000000000\r\n"[..],
        b"$1000000000\r\n",
        b"%9999999999999999999\r\n",
        b">9999999999999999999\r\n",
        b"*2\r\n*1000000000\r\n",
    ] {
        all_fail("limit", &[RESP, &time].concat(), after_a_request(bomb));
    }
}

#[test]
fn what_is_announced_and_does_not_come_is_given_up_in_time() {
    let time = ["--timeout", "100ms"];
    for bomb in [&b"*100000000\r\n"[..], b"$500000000\r\nabc", b"*1\r\n*1\r\n*1\r\n"] {
        all_fail("timeout", &[RESP, &time].concat(), after_a_request(bomb));
    }
    all_fail(
        "timeout",
        &[&["--reply-bytes", "9"][..], &time].concat(),
        after_a_request(b"12345678"),
    );
}

#[test]
fn silence_is_a_time_out() {
    for end in [RESP, &["--reply-bytes", "1"], &["--reply-until", "x"]] {
        let time = ["--timeout", "100ms"];
        all_fail("timeout", &[end, &time].concat(), |mut stream| while read_line(&mut stream) {});
    }
}

#[test]
fn what_is_not_the_protocol_is_named_so() {
    for text in [&b"HTTP/1.1 200 OK\r\n\r\n"[..], b"$x\r\n", b"$-2\r\n", b"+OK\n", b"\0\0\0\0"] {
        all_fail("protocol", RESP, after_a_request(text));
    }
}

#[test]
fn bytes_after_the_reply_are_not_the_next_one() {
    for (end, reply) in [
        (RESP, &b"+OK\r\n+OK\r\n"[..]),
        (&["--reply-bytes", "2"], b"abc"),
        (&["--reply-until", "\\n"], b"a\nb\n"),
    ] {
        for users in ["1", "3"] {
            let target = measured(&["--users", users], end, after_a_request(reply));
            assert_eq!(target["errors_by_kind"], json!({"protocol": 12}), "{target}");
        }
    }
}

#[test]
fn an_error_of_redis_is_a_reply_without_success() {
    for users in USERS {
        let target = measured(users, RESP, |mut stream| {
            while read_line(&mut stream) && stream.write_all(b"-ERR no\r\n").is_ok() {}
        });
        assert_eq!(target["errors_by_kind"], json!({"status": 12}), "{users:?} {target}");
    }
}

#[test]
fn a_close_in_place_of_a_reply_is_an_error() {
    for part in [&b""[..], b"$5\r\nhel"] {
        for (users, under_way) in USERS.into_iter().zip([1, 1, 3]) {
            let target = measured(users, RESP, move |mut stream| {
                // With requests unread it would be a reset.
                if (0..under_way).all(|_| read_line(&mut stream)) {
                    let _ = stream.write_all(part);
                }
            });
            assert_eq!(target["errors_by_kind"], json!({"closed": 12}), "{users:?} {target}");
        }
    }
}

#[test]
fn a_reset_is_an_error() {
    all_fail("reset", RESP, |mut stream| {
        read_line(&mut stream);
        reset(&stream);
    });
}

#[test]
fn a_service_that_closes_after_some_replies_loses_no_more_than_what_was_under_way() {
    for users in USERS {
        let target = measured(users, RESP, |mut stream| {
            for _ in 0..4 {
                if !read_line(&mut stream) || stream.write_all(b"+OK\r\n").is_err() {
                    return;
                }
            }
        });
        let errors = target["errors"].as_u64().unwrap();
        let ended = ["closed", "reset"].map(|kind| target["errors_by_kind"][kind].as_u64());
        assert_eq!(ended.into_iter().flatten().sum::<u64>(), errors, "{target}");
        assert!(errors <= 8, "{users:?} {target}");
    }
}
