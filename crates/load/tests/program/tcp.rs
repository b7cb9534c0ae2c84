// SPDX-License-Identifier: Apache-2.0
//! What is sent and what is taken for a reply. Each test is run by one user, who blocks, and by
//! several, who are polled.

use crate::server::{Scratch, Server, measure_tcp, read_line, tare_load};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

const USERS: [&str; 2] = ["1", "3"];

/// Answers each line by the same bytes.
fn answering(reply: &'static [u8]) -> Server {
    Server::start(
        move |mut stream, _| {
            while read_line(&mut stream) && stream.write_all(reply).is_ok() {}
        },
    )
}

fn succeeded(target: &Value, requests: u64) {
    assert_eq!((&target["requests"], &target["errors"]), (&json!(requests), &json!(0)), "{target}");
}

#[test]
fn a_reply_ends_as_it_was_said() {
    for (end, reply) in [
        (["--reply-bytes", "5"], &b"hello"[..]),
        (["--reply-until", "\\r\\n"], b"a\rb\nc\r\n"),
        (["--reply-until", "\\x00"], b"\n\0"),
        (["--reply", "resp"], b"*2\r\n$5\r\na\r\nbc\r\n:1\r\n"),
    ] {
        for users in USERS {
            let server = answering(reply);
            let load = ["--send", "x\\n", "--users", users, "--requests", "50"];
            let target = measure_tcp(&server, &[&load[..], &end].concat());
            succeeded(&target, 50);
            // One connection more looks whether the service is there.
            let connections = server.connections.load(Ordering::SeqCst);
            assert_eq!(connections, users.parse::<usize>().unwrap() + 1);
        }
    }
}

#[test]
fn the_request_goes_out_as_it_was_given() {
    let bytes = b"GET \0\xff\\ \r\n";
    let file = Scratch::new("request", bytes);
    for request in [["--send", "GET \\0\\xFF\\\\ \\r\\n"], ["--send-file", file.path()]] {
        for users in USERS {
            let wrong = Arc::new(Mutex::new(Vec::new()));
            let seen = wrong.clone();
            let server = Server::start(move |mut stream, _| {
                let mut request = [0; 10];
                while stream.read_exact(&mut request).is_ok() {
                    if request != *bytes {
                        seen.lock().unwrap().push(request);
                    }
                    stream.write_all(b"+OK\r\n").unwrap();
                }
            });
            let load = ["--users", users, "--requests", "9", "--reply", "resp"];
            succeeded(&measure_tcp(&server, &[&load[..], &request].concat()), 9);
            assert!(wrong.lock().unwrap().is_empty(), "{wrong:?}");
        }
    }
}

#[test]
fn a_request_may_be_larger_than_what_sockets_hold() {
    let large = Scratch::new("large-tcp", &vec![b'x'; 16 << 20]);
    for users in USERS {
        let server = Server::start(|mut stream, _| {
            let mut request = vec![0; 16 << 20];
            while stream.read_exact(&mut request).is_ok() && stream.write_all(b"ok").is_ok() {}
        });
        let load = ["--send-file", large.path(), "--reply-bytes", "2", "--requests", "6"];
        succeeded(&measure_tcp(&server, &[&load[..], &["--users", users]].concat()), 6);
    }
}

#[test]
fn replies_may_come_byte_by_byte() {
    for (end, reply) in [
        (["--reply-bytes", "5"], "hello"),
        (["--reply-until", "abab"], "abaabab"),
        (["--reply", "resp"], "*2\r\n$3\r\nabc\r\n-ERR\r\n"),
    ] {
        for users in USERS {
            let server = Server::start(move |mut stream, _| {
                stream.set_nodelay(true).unwrap();
                while read_line(&mut stream) {
                    for byte in reply.as_bytes().chunks(1) {
                        if stream.write_all(byte).is_err() {
                            return;
                        }
                        std::thread::sleep(std::time::Duration::from_micros(100));
                    }
                }
            });
            let load = ["--send", "x\\n", "--users", users, "--requests", "6"];
            succeeded(&measure_tcp(&server, &[&load[..], &end].concat()), 6);
        }
    }
}

#[test]
fn rates_hold_and_several_targets_take_turns() {
    let (first, second) = (answering(b"+OK\r\n"), answering(b"+OK\r\n"));
    let targets = [format!("one={}", first.address), format!("two={}", second.address)];
    for mode in ["open", "constant"] {
        let output = tare_load(
            &[
                &["tcp", "--target", &targets[0], "--target", &targets[1], "--send", "x\\n"][..],
                &["--reply", "resp", "--mode", mode, "--rate", "1000", "--users", "4", "--json"],
                &["--duration", "400ms", "--slice", "10ms", "--warmup", "0s"],
            ]
            .concat(),
        );
        assert!(output.status.success());
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        for target in 0..2 {
            let target = &printed["targets"][target];
            assert_eq!(target["errors"], json!(0), "{target}");
            let requests = target["requests"].as_u64().unwrap();
            assert!((1..=300).contains(&requests), "{mode} {target}");
        }
    }
}

#[test]
fn with_a_connection_for_each_request_none_is_used_again() {
    for users in USERS {
        let server = answering(b"+OK\r\n");
        let load = ["--send", "x\\n", "--reply", "resp", "--users", users, "--requests", "20"];
        let target = measure_tcp(&server, &[&load[..], &["--connection", "per-request"]].concat());
        succeeded(&target, 20);
        assert_eq!(server.connections.load(Ordering::SeqCst), 21);
    }
}

#[test]
fn an_idle_connection_that_the_server_closes_is_made_anew() {
    for users in USERS {
        let server = Server::start(|mut stream: TcpStream, _| {
            stream.set_read_timeout(Some(std::time::Duration::from_millis(5))).unwrap();
            while read_line(&mut stream) && stream.write_all(b"+OK\r\n").is_ok() {}
        });
        let load = ["--mode", "constant", "--rate", "40", "--requests", "20", "--users", users];
        let errors = || {
            let request = ["--send", "x\\n", "--reply", "resp"];
            measure_tcp(&server, &[&load[..], &request].concat())["errors"].as_u64().unwrap()
        };
        // A server that closes while it is sent to makes an error; without care for idle
        // connections every second request would fail.
        assert!((0..10).any(|_| errors() <= 4));
    }
}

#[test]
fn the_capacity_of_a_service_is_found() {
    let server = answering(b"+OK\r\n");
    let address = server.address.to_string();
    let load = ["tcp", &*address, "--send", "x\\n", "--reply", "resp", "--capacity", "--json"];
    let output = tare_load(&load);
    assert!(output.status.success());
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(printed["capacity"]["rate"].as_f64().unwrap() > 0.0, "{printed}");
}
