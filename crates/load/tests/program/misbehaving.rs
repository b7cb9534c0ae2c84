// SPDX-License-Identifier: Apache-2.0
//! Servers that misbehave: what they do is recorded, and the load goes on. Each test
//! is run by one user, who blocks, and by several, who are polled.

use crate::server::{
    HELLO, Server, answer_all, measure, read_request, reset, stop_listening, tare_load,
};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::time::Duration;

const USERS: [&str; 2] = ["1", "3"];
const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

fn measured(server: &Server, users: &str, requests: &str, more: &[&str]) -> Value {
    measure(&server.url(), &[&["--users", users, "--requests", requests], more].concat())
}

#[test]
fn a_server_that_behaves_leaves_no_errors() {
    for users in USERS {
        let server = Server::start(|mut stream, _| answer_all(&mut stream, HELLO));
        let target = measured(&server, users, "50", &[]);
        assert_eq!((&target["requests"], &target["errors"]), (&json!(50), &json!(0)), "{target}");
        // One connection more looks whether the service is there.
        assert_eq!(server.connections.load(Ordering::SeqCst), users.parse::<usize>().unwrap() + 1);
    }
}

#[test]
fn connections_closed_after_some_answers_are_made_anew() {
    for users in USERS {
        let server = Server::start(|mut stream, _| {
            for _ in 0..4 {
                if !read_request(&mut stream) || stream.write_all(HELLO).is_err() {
                    return;
                }
            }
            if read_request(&mut stream) {
                let _ = stream.write_all(LAST);
            }
        });
        let target = measured(&server, users, "60", &[]);
        assert_eq!((&target["requests"], &target["errors"]), (&json!(60), &json!(0)), "{target}");
        assert!(server.connections.load(Ordering::SeqCst) > 60 / 5);
    }
}

#[test]
fn a_close_in_place_of_an_answer_is_an_error() {
    for users in USERS {
        let server = Server::start(|mut stream, _| {
            for answer in [HELLO, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"] {
                if !read_request(&mut stream) || stream.write_all(answer).is_err() {
                    return;
                }
            }
        });
        let target = measured(&server, users, "30", &[]);
        assert_eq!(target["requests"], json!(30), "{target}");
        let closed = target["errors_by_kind"]["closed"].as_u64().unwrap();
        assert_eq!(target["errors"], json!(closed), "{target}");
        assert!((14..=16).contains(&closed), "{target}");
    }
}

#[test]
fn a_reset_is_an_error() {
    for users in USERS {
        let server = Server::start(|mut stream, _| {
            read_request(&mut stream);
            reset(&stream);
        });
        let target = measured(&server, users, "10", &[]);
        assert_eq!(target["errors_by_kind"], json!({"reset": 10}), "{target}");
        assert_eq!(target["p50_ns"], Value::Null);
    }
}

#[test]
fn an_answer_that_does_not_come_in_time_is_given_up() {
    for users in USERS {
        let server = Server::start(|mut stream, number| {
            if number < 2 {
                while read_request(&mut stream) {}
            } else {
                answer_all(&mut stream, HELLO);
            }
        });
        let target = measured(&server, users, "20", &["--timeout", "500ms"]);
        assert_eq!(target["requests"], json!(20), "{target}");
        assert_eq!(target["errors_by_kind"], json!({"timeout": 1}), "{target}");
    }
}

#[test]
fn an_answer_in_small_slow_pieces_is_read() {
    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        5\r\nhello\r\n0\r\n\r\n";
    let body = std::env::temp_dir().join(format!("tare-load-body-{}", std::process::id()));
    std::fs::write(&body, "hello").unwrap();
    for users in USERS {
        let server = Server::start(|mut stream, _| {
            stream.set_nodelay(true).unwrap();
            while read_request(&mut stream) {
                for byte in CHUNKED.chunks(7) {
                    std::thread::sleep(Duration::from_millis(1));
                    if stream.write_all(byte).is_err() {
                        return;
                    }
                }
            }
        });
        let expect = ["--expect-body", body.to_str().unwrap()];
        let target = measured(&server, users, "6", &expect);
        assert_eq!((&target["requests"], &target["errors"]), (&json!(6), &json!(0)), "{target}");
        assert!(target["p50_ns"].as_i64().unwrap() > 5_000_000, "{target}");
    }
    std::fs::remove_file(body).unwrap();
}

