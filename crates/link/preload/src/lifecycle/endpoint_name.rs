// SPDX-License-Identifier: Apache-2.0
//! Addresses of a connection, and the name that is made from them, at which its ends meet.

use crate::descriptors::reserved_descriptors;
use crate::state::connection::Connection;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;
use libc::{sockaddr_storage, sockaddr_un, socklen_t};
use tare_link_segment::Endpoint;
use tare_shm::syscall::{self, Errno, call};

/// The addresses of a connection: of this end, and of the other.
pub fn ends(fd: c_int) -> Option<[Endpoint; 2]> {
    Some([endpoint(libc::SYS_getsockname, fd)?, other_end(fd)?])
}

/// The address of the other end of a connection.
pub fn other_end(fd: c_int) -> Option<Endpoint> {
    endpoint(libc::SYS_getpeername, fd)
}

fn endpoint(number: i64, fd: c_int) -> Option<Endpoint> {
    let End(bytes) = End::get(number, fd)?;
    let (address, port) = bytes.split_first_chunk::<16>()?;
    Some(Endpoint { address: *address, port: u16::from_be_bytes(port.try_into().ok()?) })
}

/// The name at which the ends of a connection meet.
pub struct Name {
    address: sockaddr_un,
    length: usize,
}

impl Name {
    pub fn of(fd: c_int) -> Option<Self> {
        let other = End::get(libc::SYS_getpeername, fd)?;
        let own = End::get(libc::SYS_getsockname, fd)?.connected_to(fd, &other);
        if own.0 == other.0 {
            return None;
        }
        let (low, high) = if own.0 < other.0 { (own, other) } else { (other, own) };
        // SAFETY: zeros are an address.
        let mut address: sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
        address.sun_family = libc::AF_UNIX as u16;
        let digits =
            |byte: u8| [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[digit as usize]);
        let ends = low.0.into_iter().chain(high.0).flat_map(digits);
        let text = b"\0tare-link1/".iter().copied().chain(ends);
        let mut length = 0;
        for (place, byte) in address.sun_path.iter_mut().zip(text) {
            *place = byte as _;
            length += 1;
        }
        Some(Self { address, length: size_of::<libc::sa_family_t>() + length })
    }

    fn socket() -> Result<c_int, Errno> {
        let kind = (libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as usize;
        // SAFETY: no memory is touched.
        let socket = unsafe { call(libc::SYS_socket, [libc::AF_UNIX as usize, kind, 0, 0, 0, 0]) }?;
        Ok(socket as c_int)
    }

    fn with(&self, number: i64, socket: c_int) -> Result<(), Errno> {
        let place = (&raw const self.address).addr();
        // SAFETY: the kernel reads the address.
        unsafe { call(number, [socket as usize, place, self.length, 0, 0, 0]) }.map(drop)
    }

    pub fn connect(&self) -> Result<c_int, Errno> {
        let socket = Self::socket()?;
        self.with(libc::SYS_connect, socket)
            .map(|()| socket)
            .inspect_err(|_| syscall::close(socket))
    }

    /// A hidden socket; `None` if there is no number for one.
    pub fn listen(&self) -> Result<Option<c_int>, Errno> {
        let socket = Self::socket()?;
        let listens = self.with(libc::SYS_bind, socket).and_then(|()| {
            // SAFETY: no memory is touched.
            unsafe { call(libc::SYS_listen, [socket as usize, 1, 0, 0, 0, 0]) }
        });
        match listens {
            Ok(_) => Ok(reserved_descriptors::hide(socket)),
            Err(error) => {
                syscall::close(socket);
                Err(error)
            }
        }
    }
}

/// In `Connection::listener`: the other end has come, its message has not.
pub const HAS_COME: u32 = 1 << 30;

/// Closes the socket of a connection that waits.
pub fn forget(connection: &Connection) {
    let listener = connection.listener.swap(0, Relaxed);
    if listener != 0 {
        reserved_descriptors::close((listener & !HAS_COME) as c_int);
    }
}

/// Address and port, IPv4 addresses as IPv6 has them.
struct End([u8; 18]);

impl End {
    fn get(number: i64, fd: c_int) -> Option<Self> {
        Self::read(|place, length| {
            let arguments = [fd as usize, place, length, 0, 0, 0];
            // SAFETY: the kernel writes at most this number of bytes.
            unsafe { call(number, arguments) }
        })
    }

    /// This end as the other one knows it. If nftables or iptables have redirected the connection,
    /// that is where the other end has connected to (SO_ORIGINAL_DST), and not its own address. At
    /// the end that has connected, it is the address of the other end.
    fn connected_to(self, fd: c_int, other: &Self) -> Self {
        let level = if self.is_ipv4() { libc::SOL_IP } else { libc::SOL_IPV6 };
        let original = Self::read(|place, length| {
            let [level, name] = [level, libc::SO_ORIGINAL_DST].map(|number| number as usize);
            // SAFETY: the kernel writes at most this number of bytes.
            unsafe { call(libc::SYS_getsockopt, [fd as usize, level, name, place, length, 0]) }
        });
        original.filter(|original| original.0 != other.0).unwrap_or(self)
    }

    fn is_ipv4(&self) -> bool {
        self.0.starts_with(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff])
    }

    /// What a call of the kernel's writes, which gets the place and that of the length.
    fn read(call: impl FnOnce(usize, usize) -> Result<usize, Errno>) -> Option<Self> {
        let mut address = MaybeUninit::<sockaddr_storage>::zeroed();
        let mut length = size_of::<sockaddr_storage>() as socklen_t;
        call(address.as_mut_ptr().addr(), (&raw mut length).addr()).ok()?;
        // SAFETY: zeros are an address.
        let address = unsafe { address.assume_init_ref() };
        let mut end = [0; 18];
        let port = match c_int::from(address.ss_family) {
            libc::AF_INET => {
                // SAFETY: of this family, and no longer than the storage.
                let address = unsafe { &*core::ptr::from_ref(address).cast::<libc::sockaddr_in>() };
                end[10..12].fill(0xff);
                end[12..16].copy_from_slice(&address.sin_addr.s_addr.to_ne_bytes());
                address.sin_port
            }
            libc::AF_INET6 => {
                // SAFETY: of this family, and no longer than the storage.
                let address =
                    unsafe { &*core::ptr::from_ref(address).cast::<libc::sockaddr_in6>() };
                end[..16].copy_from_slice(&address.sin6_addr.s6_addr);
                address.sin6_port
            }
            _ => return None,
        };
        end[16..].copy_from_slice(&port.to_ne_bytes());
        Some(Self(end))
    }
}
