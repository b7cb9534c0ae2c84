// SPDX-License-Identifier: Apache-2.0
use super::*;

const LIMIT: u64 = 1 << 16;

const REPLIES: &[&str] = &[
    "+OK\r\n",
    "+\r\n",
    "-ERR unknown command\r\n",
    ":-42\r\n",
    "_\r\n",
    "#t\r\n",
    ",1.5e3\r\n",
    "(3492890328409238509324850943850943825024385\r\n",
    "$5\r\nhello\r\n",
    "$0\r\n\r\n",
    "$-1\r\n",
    "$4\r\n\r\n\r\n\r\n",
    "!5\r\nERR x\r\n",
    "=7\r\ntxt:abc\r\n",
    "*0\r\n",
    "*-1\r\n",
    "*3\r\n$1\r\na\r\n:1\r\n-ERR inside\r\n",
    "*2\r\n*2\r\n+a\r\n*0\r\n*1\r\n*1\r\n_\r\n",
    "%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n",
    "~2\r\n+a\r\n+b\r\n",
    ">2\r\n+invalidate\r\n*1\r\n+key\r\n+OK\r\n",
    ">0\r\n>1\r\n+x\r\n$1\r\ny\r\n",
    "|1\r\n+ttl\r\n:3600\r\n*2\r\n+a\r\n|1\r\n+b\r\n:1\r\n+c\r\n",
];

const MALFORMED: &[&str] = &[
    "\r\n",
    "HTTP/1.1 200 OK\r\n",
    "+OK\n",
    "+O\rK\r\n",
    "$x\r\n",
    "$\r\n",
    "$-2\r\n",
    "$-\r\n",
    "$--1\r\n",
    "$1\rx",
    "$?\r\n",
    "*?\r\n",
    "%-1\r\n",
    "$2\r\nabc\r\n",
    "$1\r\na\n",
    "*1\r\n>1\r\n+a\r\n",
    "*2\r\n+a\r\n\r\n",
    "$10000000000000000000000\r\n",
];

/// The slow, literal way: the length of one element at the start of the text, by recursion.
fn element(text: &str) -> usize {
    let line = text.find("\r\n").unwrap() + 2;
    let number = || text[1..line - 2].parse::<i64>().unwrap();
    let elements =
        |count: i64| (0..count).fold(line, |length, _| length + element(&text[length..]));
    match text.as_bytes()[0] {
        b'$' | b'!' | b'=' => usize::try_from(number()).map_or(line, |length| line + length + 2),
        b'*' | b'~' => elements(number()),
        b'%' => elements(2 * number()),
        b'>' => {
            let aside = elements(number());
            aside + element(&text[aside..])
        }
        b'|' => {
            let aside = elements(2 * number());
            aside + element(&text[aside..])
        }
        _ => line,
    }
}

/// The reply to pieces that come one after the other, and what of them is not its own.
fn read(pieces: &[&[u8]], limit: u64) -> Result<(Resp, usize), Refusal> {
    let mut resp = Resp::new(limit);
    let mut left = 0;
    for piece in pieces {
        left += piece.len() - resp.advance(piece)?;
    }
    Ok((resp, left))
}

#[test]
fn replies_end_where_a_recursive_parser_ends_them() {
    for reply in REPLIES {
        assert_eq!(element(reply), reply.len(), "{reply:?}");
        let text = format!("{reply}+next\r\n");
        let (resp, left) = read(&[text.as_bytes()], LIMIT).unwrap();
        assert!(resp.is_done(), "{reply:?}");
        assert_eq!(left, "+next\r\n".len(), "{reply:?}");
    }
}

#[test]
fn replies_are_read_at_every_split() {
    for reply in REPLIES {
        for split in 0..=reply.len() {
            let (begin, end) = reply.as_bytes().split_at(split);
            let (resp, left) = read(&[begin, end], LIMIT).unwrap();
            assert!(resp.is_done() && left == 0, "{reply:?} split at {split}");
        }
        let bytes: Vec<_> = reply.as_bytes().chunks(1).collect();
        let (resp, left) = read(&bytes, LIMIT).unwrap();
        assert!(resp.is_done() && left == 0, "{reply:?} byte by byte");
    }
}

#[test]
fn no_prefix_is_taken_for_the_whole() {
    for reply in REPLIES {
        for length in 0..reply.len() {
            let (resp, left) = read(&[&reply.as_bytes()[..length]], LIMIT).unwrap();
            assert!(!resp.is_done() && left == 0, "{:?}", &reply[..length]);
        }
    }
}

#[test]
fn what_is_not_the_protocol_is_refused_at_every_split() {
    for text in MALFORMED {
        for split in 0..=text.len() {
            let (begin, end) = text.as_bytes().split_at(split);
            let refused = read(&[begin, end], u64::MAX).map(drop);
            assert_eq!(refused, Err(Refusal::Malformed), "{text:?} split at {split}");
        }
    }
}

#[test]
fn only_the_reply_itself_can_be_an_error() {
    for (reply, is_error) in [
        ("-ERR\r\n", true),
        ("!3\r\nERR\r\n", true),
        ("*1\r\n-ERR\r\n", false),
        (">1\r\n-x\r\n+OK\r\n", false),
        (">1\r\n+x\r\n-ERR\r\n", true),
        ("|1\r\n+x\r\n*1\r\n-y\r\n-ERR\r\n", true),
    ] {
        let (resp, _) = read(&[reply.as_bytes()], LIMIT).unwrap();
        assert!(resp.is_done(), "{reply:?}");
        assert_eq!(resp.is_error(), is_error, "{reply:?}");
    }
}

#[test]
fn what_is_announced_above_the_limit_is_refused_before_it_comes() {
    for bomb in [
        "*1000000000\r\n",
        "$1000000000\r\n",
        "%9999999999999999999\r\n",
        ">9999999999999999999\r\n",
        "$9999999999999999999\r\n",
        "*100\r\n*1000000000\r\n",
        "*20000\r\n*20000\r\n",
    ] {
        assert_eq!(read(&[bomb.as_bytes()], LIMIT).map(drop), Err(Refusal::TooLong), "{bomb:?}");
    }
}

#[test]
fn endless_nesting_ends_at_the_limit() {
    for endless in ["*1\r\n", "%1\r\n+a\r\n", ">0\r\n", "|0\r\n"] {
        let many = endless.repeat(1 + LIMIT as usize / endless.len());
        assert_eq!(read(&[many.as_bytes()], LIMIT).map(drop), Err(Refusal::TooLong), "{endless:?}");
    }
    assert_eq!(read(&[&[b'+'; LIMIT as usize + 1]], LIMIT).map(drop), Err(Refusal::TooLong));
}

#[test]
fn deep_nesting_below_the_limit_is_read() {
    let deep = format!("{}_\r\n", "*1\r\n".repeat(10_000));
    assert!(read(&[deep.as_bytes()], LIMIT).unwrap().0.is_done());
}

#[test]
fn a_reply_may_be_as_long_as_its_limit() {
    let (resp, left) = read(&[b"$3\r\nabc\r\n+next"], 9).unwrap();
    assert!(resp.is_done() && left == 5);
    assert_eq!(read(&[b"$3\r\nabc\r\n"], 8).map(drop), Err(Refusal::TooLong));
}