#[test]
fn wrong_answers_are_named_by_kind() {
    let body = std::env::temp_dir().join(format!("tare-load-other-{}", std::process::id()));
    std::fs::write(&body, "other").unwrap();
    for users in USERS {
        for (answer, more, kind) in [
            ("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", vec![], "status"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello", vec![], "protocol"),
            ("SSH-2.0-OpenSSH\r\n", vec![], "protocol"),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                vec!["--expect-body", body.to_str().unwrap()],
                "body",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                vec!["--expect-status", "201", "--expect-status", "204"],
                "status",
            ),
        ] {
            let server =
                Server::start(move |mut stream, _| answer_all(&mut stream, answer.as_bytes()));
            let target = measured(&server, users, "5", &more);
            assert_eq!(target["errors_by_kind"], json!({kind: 5}), "{answer:?} {target}");
        }
    }
    std::fs::remove_file(body).unwrap();
}

#[test]
fn a_head_without_end_is_not_http() {
    for users in USERS {
        let server = Server::start(|mut stream, _| {
            read_request(&mut stream);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
            while stream.write_all(b"X-Header: and so on, and so on, and so on\r\n").is_ok() {}
        });
        let target = measured(&server, users, "3", &[]);
        assert_eq!(target["errors_by_kind"], json!({"protocol": 3}), "{target}");
    }
}

#[test]
fn a_service_that_goes_away_leaves_errors_of_connecting() {
    for users in USERS {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let answered: usize = users.parse().unwrap();
        let server = std::thread::spawn(move || {
            // The first one looks whether it is there, and sends nothing.
            let streams: Vec<_> = (0..=answered).map(|_| listener.accept().unwrap().0).collect();
            stop_listening(listener);
            for mut stream in streams {
                if read_request(&mut stream) {
                    stream.write_all(LAST).unwrap();
                }
            }
        });
        let target = measure(&url, &["--users", users, "--requests", "8", "--timeout", "1s"]);
        server.join().unwrap();
        assert_eq!(target["requests"], json!(8), "{target}");
        assert_eq!(target["errors_by_kind"], json!({"connect": 8 - answered}), "{target}");
    }
}

#[test]
fn a_service_that_is_not_there_ends_the_work() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    stop_listening(listener);
    let output = tare_load(&["http", &format!("http://{address}/")]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains(&address.to_string()) && errors.contains("refused"), "{errors}");
}

#[test]
fn with_a_connection_for_each_request_none_is_used_again() {
    for users in USERS {
        let server = Server::start(|mut stream, _| answer_all(&mut stream, HELLO));
        let target = measured(&server, users, "20", &["--connection", "per-request"]);
        assert_eq!((&target["requests"], &target["errors"]), (&json!(20), &json!(0)), "{target}");
        assert_eq!(server.connections.load(Ordering::SeqCst), 21);
    }
}

#[test]
fn a_target_that_closes_idle_connections_between_its_slices_loses_no_request() {
    let quick = Server::start(|mut stream, _| answer_all(&mut stream, HELLO));
    let closing = Server::start(|mut stream, _| {
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        answer_all(&mut stream, HELLO);
    });
    let targets = [format!("a={}", quick.url()), format!("b={}", closing.url())];
    let output = tare_load(&[
        "http",
        "--json",
        "--warmup",
        "0s",
        "--duration",
        "1600ms",
        "--slice",
        "200ms",
        "--mode",
        "constant",
        "--rate",
        "1000",
        "--users",
        "2",
        "--target",
        &targets[0],
        "--target",
        &targets[1],
    ]);
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["targets"][1]["errors"], json!(0), "{printed}");
    assert!(closing.connections.load(Ordering::SeqCst) > 4);
}

#[test]
fn an_answer_without_end_is_given_up() {
    let whole: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
    let interim: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    for users in USERS {
        for (head, more) in [(whole, &[b'x'; 4096][..]), (interim, &interim.repeat(100)[..])] {
            let more = more.to_vec();
            let server = Server::start(move |mut stream, _| {
                read_request(&mut stream);
                let _ = stream.write_all(head);
                while stream.write_all(&more).is_ok() {}
            });
            let target = measured(&server, users, "3", &["--timeout", "100ms"]);
            assert_eq!(target["errors_by_kind"], json!({"timeout": 3}), "{target}");
        }
    }
}

#[test]
fn an_open_loop_far_above_the_service_ends_soon_after_its_window() {
    let server = Server::start(|mut stream, _| {
        while read_request(&mut stream) {
            std::thread::sleep(Duration::from_millis(10));
            let _ = stream.write_all(HELLO);
        }
    });
    // One connection that bears 100 requests a second: 2000 requests would take 20 s.
    let load = ["--mode", "open", "--rate", "10000", "--users", "1", "--duration", "200ms"];
    let target = measure(&server.url(), &[&load[..], &["--timeout", "500ms"]].concat());
    assert!(target["requests"].as_u64().unwrap() > 1900, "{target}");
    assert!(target["errors_by_kind"]["timeout"].as_u64().unwrap() > 1000, "{target}");
}
