// SPDX-License-Identifier: Apache-2.0
//! Passing a descriptor to another process over a stream socket (SCM_RIGHTS).

use crate::syscall::{self, Errno, call};
use core::ffi::c_int;
use core::mem::{MaybeUninit, offset_of};
use core::ptr;

/// Control data with room for one descriptor; a second one would fit into the bytes at its end.
#[repr(C)]
struct Rights {
    header: libc::cmsghdr,
    fds: [c_int; 2],
}

const FDS: usize = offset_of!(Rights, fds);
const ONE: usize = FDS + size_of::<c_int>();

/// A received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number of bytes; 0 at the end of the stream.
    pub length: usize,
    /// Close-on-exec.
    pub fd: Option<c_int>,
    /// The sender passed more descriptors; they were discarded.
    pub is_cut: bool,
}

/// Sends one byte and a descriptor without blocking.
pub fn send(socket: c_int, fd: c_int) -> Result<(), Errno> {
    send_with(socket, &[1], fd)
}

/// Sends bytes, at least one and at most 32, and a descriptor without blocking.
pub fn send_with(socket: c_int, bytes: &[u8], fd: c_int) -> Result<(), Errno> {
    let mut copy = [0; 32];
    let copy = &mut copy[..bytes.len()];
    copy.copy_from_slice(bytes);
    let mut rights = Rights::none();
    rights.header.cmsg_len = ONE;
    rights.header.cmsg_level = libc::SOL_SOCKET;
    rights.header.cmsg_type = libc::SCM_RIGHTS;
    rights.fds[0] = fd;
    message(libc::SYS_sendmsg, socket, copy, &mut rights, ONE).map(drop)
}

/// Receives bytes, and a descriptor if there is one, without blocking.
pub fn receive(socket: c_int, bytes: &mut [u8]) -> Result<Message, Errno> {
    let mut rights = Rights::none();
    // The kernel discards further descriptors. If this process received and closed one of a file, it
    // would lose its locks on that file.
    let (length, came, flags) = message(libc::SYS_recvmsg, socket, bytes, &mut rights, ONE)?;
    let are_rights = came >= ONE
        && rights.header.cmsg_level == libc::SOL_SOCKET
        && rights.header.cmsg_type == libc::SCM_RIGHTS;
    let count = rights.header.cmsg_len.saturating_sub(FDS) / size_of::<c_int>();
    let fds = if are_rights { &rights.fds[..count.min(rights.fds.len())] } else { &[] };
    fds.iter().skip(1).for_each(|fd| syscall::close(*fd));
    let is_cut = fds.len() > 1 || flags & libc::MSG_CTRUNC != 0;
    Ok(Message { length, fd: fds.first().copied(), is_cut })
}

impl Rights {
    fn none() -> Self {
        // SAFETY: zeros are rights.
        unsafe { MaybeUninit::zeroed().assume_init() }
    }
}

/// Returns the result of the call, the size of the control data and the message flags.
fn message(
    number: i64,
    socket: c_int,
    bytes: &mut [u8],
    rights: &mut Rights,
    room: usize,
) -> Result<(usize, usize, c_int), Errno> {
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: zeros are a message.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = ptr::from_mut(rights).cast();
    message.msg_controllen = room as _;
    let flags = (libc::MSG_NOSIGNAL | libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT) as usize;
    // SAFETY: all parts of the message live as long as the call, which writes inside of them.
    let length =
        unsafe { call(number, [socket as usize, (&raw mut message).addr(), flags, 0, 0, 0]) }?;
    Ok((length, message.msg_controllen, message.msg_flags))
}

#[cfg(all(test, not(miri)))]
mod tests {
    extern crate std;
    use super::*;
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::os::unix::net::UnixStream;

    #[test]
    fn passed_descriptor_is_the_same_file() {
        let (near, far) = UnixStream::pair().unwrap();
        let (mut passed, mut kept) = UnixStream::pair().unwrap();
        send(near.as_raw_fd(), passed.as_raw_fd()).unwrap();
        passed.write_all(b"before").unwrap();
        let came = receive(far.as_raw_fd(), &mut [0; 16]).unwrap();
        assert_eq!((came.length, came.is_cut), (1, false));
        let fd = came.fd.unwrap();
        assert_eq!(syscall::fcntl(fd, libc::F_GETFD, 0), Ok(libc::FD_CLOEXEC as usize));
        // SAFETY: it has just come.
        let mut passed = unsafe { UnixStream::from_raw_fd(fd) };
        passed.write_all(b" and after").unwrap();
        let mut text = [0; 16];
        kept.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"before and after");
    }

    #[test]
    fn message_without_descriptor_is_received_and_nothing_blocks() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let mut bytes = [0; 4];
        let nothing = receive(far.as_raw_fd(), &mut bytes);
        assert_eq!(nothing, Err(Errno(libc::EAGAIN)));
        near.write_all(b"four").unwrap();
        let came = receive(far.as_raw_fd(), &mut bytes);
        assert_eq!(came, Ok(Message { length: 4, fd: None, is_cut: false }));
        // A child of another test may have a copy of `near`, so dropping it does not end the stream.
        near.shutdown(Shutdown::Write).unwrap();
        let came = receive(far.as_raw_fd(), &mut bytes);
        assert_eq!(came, Ok(Message { length: 0, fd: None, is_cut: false }));
    }

    #[test]
    fn surplus_descriptors_are_closed() {
        let (near, far) = UnixStream::pair().unwrap();
        let (passed, mut kept) = UnixStream::pair().unwrap();
        for count in [2, 3, 200] {
            let mut room = [0u8; 1024];
            let fds = [passed.as_raw_fd(); 200];
            let header = libc::cmsghdr {
                cmsg_len: FDS + count * size_of::<c_int>(),
                cmsg_level: libc::SOL_SOCKET,
                cmsg_type: libc::SCM_RIGHTS,
            };
            // SAFETY: the room is large enough for both.
            unsafe {
                room.as_mut_ptr().cast::<libc::cmsghdr>().write_unaligned(header);
                let place = room.as_mut_ptr().add(FDS).cast::<c_int>();
                fds[..count].iter().enumerate().for_each(|(at, fd)| {
                    place.add(at).write_unaligned(*fd);
                });
            }
            let mut byte = 1u8;
            let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
            // SAFETY: zeros are a message, and its parts live as long as the call.
            unsafe {
                let mut message: libc::msghdr = MaybeUninit::zeroed().assume_init();
                message.msg_iov = &raw mut part;
                message.msg_iovlen = 1;
                message.msg_control = room.as_mut_ptr().cast();
                message.msg_controllen = header.cmsg_len as _;
                assert_eq!(libc::sendmsg(near.as_raw_fd(), &raw const message, 0), 1);
            }
            let came = receive(far.as_raw_fd(), &mut [0; 16]).unwrap();
            assert!(came.is_cut);
            syscall::close(came.fd.unwrap());
        }
        // The peer sees the end of the stream only if no copy is left open.
        drop(passed);
        assert_eq!(kept.read(&mut [0]).unwrap(), 0);
    }
}
