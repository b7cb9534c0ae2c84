// SPDX-License-Identifier: Apache-2.0
//! Where programs come to hand their segments over.

use crate::program;
use std::fs;
use std::io;
use std::mem::{MaybeUninit, offset_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tare_command::{Failure, ResultExt};
use tare_log_segment::Identity;

const ROOT: u32 = 0;

/// The socket, which is taken away at the end.
pub struct Door {
    listener: UnixListener,
    path: PathBuf,
    open_for: OpenFor,
}

/// Whose programs are let in, besides those of the same user, by a collector that runs as root:
/// services give their workers to other users.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OpenFor {
    Descendants,
    Everyone,
}

/// A program at the door.
pub struct Guest {
    pub wish: Wish,
    pub pid: u32,
    pub user: u32,
    pub connection: UnixStream,
}

/// What it wants.
pub enum Wish {
    /// That its segment is served.
    Serve(OwnedFd),
    /// To have this descriptor.
    Borrow(Identity),
}

impl Door {
    /// A socket that a dead collector has left is replaced.
    pub fn open(path: &Path, open_for: OpenFor) -> Result<Self, Failure> {
        let what = || format!("--socket {}", path.display());
        if UnixStream::connect(path).is_ok() {
            return Err(Failure::input(format_args!("{}: another collector is there", what())));
        }
        let is_socket = fs::symlink_metadata(path)
            .is_ok_and(|status| std::os::unix::fs::FileTypeExt::is_socket(&status.file_type()));
        if is_socket {
            let _ = fs::remove_file(path);
        }
        let listener = UnixListener::bind(path).or_input(what())?;
        let door = Self { listener, path: path.to_owned(), open_for };
        let mode = if program::user() == ROOT { 0o666 } else { 0o600 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).or_failed(what())?;
        door.listener.set_nonblocking(true).or_failed(what())?;
        Ok(door)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this program is let in.
    pub fn admits(&self, guest: &Guest) -> bool {
        let own = program::user();
        let is_open = || match self.open_for {
            OpenFor::Descendants => program::descends(guest.pid, std::process::id()),
            OpenFor::Everyone => true,
        };
        guest.user == own || own == ROOT && is_open()
    }

    /// Becomes readable when somebody comes.
    pub fn fd(&self) -> RawFd {
        self.listener.as_raw_fd()
    }

    /// The next program, if there is one.
    pub fn next(&self) -> Option<io::Result<Guest>> {
        loop {
            match self.listener.accept().and_then(|(connection, _)| greet(connection)) {
                // Somebody has only looked whether we are here.
                Ok(None) => {}
                Ok(Some(guest)) => return Some(Ok(guest)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn greet(connection: UnixStream) -> io::Result<Option<Guest>> {
    // Programs send at once; who does not keeps nobody else waiting for long.
    connection.set_read_timeout(Some(Duration::from_millis(100)))?;
    let Some(wish) = received(&connection)? else { return Ok(None) };
    let peer = credentials(&connection)?;
    Ok(Some(Guest { wish, pid: peer.pid as u32, user: peer.uid, connection }))
}

fn credentials(connection: &UnixStream) -> io::Result<libc::ucred> {
    let mut peer = MaybeUninit::<libc::ucred>::zeroed();
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, and zeros are valid.
    unsafe {
        let place = peer.as_mut_ptr().cast();
        let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
        match libc::getsockopt(connection.as_raw_fd(), level, name, place, &mut length) {
            0 => Ok(peer.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// A descriptor beside a message.
#[repr(C)]
struct Rights {
    header: libc::cmsghdr,
    fd: libc::c_int,
}

const RIGHTS: usize = offset_of!(Rights, fd) + size_of::<libc::c_int>();

/// Answers a program with a descriptor of its own.
pub fn lend(connection: &UnixStream, fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut byte = 1u8;
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: zeros are both.
    let (mut rights, mut message): (Rights, libc::msghdr) =
        unsafe { (MaybeUninit::zeroed().assume_init(), MaybeUninit::zeroed().assume_init()) };
    rights.header.cmsg_len = RIGHTS;
    rights.header.cmsg_level = libc::SOL_SOCKET;
    rights.header.cmsg_type = libc::SCM_RIGHTS;
    rights.fd = fd.as_raw_fd();
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut rights).cast();
    message.msg_controllen = size_of::<Rights>() as _;
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: all parts of the message live as long as the call.
    match unsafe { libc::sendmsg(connection.as_raw_fd(), &raw const message, flags) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The segment that comes with the first byte, or the name of a file; `None` where nothing comes.
fn received(connection: &UnixStream) -> io::Result<Option<Wish>> {
    let mut bytes = [0; 16];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: zeros are both.
    let (mut rights, mut message): (Rights, libc::msghdr) =
        unsafe { (MaybeUninit::zeroed().assume_init(), MaybeUninit::zeroed().assume_init()) };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut rights).cast();
    message.msg_controllen = size_of::<Rights>() as _;
    // SAFETY: all parts of the message live as long as the call.
    let length =
        unsafe { libc::recvmsg(connection.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    match (length, io::Error::last_os_error()) {
        (1.., _) => {}
        (0, _) => return Ok(None),
        (_, error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        (_, error) => return Err(error),
    }
    if message.msg_controllen == 0 && length as usize == bytes.len() {
        return Ok(Some(Wish::Borrow(Identity::from_bytes(bytes))));
    }
    let has_one = message.msg_controllen >= RIGHTS
        && rights.header.cmsg_level == libc::SOL_SOCKET
        && rights.header.cmsg_type == libc::SCM_RIGHTS
        && rights.header.cmsg_len == RIGHTS;
    if !has_one {
        return Err(io::Error::other("a program came without its segment"));
    }
    // SAFETY: the kernel has just made it, for us alone.
    Ok(Some(Wish::Serve(unsafe { OwnedFd::from_raw_fd(rights.fd) })))
}
