// SPDX-License-Identifier: Apache-2.0
//! Wrong arguments end with exit code 2 and one line that says what is wrong.

use crate::server::{HELLO, Server, answer_all, tare_load, with_files};
use serde_json::Value;

#[test]
fn wrong_arguments_are_one_line_and_exit_code_2() {
    let server = Server::start(|mut stream, _| answer_all(&mut stream, HELLO));
    let url = server.url();
    let named = format!("a={url}");
    for (arguments, says) in [
        (vec![], "URL"),
        (vec!["ftp://a"], "http://"),
        (vec!["https://a", "--ca", "/does/not/exist"], "--ca /does/not/exist"),
        (vec![&*url, "--insecure"], "https://"),
        (vec![&*url, "--connections", "2"], "--http 2"),
        (vec![&*url, "--http", "2", "--connection", "per-request"], "--http 1.1"),
        (
            vec![&*url, "--http", "2", "--threads", "2", "--users", "2", "--connections", "1"],
            "--threads",
        ),
        (vec![&*url, "--target", &*named], "--target"),
        (vec!["--target", "a"], "NAME=URL"),
        (vec!["--target", &*named, "--target", &*named], "'a'"),
        (vec![&*url, "--duration", "10"], "unit"),
        (vec![&*url, "--duration"], "--duration"),
        (vec![&*url, "--rate", "100"], "--mode"),
        (vec![&*url, "--mode", "open"], "--rate"),
        (vec![&*url, "--threads", "2"], "--threads"),
        (vec![&*url, "--header", "no colon"], "Name: value"),
        (vec![&*url, "--body", "/does/not/exist"], "/does/not/exist"),
        (vec![&*url, "--watch", "b=1"], "--watch b"),
        (vec![&*url, "--watch", "default=4194304"], "--watch"),
        (vec![&*url, "--cpu", "1023"], "--cpu"),
        (vec![&*url, "--capacity", "--users", "3"], "--capacity"),
        (vec![&*url, "--wrong"], "--wrong"),
        (vec![&*url, "--header", "a: b\r\nc: d"], "on one line"),
        (vec![&*url, "--mode", "open", "--rate", "1e9"], "1e7"),
        (vec![&*url, "--out", "same.arrow", "--machine", "same.arrow"], "its own file"),
    ] {
        let output = tare_load(&[vec!["http"], arguments.clone()].concat());
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{arguments:?}: {errors}");
        assert!(errors.starts_with("tare-load: ") && errors.contains(says), "{errors}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_missing_command_is_named() {
    let output = tare_load(&[]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(errors, "tare-load: a command is missing; see --help\n");
}

#[test]
fn users_without_open_files_for_them_are_refused() {
    let server = Server::start(|mut stream, _| answer_all(&mut stream, HELLO));
    for users in ["--users 100", "--users 40 --threads 20"] {
        let output = with_files(64, &format!("http {} --duration 1s {users}", server.url()));
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.lines().count() == 1 && errors.contains("the limit is 64"), "{errors}");
    }
}

#[test]
fn what_is_refused_leaves_the_files_as_they_are() {
    let server = Server::start(|mut stream, _| answer_all(&mut stream, HELLO));
    let kept = std::env::temp_dir().join(format!("tare-load-kept-{}", std::process::id()));
    std::fs::write(&kept, "of an earlier run").unwrap();
    for wrong in [["--watch", "default=4194304"], ["--machine", "/nonexistent/x"]] {
        let url = server.url();
        let output =
            tare_load(&["http", &url, "--out", kept.to_str().unwrap(), wrong[0], wrong[1]]);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "of an earlier run", "{wrong:?}");
    }
    std::fs::remove_file(kept).unwrap();
}

#[test]
fn the_schema_names_both_tables() {
    let output = tare_load(&["schema", "--json"]);
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<_> = schema["tables"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert_eq!(names, ["samples", "machine"]);
    assert_eq!(schema["tables"][0]["columns"][0]["type"], "category");
}

#[test]
fn the_help_has_examples() {
    let output = tare_load(&["http", "--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stdout).unwrap().contains("Examples:"));
}
