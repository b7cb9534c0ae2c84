// SPDX-License-Identifier: Apache-2.0
//! A system call, files and a round trip over loopback.

use super::median_ns;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use tare_command::NewFile;

/// A line of a log.
const SMALL: usize = 140;
const LARGE: usize = 2_400_000;
const MESSAGE: usize = 64;

/// The time of getppid(2) in nanoseconds.
pub fn system_call() -> f64 {
    let call = || -> Result<(), Infallible> {
        // SAFETY: the call has no arguments and cannot fail.
        unsafe { libc::syscall(libc::SYS_getppid) };
        Ok(())
    };
    let Ok(found) = median_ns(101, 500, call);
    found
}

/// The time of writing 140 bytes at the end of a file.
pub fn small_write(folder: &Path) -> io::Result<f64> {
    with_file(folder, |file| median_ns(51, 50, || file.write_all(&[b'x'; SMALL])))
}

/// The times of writing and of reading 2.4 MB.
pub fn large_file(folder: &Path) -> io::Result<[f64; 2]> {
    let mut bytes = vec![b'x'; LARGE];
    with_file(folder, |file| {
        let write = median_ns(11, 1, || {
            file.rewind()?;
            file.write_all(&bytes)
        })?;
        let read = median_ns(11, 1, || {
            file.rewind()?;
            file.read_exact(&mut bytes)
        })?;
        Ok([write, read])
    })
}

/// The time until a message of 64 bytes comes back from another thread, over TCP on loopback.
pub fn round_trip() -> io::Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut user = TcpStream::connect(listener.local_addr()?)?;
    let (mut service, _) = listener.accept()?;
    user.set_nodelay(true)?;
    service.set_nodelay(true)?;
    // It ends with the connection.
    let answers = thread::spawn(move || {
        let mut message = [0; MESSAGE];
        while service.read_exact(&mut message).is_ok() && service.write_all(&message).is_ok() {}
    });
    let mut message = [b'x'; MESSAGE];
    let found = median_ns(101, 10, || {
        user.write_all(&message)?;
        user.read_exact(&mut message)
    });
    drop(user);
    let _ = answers.join();
    found
}

/// Calls a function with a new file, and removes the file.
fn with_file<Found>(
    folder: &Path,
    measure: impl FnOnce(&mut File) -> io::Result<Found>,
) -> io::Result<Found> {
    // It never gets this name.
    let new = NewFile::create(&folder.join("fingerprint"))?;
    let found = measure(&mut new.file()?);
    drop(new);
    found
}
