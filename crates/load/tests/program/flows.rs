// SPDX-License-Identifier: Apache-2.0
//! Flows, against `tare-load serve` and against servers that misbehave.

use crate::server::{Scratch, tare_load};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

/// `tare-load serve` on a free port, until it is dropped.
struct Echo {
    process: Child,
    addresses: Vec<String>,
}

impl Echo {
    fn start(served: &str, listen: &str, lines: usize) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_tare-load"))
            .args(["serve", served, "--listen", listen])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let addresses = output
            .lines()
            .take(lines)
            .map(|line| line.unwrap().rsplit_once(' ').unwrap().1.to_owned())
            .collect();
        Self { process, addresses }
    }

    fn address(&self) -> &str {
        &self.addresses[0]
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn load(words: &[&str]) -> Output {
    tare_load(words)
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn targets(words: &[&str]) -> Vec<Value> {
    let printed: Value = serde_json::from_str(&text(&load(words))).unwrap();
    printed["targets"].as_array().unwrap().clone()
}

#[test]
fn each_message_of_ephemeral_flows_has_a_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = thread::spawn(move || {
        let mut seen = 0;
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut message = [0; 100];
            if stream.read_exact(&mut message).is_err() {
                return seen; // the connection that ends the server
            }
            std::io::Write::write_all(&mut stream, &message).unwrap();
            // The client closes when it has its message.
            assert_eq!(stream.read(&mut message).unwrap(), 0);
            seen += 1;
        }
        seen
    });
    let flows = ["--flavor", "ephemeral", "--rate", "200", "--duration", "200ms"];
    let words = [&["connect", "tcp", &address, "--message-bytes", "100", "--json"], &flows[..]];
    let found = targets(&words.concat());
    drop(std::net::TcpStream::connect(&address).unwrap());
    let seen: u64 = server.join().unwrap();
    assert_eq!(seen, 40);
    assert_eq!((&found[0]["requests"], &found[0]["errors"]), (&json!(seen), &json!(0)));
}

#[test]
fn all_servers_of_both_protocols_have_persistent_flows() {
    let echo = Echo::start("all", "127.0.0.1:0,127.0.0.1:0", 4);
    for protocol in ["tcp", "udp"] {
        let file = Scratch::new("addresses", format!("{}\n", echo.addresses[1]).as_bytes());
        let mut words = vec!["connect", protocol, echo.address(), "--addrs-file", file.path()];
        words.extend(["--flavor", "persistent", "--connections", "3", "--rate", "50"]);
        words.extend(["--duration", "200ms", "--json"]);
        let found = targets(&words);
        assert_eq!(found.len(), 2);
        for (target, address) in found.iter().zip(&echo.addresses) {
            assert_eq!(target["name"], json!(address));
            assert_eq!(target["errors"], json!(0), "{target}");
            assert!(target["requests"].as_u64() >= Some(3), "{target}");
        }
    }
}

#[test]
fn long_messages_come_back_whole() {
    let echo = Echo::start("all", "127.0.0.1:0", 2);
    for protocol in ["tcp", "udp"] {
        let words = ["connect", protocol, echo.address(), "--message-bytes", "65507", "--json"];
        let rest = ["--connections", "1", "--rate", "20", "--duration", "200ms"];
        let found = targets(&[&words[..], &rest].concat());
        assert_eq!(found[0]["errors"], json!(0), "{}", found[0]);
        assert!(found[0]["requests"].as_u64() > Some(0));
    }
}

#[test]
fn a_port_without_a_server_is_named() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let udp = load(&["udp", &free, "--duration", "50ms"]);
    let tcp = load(&["connect", "tcp", &free, "--duration", "50ms"]);
    for (output, why) in [(udp, "no message came back: "), (tcp, "Connection refused")] {
        assert_eq!(output.status.code(), Some(1));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(why) && error.contains(&free), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn lost_datagrams_and_late_replies_are_failures_of_their_own_message() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    thread::spawn(move || {
        // Each message is answered by the one before it: none is its own.
        let mut before = vec![0; 64];
        let mut message = [0; 64];
        while let Ok((bytes, client)) = server.recv_from(&mut message) {
            let _ = server.send_to(&before, client);
            before = message[..bytes].to_vec();
        }
    });
    let words = ["udp", &address, "--flavor", "persistent", "--connections", "1"];
    let rest = ["--rate", "100", "--timeout", "20ms", "--duration", "100ms"];
    let output = load(&[&words[..], &rest].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("no complete reply within 20ms"));
}

#[test]
fn reports_have_the_columns_and_keys_of_connperf() {
    let echo = Echo::start("udp", "127.0.0.1:0", 1);
    let words = ["udp", echo.address(), "--duration", "300ms", "--interval", "100ms"];
    let printed = text(&load(&words));
    let header = "PEER                      CNT        LAT_MAX(µs)";
    let (_, total) = printed.split_once("--- A result during total execution time ---\n").unwrap();
    assert!(total.starts_with(header), "{printed}");
    assert!(total.trim_end().ends_with("messages/s came back"), "{printed}");
    let lines = text(&load(&[&words[..], &["--jsonlines"]].concat()));
    let objects: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, intervals) = objects.split_last().unwrap();
    assert_eq!((&last["total"], &last["errors"]), (&json!(true), &json!(0)));
    assert_eq!(last["count"], json!(30));
    let counted: u64 = intervals.iter().map(|interval| interval["count"].as_u64().unwrap()).sum();
    assert!(Some(counted) <= last["count"].as_u64());
    for key in ["max", "min", "mean", "90p", "95p", "99p"] {
        assert!(last[format!("latency_{key}_us")].is_number(), "{last}");
    }
    assert_eq!(last["peer"], json!(echo.address()));
    let merged = [&words[..], &["--show-only-results", "--merge-results-each-host"]].concat();
    let merged = text(&load(&merged));
    assert!(merged.lines().any(|line| line.starts_with("127.0.0.1 ")), "{merged}");
}

#[test]
fn a_client_that_takes_nothing_back_stops_no_other() {
    let echo = Echo::start("tcp", "127.0.0.1:0", 1);
    let mut greedy = std::net::TcpStream::connect(echo.address()).unwrap();
    greedy.set_nonblocking(true).unwrap();
    // Until both directions are full.
    while std::io::Write::write(&mut greedy, &[7; 65_536]).is_ok() {}
    let words = ["connect", "tcp", echo.address(), "--connections", "1", "--duration", "100ms"];
    let found = targets(&[&words[..], &["--json"]].concat());
    assert_eq!(found[0]["errors"], json!(0));
    greedy.set_nonblocking(false).unwrap();
    let mut back = [0; 65_536];
    greedy.read_exact(&mut back).unwrap();
    assert!(back.iter().all(|byte| *byte == 7));
}
