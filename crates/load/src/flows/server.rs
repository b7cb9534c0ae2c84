// SPDX-License-Identifier: Apache-2.0
//! `tare-load serve`: sends back what it receives, over TCP and UDP.

use crate::arguments::flows::{Serve, Served};
use crate::arguments::values::{self, CpuList};
use crate::cpu_affinity;
use crate::file_limit;
use crate::net::epoll::{Epoll, Interest};
use crate::stop::{self, LOOK_UP};
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tare_command::{Failure, ResultExt};

const BACKLOG: i32 = 65_535;
/// The longest datagram.
const BUFFER: usize = 65_536;
/// Bytes of datagrams that may wait at a socket.
static QUEUE: i32 = 4 << 20;
/// Datagrams that are answered before others have their turn.
const DATAGRAMS: usize = 64;
/// Reads of one connection that are answered before others have their turn.
const READS: usize = 4;
/// Connections that are accepted before others have their turn.
const CONNECTIONS: usize = 64;
/// How long nothing is accepted when there are no files or no memory for more connections.
const NO_FILES: Duration = Duration::from_millis(10);

/// What all threads listen on.
#[derive(Default)]
struct Listeners {
    tcp: Vec<TcpListener>,
    udp: Vec<UdpSocket>,
}

pub fn run(arguments: &Serve) -> Result<ExitCode, Failure> {
    file_limit::raise_open_files();
    if let Some(CpuList(cpus)) = &arguments.cpu {
        cpu_affinity::pin(cpus).or_input("--cpu: the server cannot run on these CPUs")?;
    }
    let listeners = Arc::new(open(arguments.served, &addresses(arguments)?)?);
    stop::catch_signals().or_failed("signals cannot be caught")?;
    tare_command::print(
        announced(&listeners).or_failed("the address of a socket cannot be read")?,
    )?;
    let end = arguments.duration.map(|time| Instant::now() + time);
    let threads: Vec<_> = (0..arguments.threads)
        .map(|_| {
            let listeners = listeners.clone();
            thread::spawn(move || Server::new(&listeners)?.serve(end))
        })
        .collect();
    for thread in threads {
        let served = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
        served.or_failed("the server stopped")?;
    }
    Ok(match stop::signal() {
        Some(signal) => ExitCode::from(128 + signal as u8),
        None => ExitCode::SUCCESS,
    })
}

/// The addresses of the command line and of the file.
fn addresses(arguments: &Serve) -> Result<Vec<SocketAddr>, Failure> {
    let file = values::read(arguments.listen_addrs_file.as_deref(), "--listen-addrs-file")?;
    let Some(file) = file else { return Ok(arguments.listen.clone()) };
    String::from_utf8_lossy(&file)
        .split_whitespace()
        .map(|word| {
            word.parse().map_err(|_| {
                Failure::input(format_args!(
                    "--listen-addrs-file: found '{word}', expected \
                                             IP:PORT"
                ))
            })
        })
        .collect()
}

fn open(served: Served, addresses: &[SocketAddr]) -> Result<Listeners, Failure> {
    let mut listeners = Listeners::default();
    for address in addresses {
        let mut address = *address;
        if served != Served::Udp {
            let listener = listen(&address).or_failed(format_args!("tcp {address}"))?;
            // Both protocols have the same free port.
            address = listener.local_addr().or_failed(format_args!("tcp {address}"))?;
            listeners.tcp.push(listener);
        }
        if served != Served::Tcp {
            let socket = UdpSocket::bind(address)
                .and_then(|socket| socket.set_nonblocking(true).map(|()| socket))
                .or_failed(format_args!("udp {address}"))?;
            lengthen_queue(&socket);
            listeners.udp.push(socket);
        }
    }
    Ok(listeners)
}

fn listen(address: &SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    // SAFETY: no pointers are passed; a second call only makes the queue longer.
    match unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) } {
        0 => Ok(listener),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lets more datagrams wait, as far as the kernel allows: as root beyond its limit.
fn lengthen_queue(socket: &UdpSocket) {
    for option in [libc::SO_RCVBUF, libc::SO_RCVBUFFORCE] {
        let length = size_of::<i32>() as libc::socklen_t;
        // SAFETY: the option's value is a valid number of `length` bytes.
        unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                (&raw const QUEUE).cast(),
                length,
            )
        };
    }
}

/// A line for each address, for scripts that wait until it listens.
fn announced(listeners: &Listeners) -> io::Result<String> {
    let mut text = String::new();
    for listener in &listeners.tcp {
        let _ = writeln!(text, "listening on tcp {}", listener.local_addr()?);
    }
    for socket in &listeners.udp {
        let _ = writeln!(text, "listening on udp {}", socket.local_addr()?);
    }
    Ok(text)
}

/// How far a connection came in its turn.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// It may have more: it is not reported again.
    Goes,
    /// Its next event is reported.
    Waits,
    Ended,
}

struct Connection {
    stream: TcpStream,
    /// It is in `going`.
    goes: bool,
    /// What the client has not yet taken back.
    left: Vec<u8>,
}

/// One thread.
struct Server<'a> {
    listeners: &'a Listeners,
    epoll: Epoll,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Connections that have more, in the order of their turns.
    going: Vec<usize>,
    buffer: Vec<u8>,
}

