// SPDX-License-Identifier: Apache-2.0
//! Which users a process shares memory with: its own and root.

use crate::syscall::{self, Errno, call};
use core::ffi::c_int;
use core::mem::MaybeUninit;

/// Since Linux 6.5.
const SO_PEERPIDFD: c_int = 77;

/// The kernel shows this ID for users that a user namespace does not map, unless configured.
const OVERFLOW: u32 = 65_534;

/// The users that a process shares memory with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peers {
    own: u32,
    overflow: u32,
    named: Option<u32>,
}

impl Peers {
    /// The effective user of this process, root, and `named`, a user ID that the starter chose.
    pub fn get(named: Option<u32>) -> Self {
        Self { own: syscall::geteuid(), overflow: overflow(), named }
    }

    /// Whether memory may be shared with `user`. All unmapped users have the overflow ID, so it
    /// matches only if the starter named it, even if this process has it itself.
    pub fn admit(&self, user: u32) -> bool {
        let is_known = user != self.overflow && (user == 0 || user == self.own);
        is_known || self.named == Some(user)
    }
}

/// Whether `user` is this process's own.
pub fn is_own(user: u32) -> bool {
    user == syscall::geteuid() && is_one_user(user)
}

/// Whether no two users have this ID. In a user namespace, all users without an ID of their own
/// have the overflow ID.
pub fn is_one_user(user: u32) -> bool {
    user != overflow() || maps_all_users()
}

/// Whether this process's user namespace gives each user its own ID, as the first one does.
fn maps_all_users() -> bool {
    let Ok(fd) = syscall::open(c"/proc/self/uid_map", libc::O_RDONLY) else { return false };
    let mut text = [0; 64];
    let length = syscall::read(fd, &mut text);
    syscall::close(fd);
    let words = length.ok().and_then(|length| text.get(..length)).unwrap_or(&[]);
    let mut words = words.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.by_ref().take(3).eq([&b"0"[..], b"0", b"4294967295"]) && words.next().is_none()
}

fn overflow() -> u32 {
    let Ok(fd) = syscall::open(c"/proc/sys/kernel/overflowuid", libc::O_RDONLY) else {
        return OVERFLOW;
    };
    let mut text = [0; 16];
    let length = syscall::read(fd, &mut text);
    syscall::close(fd);
    let digits = length.ok().and_then(|length| text.get(..length)).unwrap_or(&[]);
    core::str::from_utf8(digits.trim_ascii()).ok().and_then(|t| t.parse().ok()).unwrap_or(OVERFLOW)
}

/// Credentials of the peer of a stream socket, taken when it called listen or connect.
pub fn credentials(socket: c_int) -> Result<libc::ucred, Errno> {
    // SAFETY: any bytes are credentials.
    unsafe { option(socket, libc::SO_PEERCRED) }
}

/// A pidfd of the peer of a stream socket. Before Linux 6.5 it is opened by PID, which another
/// process may have reused.
pub fn process(socket: c_int) -> Result<c_int, Errno> {
    // SAFETY: any bytes are a number.
    match unsafe { option(socket, SO_PEERPIDFD) } {
        Err(Errno(libc::ENOPROTOOPT)) => pidfd(credentials(socket)?.pid as u32),
        found => found,
    }
}

/// A pidfd of process `pid`: it becomes readable when the process exits.
pub fn pidfd(pid: u32) -> Result<c_int, Errno> {
    // SAFETY: no memory is touched.
    unsafe { call(libc::SYS_pidfd_open, [pid as usize, 0, 0, 0, 0, 0]) }.map(|fd| fd as c_int)
}

