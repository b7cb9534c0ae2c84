// SPDX-License-Identifier: Apache-2.0
//! A server that does what a test wants, and tare-load run against it.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Serves every connection by a thread of its own, until the test's process ends.
pub struct Server {
    pub address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
}

impl Server {
    /// `serve` gets each connection and its number, from 0.
    pub fn start(serve: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (counter, serve) = (connections.clone(), Arc::new(serve));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let number = counter.fetch_add(1, Ordering::SeqCst);
                let (stream, serve) = (stream.unwrap(), serve.clone());
                std::thread::spawn(move || serve(stream, number));
            }
        });
        Self { address, connections }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

/// Reads one request without a body; false at the end of the stream.
pub fn read_request(stream: &mut TcpStream) -> bool {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => request.push(byte[0]),
            _ => return false,
        }
    }
    true
}

/// Reads one line; false at the end of the stream.
pub fn read_line(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    loop {
        match stream.read(&mut byte) {
            Ok(1) if byte == *b"\n" => return true,
            Ok(1) => {}
            _ => return false,
        }
    }
}

/// Answers requests with the same bytes until the client goes.
pub fn answer_all(stream: &mut TcpStream, answer: &[u8]) {
    while read_request(stream) && stream.write_all(answer).is_ok() {}
}

/// From now on connections are refused. To drop it would not do: a child that another test is
/// starting has the socket, too, until it runs its own program.
pub fn stop_listening(listener: TcpListener) {
    TcpStream::from(OwnedFd::from(listener)).shutdown(Shutdown::Both).unwrap();
}

/// Closes a connection by a reset.
pub fn reset(stream: &TcpStream) {
    use std::os::fd::AsRawFd;
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the option's value is a valid object of its size.
    let code = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of_val(&linger) as libc::socklen_t,
        )
    };
    assert_eq!(code, 0);
}

/// A file that is gone again at the end of the test.
pub struct Scratch(pub std::path::PathBuf);

impl Scratch {
    pub fn new(name: &str, content: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("tare-load-{name}-{}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub fn tare_load(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_tare-load");
    Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Runs `tare-load http URL --json` and returns what it printed about its one target.
pub fn measure(url: &str, arguments: &[&str]) -> Value {
    printed(&[&["http", url, "--json", "--warmup", "0s"], arguments].concat())
}

/// What it printed, also if no request succeeded: the exit code is 1 then, after the report.
fn printed(arguments: &[&str]) -> Value {
    let output = tare_load(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    let printed: Value = serde_json::from_slice(&output.stdout).expect(&errors);
    let target = printed["targets"][0].clone();
    let expected = i32::from(target["requests"] == target["errors"]);
    assert_eq!(output.status.code(), Some(expected), "{errors}");
    target
}

/// Runs `tare-load tcp ADDRESS --json` and returns what it printed about its one target.
pub fn measure_tcp(server: &Server, arguments: &[&str]) -> Value {
    let address = server.address.to_string();
    printed(&[&["tcp", &address, "--json", "--warmup", "0s"], arguments].concat())
}

/// Runs it where only so many files may be open.
pub fn with_files(most: usize, arguments: &str) -> Output {
    let script = format!("ulimit -n {most}; exec {} {arguments}", env!("CARGO_BIN_EXE_tare-load"));
    Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().unwrap()
}
