// SPDX-License-Identifier: Apache-2.0
//! Answers questions for the time, one packet at a time, and keeps nothing of who asks.

use super::packet::{self, Answer, BYTES, Refused};
use crate::procfs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::process::ExitCode;
use tare_clock::{Snapshot, Source};
use tare_command::{Failure, ResultExt, Signals};

const SIGNALS: &[i32] = &[libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Until Ctrl-C.
pub fn serve(addresses: &[SocketAddr]) -> Result<ExitCode, Failure> {
    let signals = Signals::take(SIGNALS).or_failed("signals")?;
    let names: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    let socket =
        UdpSocket::bind(addresses).or_input(format_args!("--serve {}", names.join(", ")))?;
    socket.set_nonblocking(true).or_failed("the socket")?;
    let bound = socket.local_addr().or_failed("the socket")?;
    tare_command::print(format_args!("serves its clock at {bound}\n"))?;
    let (boot, host) = (procfs::boot(), procfs::host());
    while signals.next().is_none() {
        wait(&socket, &signals).or_failed("the socket")?;
        let mut bytes = [0; BYTES];
        // Whoever cannot be heard or answered asks again.
        let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
        let received = Snapshot::take();
        let answer = |number| Answer {
            number,
            received_ns: received.monotonic_ns,
            sent_ns: Source::Monotonic.now() as i64,
            realtime_ns: received.realtime_ns,
            boot,
            host: host.clone(),
        };
        let answer = match packet::read_question(&bytes[..length]) {
            Ok(number) => answer(number).bytes(),
            // From it, who asked sees which version is spoken here.
            Err(Refused::Version(_)) if length == BYTES => Answer::default().bytes(),
            Err(_) => continue,
        };
        let _ = socket.send_to(&answer, from);
    }
    Ok(ExitCode::SUCCESS)
}

/// For a packet or a signal.
fn wait(socket: &UdpSocket, signals: &Signals) -> io::Result<()> {
    let mut both = [socket.as_raw_fd(), signals.as_fd().as_raw_fd()].map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: two entries.
    match unsafe { libc::poll(both.as_mut_ptr(), 2, -1) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
