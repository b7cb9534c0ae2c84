// SPDX-License-Identifier: Apache-2.0
use crate::connection::Connection;
use core::ffi::c_int;
use tare_interpose::{Kind, real};
use tare_shm::syscall;

/// What a program sees of a connection that was reset.
pub fn fail<T: From<i8>>() -> T {
    real::set_errno(libc::ECONNRESET);
    T::from(-1)
}

/// Resets the connection, for the peer too; the descriptor stays the program's to close. A
/// datagram socket has no connection: only the one datagram is withheld.
#[cold]
pub fn reset(fd: c_int, kind: Kind, connection: Option<&Connection>) {
    if let Some(connection) = connection {
        connection.set_blocked();
    }
    if kind == Kind::Tcp && disconnect(fd).is_ok() || !kind.is_stream() {
        return;
    }
    let how = libc::SHUT_RDWR as usize;
    // SAFETY: no memory is touched.
    let _ = unsafe { syscall::call(libc::SYS_shutdown, [fd as usize, how, 0, 0, 0, 0]) };
}

/// Takes the connection off the socket: TCP then sends RST at once, as close(2) does with a
/// linger time of 0, but leaves the descriptor in place.
fn disconnect(fd: c_int) -> Result<usize, syscall::Errno> {
    let nowhere = libc::sockaddr { sa_family: libc::AF_UNSPEC as u16, sa_data: [0; 14] };
    let length = size_of::<libc::sockaddr>();
    // SAFETY: the kernel reads `length` bytes of `nowhere`.
    unsafe {
        let address = (&raw const nowhere).addr();
        syscall::call(libc::SYS_connect, [fd as usize, address, length, 0, 0, 0])
    }
}
