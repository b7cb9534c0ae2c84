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

/// Descriptors that the kernel takes in one message (`SCM_MAX_FD`).
const MOST: usize = 253;
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

/// Calls `each` with every descriptor in the control data of a message, in which `read` copies
/// the bytes at an address. It ends at the first bytes that `read` refuses with false.
pub fn each_descriptor(
    control: usize,
    length: usize,
    read: impl Fn(usize, &mut [u8]) -> bool,
    mut each: impl FnMut(c_int),
) {
    const HEADER: usize = size_of::<libc::cmsghdr>();
    const FD: usize = size_of::<c_int>();
    let end = control.saturating_add(length);
    let mut at = control;
    while end.saturating_sub(at) >= HEADER {
        let mut header = [0; HEADER];
        if !read(at, &mut header) {
            return;
        }
        // SAFETY: a header is plain numbers.
        let header: libc::cmsghdr = unsafe { core::mem::transmute(header) };
        if header.cmsg_len < HEADER || header.cmsg_len > end - at {
            return;
        }
        if header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_RIGHTS {
            let count = (header.cmsg_len - HEADER) / FD;
            for number in 0..count.min(MOST) {
                let mut fd = [0; FD];
                if read(at + HEADER + number * FD, &mut fd) {
                    each(c_int::from_ne_bytes(fd));
                }
            }
        }
        at = at.saturating_add(header.cmsg_len.next_multiple_of(size_of::<usize>()));
    }
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

    /// Puts a header and descriptors at the start of the room.
    ///
    /// # Safety
    /// The room has enough bytes for both.
    unsafe fn put(room: &mut [u8], header: libc::cmsghdr, fds: &[c_int]) {
        // SAFETY: promised by the caller.
        unsafe {
            room.as_mut_ptr().cast::<libc::cmsghdr>().write_unaligned(header);
            let place = room.as_mut_ptr().add(FDS).cast::<c_int>();
            fds.iter().enumerate().for_each(|(at, fd)| place.add(at).write_unaligned(*fd));
        }
    }

    #[test]
    fn descriptors_are_found_in_control_data_and_nothing_is_read_outside() {
        const END: usize = 80;
        let header = |cmsg_type, cmsg_len| libc::cmsghdr {
            cmsg_len,
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type,
        };
        let found = |last: usize, length: usize| {
            let mut room = [0u8; 128];
            // SAFETY: 24 bytes, padded from 20, 24 and 28 bytes.
            unsafe {
                put(&mut room[..24], header(libc::SCM_RIGHTS, FDS + 4), &[7]);
                put(&mut room[24..48], header(libc::SCM_CREDENTIALS, FDS + 8), &[8, 8]);
                put(&mut room[48..END], header(libc::SCM_RIGHTS, last), &[9, 10, 11]);
            }
            let mut all = std::vec::Vec::new();
            let read = |at: usize, to: &mut [u8]| {
                assert!(at + to.len() <= 1000 + length, "read outside");
                to.copy_from_slice(&room[at - 1000..][..to.len()]);
                true
            };
            each_descriptor(1000, length, read, |fd| all.push(fd));
            all
        };
        assert_eq!(found(FDS + 12, END), [7, 9, 10, 11]);
        assert_eq!(found(FDS + 11, END), [7, 9, 10], "bytes that are no descriptor");
        for length in [FDS - 1, 0, usize::MAX] {
            assert_eq!(found(length, END), [7], "{length} bytes");
        }
        for length in [0, FDS - 1, FDS] {
            assert_eq!(found(FDS + 12, length), [], "{length} bytes in all");
        }
        assert_eq!(found(FDS + 12, END - 8), [7], "the last header says more than there is");
        each_descriptor(usize::MAX - 8, 64, |_, _| panic!("read"), |_| panic!("found"));
        each_descriptor(1000, 64, |_, _| false, |_| panic!("found"));
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
            unsafe { put(&mut room, header, &fds[..count]) };
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
