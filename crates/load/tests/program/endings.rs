// SPDX-License-Identifier: Apache-2.0
//! When the work ends before its time, and when it does not.

use crate::server::{HELLO, Server, answer_all, read_request, tare_load, with_files};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A service that takes one connection and lets all others wait.
fn full_backlog() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // SAFETY: no pointers are passed.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    listener
}

fn send(signal: i32, process: u32) {
    // SAFETY: no pointers are passed.
    unsafe { libc::kill(process.cast_signed(), signal) };
}

/// Its exit code, if it ends in time.
fn code_within(mut process: Child, most: Duration) -> Option<i32> {
    let start = Instant::now();
    loop {
        if let Some(status) = process.try_wait().unwrap() {
            return status.code();
        }
        if start.elapsed() > most {
            process.kill().unwrap();
            process.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_stop_is_heard_while_connections_are_made() {
    for users in ["1", "8"] {
        let listener = full_backlog();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let process = Command::new(env!("CARGO_BIN_EXE_tare-load"))
            .args(["http", &url, "--users", users, "--timeout", "10m"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // What looks whether the service is there has been; the next one waits.
        let status = format!("/proc/{}/net/tcp", process.id());
        let port = format!(":{:04X} 02 ", listener.local_addr().unwrap().port());
        while !std::fs::read_to_string(&status).unwrap().contains(&port) {
            std::thread::sleep(Duration::from_millis(10));
        }
        // Not SIGINT: whoever runs the tests in the background may have them ignore it.
        send(libc::SIGTERM, process.id());
        assert_eq!(code_within(process, Duration::from_secs(30)), Some(143));
    }
}

#[test]
fn a_service_that_does_not_take_connections_is_named_with_the_time_out() {
    let listener = full_backlog();
    let _first = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let output = tare_load(&["http", &url, "--timeout", "120ms"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.ends_with("cannot be reached: no answer within 120ms\n"), "{errors}");
}

#[test]
fn connections_without_files_for_them_are_no_errors_of_the_service() {
    let server = Server::start(|mut stream, _| while read_request(&mut stream) {});
    let load = format!("http {} --mode open --rate 10000 --duration 60s", server.url());
    let output = with_files(64, &load);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.lines().last().unwrap().contains("ulimit -n"), "{errors}");
}

#[test]
fn a_service_that_only_fails_has_no_capacity() {
    let server = Server::start(|mut stream, _| answer_all(&mut stream, HELLO));
    let output = tare_load(&["http", &server.url(), "--capacity", "--expect-status", "201"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("no request succeeded (status: "), "{errors}");
}

#[test]
fn an_interrupt_that_was_ignored_from_the_start_stays_so() {
    let (asked, is_asked) = std::sync::mpsc::channel();
    let server = Server::start(move |mut stream, _| {
        while read_request(&mut stream) {
            // Under load: it would stop now if it were going to.
            asked.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(2));
            let _ = stream.write_all(HELLO);
        }
    });
    let script = format!(
        "trap '' INT; exec {} http {} --warmup 0s --requests 200",
        env!("CARGO_BIN_EXE_tare-load"),
        server.url()
    );
    let process = Command::new("sh")
        .args(["-c", &script])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    is_asked.recv().unwrap();
    send(libc::SIGINT, process.id());
    assert_eq!(code_within(process, Duration::from_secs(60)), Some(0));
}
