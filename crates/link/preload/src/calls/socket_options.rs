// SPDX-License-Identifier: Apache-2.0
//! Options of sockets that do not change what calls return on a link. The kernel has all options, also
//! those of linked connections: harmless are those of addresses, of segments and of the kernel's
//! memory, and those that the library imitates. A connection with any other is TCP's.

use core::ffi::c_int;

/// Of the kernel's headers, where libc does not have them on every architecture.
pub const TCP_ZEROCOPY_RECEIVE: c_int = 35;
const SO_RCVTIMEO_NEW: c_int = 66;
const SO_SNDTIMEO_NEW: c_int = 67;
const SO_ATTACH_REUSEPORT_EBPF: c_int = 52;
const SO_PREFER_BUSY_POLL: c_int = 69;
const SO_BUSY_POLL_BUDGET: c_int = 70;
const TCP_TIMESTAMP: c_int = 24;
const TCP_NOTSENT_LOWAT: c_int = 25;
const TCP_SAVE_SYN: c_int = 27;
const TCP_FASTOPEN_CONNECT: c_int = 30;
const TCP_FASTOPEN_KEY: c_int = 33;
const TCP_FASTOPEN_NO_COOKIE: c_int = 34;
const IP_BIND_ADDRESS_NO_PORT: c_int = 24;
const IP_LOCAL_PORT_RANGE: c_int = 51;
const IPV6_AUTOFLOWLABEL: c_int = 70;
const IPV6_ADDR_PREFERENCES: c_int = 72;
const IPV6_TRANSPARENT: c_int = 75;
const IPV6_FREEBIND: c_int = 78;

/// Whether an option can be set on a link.
pub fn is_harmless(level: c_int, name: c_int) -> bool {
    match level {
        libc::SOL_SOCKET => matches!(
            name,
            libc::SO_REUSEADDR
                | libc::SO_REUSEPORT
                | libc::SO_KEEPALIVE
                | libc::SO_BROADCAST
                | libc::SO_DONTROUTE
                | libc::SO_BINDTODEVICE
                | libc::SO_SNDBUF
                | libc::SO_RCVBUF
                | libc::SO_SNDBUFFORCE
                | libc::SO_RCVBUFFORCE
                | libc::SO_SNDTIMEO
                | libc::SO_RCVTIMEO
                | SO_SNDTIMEO_NEW
                | SO_RCVTIMEO_NEW
                | libc::SO_LINGER
                | libc::SO_PRIORITY
                | libc::SO_MARK
                | libc::SO_INCOMING_CPU
                | libc::SO_BUSY_POLL
                | SO_PREFER_BUSY_POLL
                | SO_BUSY_POLL_BUDGET
                | libc::SO_ATTACH_REUSEPORT_CBPF
                | SO_ATTACH_REUSEPORT_EBPF
                | libc::SO_DETACH_FILTER
        ),
        libc::IPPROTO_TCP => matches!(
            name,
            libc::TCP_NODELAY
                | libc::TCP_CORK
                | libc::TCP_QUICKACK
                | libc::TCP_MAXSEG
                | libc::TCP_KEEPIDLE
                | libc::TCP_KEEPINTVL
                | libc::TCP_KEEPCNT
                | libc::TCP_SYNCNT
                | libc::TCP_LINGER2
                | libc::TCP_DEFER_ACCEPT
                | libc::TCP_WINDOW_CLAMP
                | libc::TCP_CONGESTION
                | libc::TCP_THIN_LINEAR_TIMEOUTS
                | libc::TCP_THIN_DUPACK
                | libc::TCP_USER_TIMEOUT
                | libc::TCP_FASTOPEN
                | TCP_FASTOPEN_CONNECT
                | TCP_FASTOPEN_KEY
                | TCP_FASTOPEN_NO_COOKIE
                | TCP_TIMESTAMP
                | TCP_NOTSENT_LOWAT
                | TCP_SAVE_SYN
        ),
        libc::IPPROTO_IP => matches!(
            name,
            libc::IP_TOS
                | libc::IP_TTL
                | libc::IP_MINTTL
                | libc::IP_MTU_DISCOVER
                | libc::IP_RECVERR
                | libc::IP_RECVTOS
                | libc::IP_PKTINFO
                | libc::IP_FREEBIND
                | libc::IP_TRANSPARENT
                | IP_BIND_ADDRESS_NO_PORT
                | IP_LOCAL_PORT_RANGE
        ),
        libc::IPPROTO_IPV6 => matches!(
            name,
            libc::IPV6_V6ONLY
                | libc::IPV6_UNICAST_HOPS
                | libc::IPV6_MTU_DISCOVER
                | libc::IPV6_MTU
                | libc::IPV6_RECVERR
                | libc::IPV6_RECVPKTINFO
                | libc::IPV6_RECVTCLASS
                | libc::IPV6_TCLASS
                | IPV6_AUTOFLOWLABEL
                | IPV6_ADDR_PREFERENCES
                | IPV6_TRANSPARENT
                | IPV6_FREEBIND
        ),
        _ => false,
    }
}
