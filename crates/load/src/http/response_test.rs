// SPDX-License-Identifier: Apache-2.0
use super::*;

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n\
    5\r\nhello\r\n00A;name=\"a;b\"\r\n, world...\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n";

fn expecting(body: &[u8]) -> Expected {
    Expected { statuses: Vec::new(), body: Some(body.to_vec()) }
}

/// The response to pieces that come one after the other, as a connection feeds them:
/// what is not taken comes again with the next piece.
fn read(
    pieces: &[&[u8]],
    to_head: bool,
    expected: &Expected,
) -> Result<(Response, usize), Malformed> {
    let mut response = Response::new();
    let mut kept = Vec::new();
    for piece in pieces {
        kept.extend_from_slice(piece);
        let taken = response.advance(&kept, to_head, expected)?;
        kept.drain(..taken);
    }
    Ok((response, kept.len()))
}

fn whole(text: &[u8]) -> Result<(Response, usize), Malformed> {
    read(&[text], false, &Expected::default())
}

fn error_of(text: &[u8], expected: &Expected) -> Option<ErrorKind> {
    read(&[text], false, expected).unwrap().0.outcome(expected).error
}

#[test]
fn a_chunked_response_is_read_at_every_split() {
    let expected = expecting(b"hello, world...");
    for split in 0..=CHUNKED.len() {
        let (first, second) = CHUNKED.split_at(split);
        let (response, left) = read(&[first, second], false, &expected).unwrap();
        let outcome = response.outcome(&expected);
        assert!(response.is_done() && left == 0, "split at {split}");
        let whole = Outcome { status: 200, error: None, bytes: CHUNKED.len() as u64 };
        assert_eq!(outcome, whole, "split at {split}");
    }
    let bytes: Vec<&[u8]> = CHUNKED.chunks(1).collect();
    assert!(read(&bytes, false, &expected).unwrap().0.is_done());
}

#[test]
fn no_prefix_of_a_response_is_taken_for_the_whole() {
    for length in 0..CHUNKED.len() {
        let mut response = whole(&CHUNKED[..length]).unwrap().0;
        assert!(!response.is_done() && !response.close(), "{length} bytes");
    }
}

#[test]
fn a_length_ends_the_body() {
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1";
    let (response, left) = whole(text).unwrap();
    assert!(response.is_done() && response.keeps_alive());
    assert_eq!(left, 8);
    assert_eq!(response.outcome(&Expected::default()).bytes, text.len() as u64 - 8);
}

#[test]
fn statuses_without_a_body_end_with_their_head() {
    for head in [
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        assert!(whole(head.as_bytes()).unwrap().0.is_done(), "{head}");
    }
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    assert!(read(&[head], true, &Expected::default()).unwrap().0.is_done());
    assert!(!whole(head).unwrap().0.is_done());
}

#[test]
fn heads_may_be_written_in_old_ways() {
    for head in [
        "HTTP/1.1 200\r\nContent-Length: 3\r\n\r\n",
        "\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 3\n\n",
        "HTTP/1.1 200 OK\r\nX: one,\r\n\ttwo\r\nContent-Length : 3\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: ä\r\ncontent-length:3\r\nContent-Length: 3\r\n\r\n",
    ] {
        let (response, left) = whole(format!("{head}abc").as_bytes()).unwrap();
        assert!(response.is_done() && response.keeps_alive() && left == 0, "{head}");
    }
}

#[test]
fn interim_responses_are_passed_over() {
    let text = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n\
        HTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\n!";
    let (response, left) = whole(text).unwrap();
    assert!(response.is_done() && left == 0);
    assert_eq!(response.outcome(&Expected::default()).status, 201);
}

#[test]
fn without_a_length_the_body_ends_with_the_connection() {
    for head in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"] {
        let text = [head.as_bytes(), b"until the end"].concat();
        let (mut response, _) = whole(&text).unwrap();
        assert!(!response.is_done() && !response.keeps_alive());
        assert!(response.close());
        assert_eq!(response.outcome(&expecting(b"until the end")).error, None);
    }
}

#[test]
fn the_connection_lives_as_version_and_header_say() {
    for (head, alive) in [
        ("HTTP/1.1 204 x\r\n\r\n", true),
        ("HTTP/1.1 204 x\r\nConnection: close\r\n\r\n", false),
        ("HTTP/1.1 204 x\r\nConnection: Keep-Alive, Upgrade\r\n\r\n", true),
        ("HTTP/1.1 204 x\r\nConnection: foo, CLOSE\r\n\r\n", false),
        ("HTTP/1.1 204 x\r\nConnection: close, keep-alive\r\n\r\n", false),
        ("HTTP/1.1 204 x\r\nConnection: close\r\nConnection: Keep-Alive\r\n\r\n", false),
        ("HTTP/1.0 204 x\r\nConnection: keep-alive, close\r\n\r\n", false),
        ("HTTP/1.0 204 x\r\n\r\n", false),
        ("HTTP/1.0 204 x\r\nConnection: keep-alive\r\n\r\n", true),
        ("HTTP/1.1 101 x\r\nUpgrade: y\r\n\r\n", false),
    ] {
        assert_eq!(whole(head.as_bytes()).unwrap().0.keeps_alive(), alive, "{head}");
    }
}

#[test]
fn what_http_does_not_allow_is_malformed() {
    for text in [
        "SSH-2.0-OpenSSH\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n",
    ] {
        assert_eq!(whole(text.as_bytes()).err(), Some(Malformed), "{text}");
    }
}

#[test]
fn success_is_what_was_asked_for() {
    let answer = |status: u16| format!("HTTP/1.1 {status} x\r\nContent-Length: 2\r\n\r\nab");
    let any = Expected::default();
    assert_eq!(error_of(answer(302).as_bytes(), &any), None);
    assert_eq!(error_of(answer(404).as_bytes(), &any), Some(ErrorKind::Status));
    let only = Expected { statuses: vec![404, 500], body: None };
    assert_eq!(error_of(answer(404).as_bytes(), &only), None);
    assert_eq!(error_of(answer(200).as_bytes(), &only), Some(ErrorKind::Status));
    for (body, error) in [
        ("ab", None),
        ("a", Some(ErrorKind::Body)),
        ("abc", Some(ErrorKind::Body)),
        ("aB", Some(ErrorKind::Body)),
        ("", Some(ErrorKind::Body)),
    ] {
        assert_eq!(error_of(answer(200).as_bytes(), &expecting(body.as_bytes())), error, "{body}");
    }
}

#[test]
fn a_head_has_96_headers_at_most() {
    let with = |headers: usize| {
        let lines = "X: y\r\n".repeat(headers - 1);
        whole(format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 0\r\n\r\n").as_bytes())
    };
    assert!(with(96).unwrap().0.is_done());
    assert_eq!(with(97).err(), Some(Malformed));
}