impl<'a> Server<'a> {
    fn new(listeners: &'a Listeners) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        let tcp = listeners.tcp.iter().map(AsRawFd::as_raw_fd);
        let udp = listeners.udp.iter().map(AsRawFd::as_raw_fd);
        for (key, socket) in tcp.chain(udp).enumerate() {
            epoll.add(socket, key as u64, Interest::Readable)?;
        }
        Ok(Self {
            listeners,
            epoll,
            connections: Vec::new(),
            free: Vec::new(),
            going: Vec::new(),
            buffer: vec![0; BUFFER],
        })
    }

    fn serve(mut self, end: Option<Instant>) -> io::Result<()> {
        let sockets = self.listeners.tcp.len() + self.listeners.udp.len();
        while !stop::asked() {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            let most = left.map_or(LOOK_UP, |left| left.min(LOOK_UP));
            let most = if self.going.is_empty() { most } else { Duration::ZERO };
            self.epoll.wait(most.as_nanos() as i64);
            for event in 0..self.epoll.ready() {
                let at = self.epoll.event(event).0 as usize;
                match at.checked_sub(sockets) {
                    Some(at) if self.goes(at) => {}
                    Some(at) => self.answer(at),
                    None if at < self.listeners.tcp.len() => self.accept(at)?,
                    None => self.send_back(at - self.listeners.tcp.len()),
                }
            }
            for at in std::mem::take(&mut self.going) {
                self.answer(at);
            }
        }
        Ok(())
    }

    fn accept(&mut self, at: usize) -> io::Result<()> {
        let sockets = self.listeners.tcp.len() + self.listeners.udp.len();
        for _ in 0..CONNECTIONS {
            match self.listeners.tcp[at].accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    let _ = stream.set_nodelay(true);
                    let slot = self.free.pop().unwrap_or_else(|| {
                        self.connections.push(None);
                        self.connections.len() - 1
                    });
                    let socket = stream.as_raw_fd();
                    self.connections[slot] =
                        Some(Connection { stream, goes: false, left: Vec::new() });
                    self.epoll.add(socket, (sockets + slot) as u64, Interest::Edges)?;
                    // The message may be there already.
                    self.answer(slot);
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                        thread::sleep(NO_FILES);
                        return Ok(());
                    }
                    _ if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    // The client has gone already.
                    _ => {}
                },
            }
        }
        Ok(())
    }

    /// Whether a connection has its turn without an event.
    fn goes(&self, at: usize) -> bool {
        self.connections[at].as_ref().is_some_and(|connection| connection.goes)
    }

    /// Sends back what a connection has, as far as the client takes it and its turn goes.
    fn answer(&mut self, at: usize) {
        let Some(connection) = &mut self.connections[at] else { return };
        let step = connection.echo(&mut self.buffer);
        connection.goes = step == Step::Goes;
        match step {
            Step::Goes => self.going.push(at),
            Step::Waits => {}
            Step::Ended => {
                self.connections[at] = None;
                self.free.push(at);
            }
        }
    }

    fn send_back(&mut self, at: usize) {
        let socket = &self.listeners.udp[at];
        for _ in 0..DATAGRAMS {
            match socket.recv_from(&mut self.buffer) {
                // A client that has gone, or a full queue: datagrams may be lost.
                Ok((bytes, client)) => drop(socket.send_to(&self.buffer[..bytes], client)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {}
            }
        }
    }
}

impl Connection {
    /// Answers some reads, unless it would have to wait or the client has ended.
    fn echo(&mut self, buffer: &mut [u8]) -> Step {
        for _ in 0..READS {
            match self.echo_once(buffer) {
                Ok(0) => return Step::Ended,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Step::Waits,
                Err(_) => return Step::Ended,
            }
        }
        Step::Goes
    }

    /// The bytes of one read; 0 at the end.
    fn echo_once(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.left.is_empty() {
            let sent = self.stream.write(&self.left)?;
            self.left.drain(..sent);
        }
        let bytes = self.stream.read(buffer)?;
        let sent = match self.stream.write(&buffer[..bytes]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            sent => sent?,
        };
        self.left.extend_from_slice(&buffer[sent..bytes]);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_sends_without_end_gets_one_turn_at_a_time() -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut client = TcpStream::connect(listener.local_addr()?)?;
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(true)?;
        let mut connection = Connection { stream, goes: false, left: Vec::new() };
        // Reads of ten bytes stand for a client that always has sent more.
        let mut buffer = [0; 10];
        client.write_all(&[7; 100])?;
        // They have arrived when the last one has.
        while connection.stream.peek(&mut [0; 100]).ok() != Some(100) {}
        for turn in 1..=2 {
            assert_eq!(connection.echo(&mut buffer), Step::Goes);
            let mut echoed = vec![0; READS * 10];
            client.read_exact(&mut echoed)?;
            client.set_nonblocking(true)?;
            let rest = client.read(&mut [0]).map_err(|error| error.kind());
            assert_eq!(rest, Err(io::ErrorKind::WouldBlock), "turn {turn}");
            client.set_nonblocking(false)?;
        }
        assert_eq!(connection.echo(&mut buffer), Step::Waits);
        client.shutdown(std::net::Shutdown::Write)?;
        client.read_exact(&mut [0; 20])?;
        while connection.echo(&mut buffer) == Step::Waits {}
        assert_eq!(connection.echo(&mut buffer), Step::Ended);
        Ok(())
    }
}
