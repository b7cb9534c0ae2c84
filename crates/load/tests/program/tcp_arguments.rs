// SPDX-License-Identifier: Apache-2.0
//! Wrong arguments end with exit code 2 and one line that says what is wrong.

use crate::server::{Scratch, Server, read_line, tare_load};
use std::io::Write;

#[test]
fn wrong_arguments_are_one_line_and_exit_code_2() {
    let server =
        Server::start(
            |mut stream, _| {
                while read_line(&mut stream) && stream.write_all(b"+OK\r\n").is_ok() {}
            },
        );
    let address = server.address.to_string();
    let named = format!("a={address}");
    let empty = Scratch::new("empty", b"");
    let send = ["--send", "x\\n"];
    let resp = ["--reply", "resp"];
    let whole = [&[&*address][..], &send, &resp].concat();
    for (arguments, says) in [
        (vec![], "HOST:PORT"),
        (vec![&*address], "--send"),
        ([&[&*address][..], &send].concat(), "--reply"),
        ([&["localhost"][..], &send, &resp].concat(), "HOST:PORT"),
        ([&["http://localhost/"][..], &send, &resp].concat(), "HOST:PORT"),
        ([&["--target", "a=b"][..], &send, &resp].concat(), "HOST:PORT"),
        ([&["--target", &*named, "--target", &*named][..], &send, &resp].concat(), "'a'"),
        ([&whole[..], &["--target", &*named]].concat(), "--target"),
        ([&whole[..], &["--reply-bytes", "1"]].concat(), "--reply-bytes"),
        ([&whole[..], &["--send-file", empty.path()]].concat(), "--send-file"),
        ([&[&*address, "--send-file", empty.path()][..], &resp].concat(), "empty"),
        ([&[&*address, "--send-file", "/does/not/exist"][..], &resp].concat(), "/does/not/exist"),
        ([&[&*address, "--send", ""][..], &resp].concat(), "empty"),
        ([&[&*address, "--send", "\\q"][..], &resp].concat(), "\\q"),
        ([&[&*address, "--send", "\\x0"][..], &resp].concat(), "\\xHH"),
        ([&[&*address, "--reply-until", ""][..], &send].concat(), "--reply-until"),
        ([&[&*address, "--reply-bytes", "0"][..], &send].concat(), "--reply-bytes"),
        ([&[&*address, "--reply", "smtp"][..], &send].concat(), "smtp"),
        ([&whole[..], &["--pipeline", "0"]].concat(), "--pipeline"),
        ([&whole[..], &["--pipeline", "2", "--connection", "per-request"]].concat(), "keep-alive"),
        ([&whole[..], &["--pipeline", "1024", "--users", "2000"]].concat(), "outstanding"),
        ([&whole[..], &["--rate", "100"]].concat(), "--mode"),
        ([&whole[..], &["--threads", "2"]].concat(), "--threads"),
    ] {
        let output = tare_load(&[vec!["tcp"], arguments.clone()].concat());
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{arguments:?}: {errors}");
        assert!(errors.starts_with("tare-load: ") && errors.contains(says), "{says}: {errors}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn the_help_shows_escapes_and_examples() {
    let output = tare_load(&["tcp", "--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("Examples:") && help.contains("\\xHH"), "{help}");
}
