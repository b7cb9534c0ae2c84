// SPDX-License-Identifier: Apache-2.0
//! Lists of sockets from sock_diag(7), which needs no rights.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CGROUP_ID: u16 = 21;
const REQUEST_BYTES: usize = 16 + 56;
const MESSAGE_BYTES: usize = 72;

pub const LISTEN: u8 = 10;
/// All states in which a connection carries data or ends, and listeners: without SYN_SENT,
/// SYN_RECV, TIME_WAIT and CLOSE.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11;

#[derive(Clone, Debug, PartialEq)]
pub struct Socket {
    pub protocol: u8,
    pub state: u8,
    pub local: IpAddr,
    pub local_port: u16,
    pub peer: IpAddr,
    pub peer_port: u16,
    /// Never used again while the machine runs.
    pub cookie: u64,
    pub inode: u32,
    pub cgroup: u64,
    pub tcp: Option<TcpCounts>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpCounts {
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub packets_sent: u64,
    pub packets_received: u64,
    pub retransmits: u64,
    pub rtt_us: u64,
}

/// A socket of netlink, which stays in the network namespace that it was made in.
pub struct Lister(OwnedFd);

impl Lister {
    pub fn new() -> io::Result<Self> {
        // SAFETY: the call has no pointers.
        let fd = unsafe {
            libc::socket(
                libc::AF_NETLINK,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC,
                libc::NETLINK_SOCK_DIAG,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned it, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The sockets of TCP and UDP that listen or have a peer.
    pub fn sockets(&self) -> io::Result<Vec<Socket>> {
        let mut found = Vec::new();
        for protocol in [libc::IPPROTO_TCP as u8, libc::IPPROTO_UDP as u8] {
            for family in [libc::AF_INET as u8, libc::AF_INET6 as u8] {
                self.list(family, protocol, &mut found)?;
            }
        }
        Ok(found)
    }

    fn list(&self, family: u8, protocol: u8, found: &mut Vec<Socket>) -> io::Result<()> {
        let mut request = Vec::with_capacity(REQUEST_BYTES);
        request.extend((REQUEST_BYTES as u32).to_ne_bytes());
        request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        request.extend(((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
        request.extend([0; 8]);
        request.extend([family, protocol, 1 << (INET_DIAG_INFO - 1), 0]);
        request.extend(STATES.to_ne_bytes());
        request.resize(REQUEST_BYTES, 0);
        // SAFETY: the buffer is valid for the call.
        let sent =
            unsafe { libc::send(self.0.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut buffer = vec![0_u8; 1 << 16];
        loop {
            // SAFETY: the buffer is valid for the call.
            let length = unsafe {
                libc::recv(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0)
            };
            if length < 0 {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(error);
            }
            let mut rest = &buffer[..length as usize];
            while rest.len() >= 16 {
                let length = u32_at(rest, 0) as usize;
                if length < 16 || length > rest.len() {
                    break;
                }
                let body = &rest[16..length];
                match i32::from(u16_at(rest, 4)) {
                    libc::NLMSG_DONE => return Ok(()),
                    libc::NLMSG_ERROR => {
                        let number = body.get(..4).map_or(0, |_| u32_at(body, 0) as i32);
                        return match -number {
                            // The kernel has no module for this family or protocol.
                            libc::ENOENT => Ok(()),
                            number => Err(io::Error::from_raw_os_error(number)),
                        };
                    }
                    _ => found.extend(parse(protocol, body)),
                }
                rest = &rest[length.next_multiple_of(4).min(rest.len())..];
            }
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// struct inet_diag_msg and its attributes.
fn parse(protocol: u8, body: &[u8]) -> Option<Socket> {
    if body.len() < MESSAGE_BYTES {
        return None;
    }
    let address = |at: usize| -> IpAddr {
        if i32::from(body[0]) == libc::AF_INET {
            IpAddr::from([body[at], body[at + 1], body[at + 2], body[at + 3]])
        } else {
            let bytes: [u8; 16] = body[at..at + 16].try_into().expect("sixteen bytes");
            Ipv6Addr::from(bytes).to_canonical()
        }
    };
    let mut socket = Socket {
        protocol,
        state: body[1],
        local_port: u16::from_be_bytes([body[4], body[5]]),
        peer_port: u16::from_be_bytes([body[6], body[7]]),
        local: address(8),
        peer: address(24),
        cookie: u64::from(u32_at(body, 44)) | u64::from(u32_at(body, 48)) << 32,
        inode: u32_at(body, 68),
        cgroup: 0,
        tcp: None,
    };
    let mut rest = &body[MESSAGE_BYTES..];
    while rest.len() >= 4 {
        let length = usize::from(u16_at(rest, 0));
        if length < 4 || length > rest.len() {
            break;
        }
        let value = &rest[4..length];
        match u16_at(rest, 2) {
            INET_DIAG_INFO => socket.tcp = tcp_counts(socket.state, value),
            INET_DIAG_CGROUP_ID if value.len() >= 8 => socket.cgroup = u64_at(value, 0),
            _ => {}
        }
        rest = &rest[length.next_multiple_of(4).min(rest.len())..];
    }
    Some(socket)
}

/// struct tcp_info; kernels before 4.19 do not have all of it.
fn tcp_counts(state: u8, info: &[u8]) -> Option<TcpCounts> {
    // CLOSE_WAIT, LAST_ACK and CLOSING: the peer's FIN is counted as one byte.
    let has_fin = matches!(state, 8 | 9 | 11);
    (info.len() >= 216).then(|| TcpCounts {
        bytes_sent: u64_at(info, 200).saturating_sub(u64_at(info, 208)),
        bytes_received: u64_at(info, 128).saturating_sub(u64::from(has_fin)),
        packets_sent: u32_at(info, 156).into(),
        packets_received: u32_at(info, 152).into(),
        retransmits: u32_at(info, 100).into(),
        rtt_us: u32_at(info, 68).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    const ESTABLISHED: u8 = 1;

    #[test]
    fn own_connection_is_listed_with_its_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[1; 300]).unwrap();
        server.read_exact(&mut [0; 300]).unwrap();
        let sockets = Lister::new().unwrap().sockets().unwrap();
        let port = listener.local_addr().unwrap().port();
        let listed = |local: u16| -> Vec<_> {
            let mine = |socket: &&Socket| socket.protocol == 6 && socket.local_port == local;
            sockets.iter().filter(mine).collect()
        };
        let at_server = listed(port);
        assert!(at_server.iter().any(|socket| socket.state == LISTEN));
        let (accepted, found) = (
            at_server.iter().find(|socket| socket.state == ESTABLISHED).unwrap(),
            listed(client.local_addr().unwrap().port())[0],
        );
        assert_eq!(accepted.tcp.unwrap().bytes_received, 300);
        assert_eq!(found.tcp.unwrap().bytes_sent, 300);
        assert_eq!((found.peer, found.peer_port), (accepted.local, port));
        assert_ne!(found.inode, 0);
    }

    #[test]
    fn short_messages_are_ignored() {
        assert_eq!(parse(6, &[0; 71]), None);
        assert!(tcp_counts(1, &[0; 215]).is_none());
        // An attribute that is longer than the message ends it.
        let mut body = vec![0; 72];
        body.extend([200, 0, 2, 0]);
        assert_eq!(parse(6, &body).unwrap().tcp, None);
    }
}
