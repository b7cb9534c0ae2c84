// SPDX-License-Identifier: Apache-2.0
//! Several requests under way on one connection.

use crate::server::{Server, measure_tcp, read_line, reset};
use serde_json::json;
use std::io::Write;
use std::sync::atomic::Ordering;

const LOAD: [&str; 6] = ["--send", "x\\n", "--reply", "resp", "--pipeline", "4"];

#[test]
fn a_user_has_as_many_requests_under_way_as_it_may() {
    // Answers only when four requests have come: with fewer under way nothing would move.
    let server = Server::start(|mut stream, _| {
        if !(0..4).all(|_| read_line(&mut stream)) {
            return;
        }
        let mut replies = 4;
        while stream.write_all(&b"$3\r\nabc\r\n".repeat(replies)).is_ok() && read_line(&mut stream)
        {
            replies = 1;
        }
    });
    for threads in ["1", "2"] {
        let users = ["--users", "3", "--threads", threads, "--requests", "240"];
        let before = server.connections.load(Ordering::SeqCst);
        let target = measure_tcp(&server, &[&LOAD[..], &users].concat());
        assert_eq!(target["requests"], json!(240), "{target}");
        assert_eq!(target["errors"], json!(0), "{target}");
        assert_eq!(server.connections.load(Ordering::SeqCst) - before, 3 + 1);
    }
}

#[test]
fn replies_are_told_apart_wherever_they_are_cut() {
    let server = Server::start(|mut stream, _| {
        stream.set_nodelay(true).unwrap();
        let mut pending = Vec::new();
        while read_line(&mut stream) {
            pending.extend_from_slice(b"*2\r\n$3\r\nabc\r\n:1\r\n");
            // Pieces that fit no reply, and the rest later.
            while pending.len() >= 7 {
                if stream.write_all(&pending[..7]).is_err() {
                    return;
                }
                pending.drain(..7);
            }
            if stream.write_all(&pending).is_err() {
                return;
            }
            pending.clear();
        }
    });
    for mode in
        [&["--requests", "200"][..], &["--mode", "open", "--rate", "5000", "--duration", "200ms"]]
    {
        let target = measure_tcp(&server, &[&LOAD[..], mode, &["--users", "2"]].concat());
        assert_eq!(target["errors"], json!(0), "{target}");
        assert!(target["requests"].as_u64().unwrap() >= 200, "{target}");
    }
}

#[test]
fn an_error_ends_all_that_was_under_way_on_its_connection_and_nothing_else() {
    for (kind, is_silent) in [("reset", false), ("timeout", true)] {
        // The first connection looks whether the service is there.
        let server = Server::start(move |mut stream, number| {
            if number == 1 {
                for _ in 0..4 {
                    read_line(&mut stream);
                }
                while is_silent && read_line(&mut stream) {}
                return reset(&stream);
            }
            while read_line(&mut stream) && stream.write_all(b"+OK\r\n").is_ok() {}
        });
        let more = ["--users", "2", "--requests", "100", "--timeout", "2s"];
        let target = measure_tcp(&server, &[&LOAD[..], &more].concat());
        assert_eq!(target["requests"], json!(100), "{target}");
        assert_eq!(target["errors_by_kind"], json!({kind: 4}), "{target}");
    }
}

#[test]
fn a_reply_before_its_request_is_no_reply() {
    // Each request has nine replies, and there are four under way at most.
    let server = Server::start(|mut stream, _| {
        while read_line(&mut stream) && stream.write_all(&b"+OK\r\n".repeat(9)).is_ok() {}
    });
    let more = ["--users", "1", "--requests", "8"];
    let target = measure_tcp(&server, &[&LOAD[..], &more].concat());
    assert_eq!(target["requests"], json!(8), "{target}");
    assert!(target["errors_by_kind"]["protocol"].as_u64().unwrap() > 0, "{target}");
}
