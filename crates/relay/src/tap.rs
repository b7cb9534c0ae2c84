// SPDX-License-Identifier: Apache-2.0
//! Network interfaces whose frames a program reads and writes. They exist as long as the program.

use crate::direction::Nanoseconds;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

pub struct Tap(File);

impl Tap {
    /// Makes an interface of this name in this network namespace.
    pub fn open(name: &str) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open("/dev/net/tun")?;
        // SAFETY: all zeroes is a valid value of this plain structure.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.is_empty() || name.len() >= request.ifr_name.len() {
            return Err(ErrorKind::InvalidInput.into());
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_TUN_EXCL;
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: the request is valid, and its name ends with a zero byte.
        check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
        // What hosts leave to network cards: checksums, and cutting TCP into packets. A frame on
        // one side is the same on the other.
        let offload = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        // SAFETY: the argument is a number.
        let code = unsafe {
            libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offload))
        };
        check(code)?;
        Ok(Self(file))
    }

    /// The next frame that the host sent; `None` if there is none now.
    pub fn read<'buffer>(&self, buffer: &'buffer mut [u8]) -> io::Result<Option<&'buffer [u8]>> {
        loop {
            match (&self.0).read(buffer) {
                Ok(length) => return Ok(Some(&buffer[..length])),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives a frame to the host, which drops it if it has no memory or if the interface is down.
    pub fn write(&self, frame: &[u8]) -> io::Result<()> {
        match (&self.0).write(frame) {
            Err(error) if error.raw_os_error() == Some(libc::EBADFD) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Waits for a frame, for so many ns at most; `None` is for ever.
pub fn wait(taps: &[Tap; 2], most: Option<Nanoseconds>) -> io::Result<()> {
    let mut polled = taps.each_ref().map(|tap| libc::pollfd {
        fd: tap.0.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    let time = most
        .map(|most| libc::timespec { tv_sec: most / 1_000_000_000, tv_nsec: most % 1_000_000_000 });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the descriptors and the time are valid; there is no signal mask.
    match check(unsafe { libc::ppoll(polled.as_mut_ptr(), 2, time, std::ptr::null()) }) {
        Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

fn check(code: libc::c_int) -> io::Result<()> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
