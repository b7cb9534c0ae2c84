// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::arguments::url::Url;
use crate::clock::Clock;
use crate::http::message::Message;
use crate::protocol::Protocol;
use crate::requests::Requests;
use crate::schedule::request_limit::RequestLimit;
use crate::target::{StreamRequest, Target};
use std::net::TcpListener;
use std::os::fd::AsRawFd;

/// One user on one connection.
fn transport(listener: &TcpListener) -> Http2 {
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let message = Message {
        method: "GET".into(),
        headers: Vec::new(),
        body: None,
        close: false,
        for_http2: true,
    };
    let (head, body) = message.for_stream(&url).unwrap();
    let target = Target {
        name: String::new(),
        address: listener.local_addr().unwrap(),
        tls: None,
        requests: Requests::new(b"", 1),
        protocol: Protocol::Http { to_head: false, expected: Arc::default() },
        stream: StreamRequest { head, body, expected: Expected::default() },
    };
    let settings = Settings {
        targets: Arc::new([target]),
        per_request: false,
        timeout: 1_000_000_000,
        request_limit: Arc::new(RequestLimit::unlimited()),
        clock: Clock::start(),
    };
    Http2::new(settings, 1, 1).unwrap()
}

#[test]
fn what_was_left_to_do_for_a_connection_that_is_gone_is_not_for_the_next() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut transport = transport(&listener);
    assert!(!transport.open((0, 0), false).unwrap());
    transport.ask(0, *transport.sides[0].connections.keys().next().unwrap());
    transport.sides[0].connections.clear();

    // Nobody has taken a connection yet: there is no room for the next one, nor news of it.
    // SAFETY: no pointers are passed.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    transport.connect(0).unwrap();
    let mut events = Vec::new();
    for event in 0..transport.wait(0) {
        transport.event(event, &mut events);
    }
    assert!(events.is_empty(), "{events:?}");
    assert!(transport.sides[0].connections.values().any(|connection| !connection.is_open()));
}