/// The value of a socket option.
///
/// # Safety
/// Any bytes are a `T`.
unsafe fn option<T>(socket: c_int, name: c_int) -> Result<T, Errno> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>() as libc::socklen_t;
    let (place, size) = (value.as_mut_ptr().addr(), (&raw mut length).addr());
    let arguments = [socket as usize, libc::SOL_SOCKET as usize, name as usize, place, size, 0];
    // SAFETY: the kernel writes at most `length` bytes, and any are valid by the caller's word.
    unsafe {
        call(libc::SYS_getsockopt, arguments)?;
        Ok(value.assume_init())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_user_and_root_are_admitted() {
        let peers = Peers { own: 1000, overflow: OVERFLOW, named: None };
        assert!(peers.admit(0) && peers.admit(1000));
        assert!(!peers.admit(1001) && !peers.admit(OVERFLOW));
    }

    #[test]
    fn overflow_user_shares_with_root_only_unless_named() {
        let nobody = Peers { own: OVERFLOW, overflow: OVERFLOW, named: None };
        assert!(nobody.admit(0) && !nobody.admit(OVERFLOW));
        let told = Peers { named: Some(OVERFLOW), ..nobody };
        assert!(told.admit(OVERFLOW) && !told.admit(1000));
    }

    #[cfg(not(miri))]
    mod of_the_kernel {
        extern crate std;
        use super::super::*;
        use std::os::fd::AsRawFd;
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

        fn has_ended(process: c_int) -> bool {
            let mut poll = libc::pollfd { fd: process, events: libc::POLLIN, revents: 0 };
            // SAFETY: one entry.
            unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
        }

        #[test]
        fn peer_of_a_socketpair_is_this_process() {
            let (near, _far) = UnixStream::pair().unwrap();
            let peer = credentials(near.as_raw_fd()).unwrap();
            assert_eq!((peer.pid as u32, peer.uid), (syscall::getpid(), syscall::geteuid()));
            let own = process(near.as_raw_fd()).unwrap();
            assert!(!has_ended(own));
            syscall::close(own);
            assert_eq!(credentials(-1).unwrap_err(), Errno(libc::EBADF));
        }

        #[test]
        fn overflow_id_is_of_many_users_in_a_user_namespace() {
            const CANNOT: c_int = 2;
            let mut status = 0;
            // SAFETY: the child makes system calls only.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    if libc::unshare(libc::CLONE_NEWUSER) != 0 {
                        libc::_exit(CANNOT);
                    }
                    let own = syscall::geteuid();
                    let is_many = own == overflow() && !is_own(own) && !is_one_user(own);
                    libc::_exit(c_int::from(!(is_many && is_one_user(0))));
                }
                assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            }
            match libc::WEXITSTATUS(status) {
                CANNOT => std::eprintln!("no user namespace can be made here"),
                code => assert_eq!(code, 0),
            }
        }

        /// A process that starts with this ID, or none without the right to choose one.
        fn born_as(pid: libc::pid_t) -> Option<libc::pid_t> {
            // SAFETY: zeros are valid; the kernel reads one ID. The child only waits for its end.
            unsafe {
                let mut arguments: libc::clone_args = core::mem::zeroed();
                arguments.exit_signal = libc::SIGCHLD as u64;
                arguments.set_tid = (&raw const pid).addr() as u64;
                arguments.set_tid_size = 1;
                let size = size_of::<libc::clone_args>();
                match libc::syscall(libc::SYS_clone3, &raw mut arguments, size) {
                    0 => loop {
                        libc::pause();
                    },
                    -1 => None,
                    child => Some(child as libc::pid_t),
                }
            }
        }

        #[test]
        fn process_with_the_id_of_an_ended_peer_is_not_the_peer() {
            let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name("").unwrap());
            let listener = listener.unwrap();
            let address = listener.local_addr().unwrap();
            let name = address.as_abstract_name().unwrap();
            // SAFETY: zeros are valid, the name fits, and the child makes system calls only.
            let (peer, later) = unsafe {
                let mut own: libc::sockaddr_un = core::mem::zeroed();
                own.sun_family = libc::AF_UNIX as u16;
                for (to, from) in own.sun_path[1..].iter_mut().zip(name) {
                    *to = *from as libc::c_char;
                }
                let length = core::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
                let peer = libc::fork();
                if peer == 0 {
                    let socket = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0);
                    libc::_exit(libc::connect(socket, (&raw const own).cast(), length as u32));
                }
                let mut status = 0;
                assert_eq!(libc::waitpid(peer, &raw mut status, 0), peer);
                assert_eq!(status, 0);
                (peer, born_as(peer))
            };
            let (accepted, _) = listener.accept().unwrap();
            assert_eq!(credentials(accepted.as_raw_fd()).unwrap().pid, peer);
            let Some(later) = later else {
                std::eprintln!("no process can be given an ID here");
                return;
            };
            let found = process(accepted.as_raw_fd());
            // Before Linux 6.16 nothing is known of a peer that has ended.
            let ended = found.map_or(true, has_ended);
            let _ = found.map(syscall::close);
            // SAFETY: the child of this test.
            unsafe {
                libc::kill(later, libc::SIGKILL);
                libc::waitpid(later, core::ptr::null_mut(), 0);
            }
            assert!(ended);
        }

        #[test]
        fn own_user_is_known_by_its_number() {
            let own = syscall::geteuid();
            assert!(!is_own(own.wrapping_add(1)));
            assert!(is_own(own) || own == overflow());
            let map = std::fs::read_to_string("/proc/self/uid_map").unwrap();
            let words: std::vec::Vec<_> = map.split_whitespace().collect();
            assert_eq!(maps_all_users(), words == ["0", "0", "4294967295"]);
        }

        #[test]
        fn overflow_user_is_read_from_the_kernel() {
            let told = std::fs::read_to_string("/proc/sys/kernel/overflowuid").unwrap();
            assert_eq!(overflow(), told.trim().parse().unwrap());
        }
    }
}
