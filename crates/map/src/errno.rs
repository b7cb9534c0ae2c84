// SPDX-License-Identifier: Apache-2.0
//! Names of the errors that sockets report.

/// The name of an error number; 0 means that the program closed the socket before an answer.
pub fn name(number: u32) -> String {
    let known = match number as i32 {
        0 => "given_up",
        libc::EACCES => "EACCES",
        libc::EPERM => "EPERM",
        libc::EAGAIN => "EAGAIN",
        libc::EINVAL => "EINVAL",
        libc::EPIPE => "EPIPE",
        libc::EPROTO => "EPROTO",
        libc::EMSGSIZE => "EMSGSIZE",
        libc::ENOBUFS => "ENOBUFS",
        libc::EINTR => "EINTR",
        libc::ENETDOWN => "ENETDOWN",
        libc::ENETUNREACH => "ENETUNREACH",
        libc::ENETRESET => "ENETRESET",
        libc::ECONNABORTED => "ECONNABORTED",
        libc::ECONNRESET => "ECONNRESET",
        libc::ENOTCONN => "ENOTCONN",
        libc::EDESTADDRREQ => "EDESTADDRREQ",
        libc::EADDRNOTAVAIL => "EADDRNOTAVAIL",
        libc::ETIMEDOUT => "ETIMEDOUT",
        libc::ECONNREFUSED => "ECONNREFUSED",
        libc::EHOSTDOWN => "EHOSTDOWN",
        libc::EHOSTUNREACH => "EHOSTUNREACH",
        libc::ENOPROTOOPT => "ENOPROTOOPT",
        _ => return format!("errno_{number}"),
    };
    known.to_owned()
}
