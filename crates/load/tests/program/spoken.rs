// SPDX-License-Identifier: Apache-2.0
//! HTTP/1.1 as servers speak it, which is more than a head and a length. Each test is run by
//! one user, who blocks, and by several, who are polled.

use crate::server::{HELLO, Scratch, Server, answer_all, measure, read_request, reset};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

const USERS: [&str; 2] = ["1", "3"];
const MANY: Duration = Duration::from_millis(20);

/// What `serve` makes of some requests of one user, and of several.
fn each(requests: &str, more: &[&str], serve: impl Fn(TcpStream) + Send + Sync + Clone + 'static) {
    for users in USERS {
        let serve = serve.clone();
        let server = Server::start(move |stream, _| serve(stream));
        let load = [&["--users", users, "--requests", requests], more].concat();
        let target = measure(&server.url(), &load);
        assert_eq!(target["requests"], json!(requests.parse::<u64>().unwrap()), "{target}");
        assert_eq!(target["errors_by_kind"], json!({}), "{users} {target}");
    }
}

/// Slow enough for a connection to be idle between two requests.
const IDLE: [&str; 6] = ["--mode", "constant", "--rate", "40", "--requests", "20"];

/// A server that closes while it is sent to makes an error, which a busy machine may bring about
/// in one attempt; without care for idle connections every second request of each would fail.
fn idle(server: &Server, users: &str) {
    let load = [&IDLE[..], &["--users", users]].concat();
    let errors = || measure(&server.url(), &load)["errors"].as_u64().unwrap();
    assert!((0..10).any(|_| errors() <= 4));
}

fn in_pieces(stream: &mut TcpStream, pieces: &[&[u8]]) {
    stream.set_nodelay(true).unwrap();
    for piece in pieces {
        if stream.write_all(piece).is_err() {
            return;
        }
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn chunks_have_extensions_and_a_trailer() {
    let body = Scratch::new("chunks", b"hello, world");
    each("5", &["--expect-body", body.path()], |mut stream| {
        let pieces: [&[u8]; 6] = [
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Digest\r\n\r\n",
            b"5;name=\"a;b\r",
            b"\nhello\r\n",
            b"00007 ; x\r\n, world\r\n0;last\r\nDig",
            b"est: 1\r\nOther: 2\r\n",
            b"\r\n",
        ];
        while read_request(&mut stream) {
            in_pieces(&mut stream, &pieces);
        }
    });
}

#[test]
fn a_request_goes_out_as_it_was_given() {
    for users in USERS {
        let server = Server::start(|mut stream, _| {
            let mut request = [0; 1024];
            while let Ok(length @ 1..) = stream.read(&mut request) {
                assert_eq!(&request[..length], b"GET /<`> HTTP/1.1\r\nHost: \r\n\r\n");
                stream.write_all(HELLO).unwrap();
            }
        });
        let load = ["--users", users, "--requests", "6", "--header", "Host:"];
        let target = measure(&format!("{}<`>", server.url()), &load);
        assert_eq!((&target["requests"], &target["errors"]), (&json!(6), &json!(0)), "{target}");
    }
}

#[test]
fn a_head_may_come_byte_by_byte() {
    let body = Scratch::new("bytes", b"hello");
    each("3", &["--expect-body", body.path()], |mut stream| {
        while read_request(&mut stream) {
            in_pieces(&mut stream, &HELLO.chunks(1).collect::<Vec<_>>());
        }
    });
}

#[test]
fn interim_answers_come_before_the_answer() {
    let sent = Scratch::new("sent", b"body");
    let expect = ["--body", sent.path(), "--header", "Expect: 100-continue"];
    let more = [&expect[..], &["--expect-status", "201"]].concat();
    each("5", &more, |mut stream| {
        let pieces: [&[u8]; 4] = [
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r",
            b"\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n",
            b"HTTP/1.1 103 Early Hints\r\nLink: </b.css>\r\n\r\nHTTP/1.1 201 Cre",
            b"ated\r\nContent-Length: 2\r\n\r\nok",
        ];
        let mut body = [0; 4];
        while read_request(&mut stream) && stream.read_exact(&mut body).is_ok() {
            in_pieces(&mut stream, &pieces);
        }
    });
}

#[test]
fn some_answers_have_no_body_whatever_their_head_says() {
    for (method, head) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n"),
    ] {
        each("9", &["--method", method], move |mut stream| {
            answer_all(&mut stream, head.as_bytes());
        });
    }
}

#[test]
fn an_answer_without_a_length_ends_with_the_connection() {
    let body = Scratch::new("end", b"until the end");
    each("6", &["--expect-body", body.path()], |mut stream| {
        read_request(&mut stream);
        in_pieces(&mut stream, &[b"HTTP/1.0 200 OK\r\n\r\nuntil", b" the ", b"end"]);
        // Half of the connection stays open until the client goes.
        stream.shutdown(Shutdown::Write).unwrap();
        read_request(&mut stream);
    });
}

#[test]
fn an_idle_connection_that_the_server_closes_is_made_anew() {
    for users in USERS {
        let server = Server::start(|mut stream, _| {
            stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
            answer_all(&mut stream, HELLO);
        });
        idle(&server, users);
        assert!(server.connections.load(Ordering::SeqCst) > 4);
    }
}

#[test]
fn what_comes_unasked_on_an_idle_connection_ends_it() {
    for users in USERS {
        let server = Server::start(|mut stream, _| {
            while read_request(&mut stream) && stream.write_all(HELLO).is_ok() {
                sleep(Duration::from_millis(5));
                let _ = stream.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n");
            }
        });
        idle(&server, users);
    }
}

#[test]
fn what_follows_an_answer_is_not_the_next_one() {
    let twice = [HELLO, HELLO].concat();
    for users in USERS {
        let twice = twice.clone();
        let server = Server::start(move |mut stream, _| answer_all(&mut stream, &twice));
        let target = measure(&server.url(), &["--users", users, "--requests", "6"]);
        assert_eq!(target["errors_by_kind"], json!({"protocol": 6}), "{target}");
    }
}

#[test]
fn a_connection_that_half_of_is_closed_takes_no_further_request() {
    for users in USERS {
        let server = Server::start(|mut stream, _| {
            if read_request(&mut stream) {
                stream.write_all(HELLO).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
                while read_request(&mut stream) {}
            }
        });
        idle(&server, users);
    }
}

#[test]
fn a_reset_in_the_middle_of_an_answer_keeps_its_status() {
    for users in USERS {
        let server = Server::start(|mut stream, _| {
            read_request(&mut stream);
            in_pieces(&mut stream, &[b"HTTP/1.1 206 OK\r\nContent-Length: 500\r\n\r\nhello"]);
            sleep(MANY);
            reset(&stream);
        });
        let target = measure(&server.url(), &["--users", users, "--requests", "3"]);
        assert_eq!(target["errors_by_kind"], json!({"reset": 3}), "{target}");
    }
}

#[test]
fn a_body_that_the_server_does_not_want_has_its_answer_all_the_same() {
    // More than sockets hold: the request is never sent whole.
    let large = Scratch::new("large", &vec![b'x'; 16 << 20]);
    const TOO_LARGE: &[u8] = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n";
    for closes in [false, true] {
        each("4", &["--body", large.path(), "--expect-status", "413"], move |mut stream| {
            read_request(&mut stream);
            stream.write_all(TOO_LARGE).unwrap();
            if closes {
                // What was sent and not read makes this a reset.
                sleep(MANY);
            } else {
                std::thread::park();
            }
        });
    }
}
