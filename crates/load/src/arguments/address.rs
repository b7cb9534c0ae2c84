// SPDX-License-Identifier: Apache-2.0
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Where a service listens: a host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Name or address, without the brackets of IPv6.
    pub host: String,
    pub port: u16,
}

impl Address {
    /// Reads `HOST:PORT`, with an address of IPv6 in brackets. Without a port it has the usual
    /// one, if there is one.
    pub fn parse(text: &str, usual_port: Option<u16>) -> Result<Self, &'static str> {
        if text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err("it contains a space or a control character");
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(bracketed) => bracketed.split_once(']').ok_or("a closing bracket is missing")?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        if host.is_empty() {
            return Err("the host is missing");
        }
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => usual_port,
            None => None,
            Some(number) => number.parse().ok().filter(|port| *port > 0),
        };
        let port = port.ok_or("expected a port from 1 to 65535")?;
        Ok(Self { host: host.to_owned(), port })
    }

    /// The addresses of the host, in the resolver's order; at least one.
    pub fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let addresses: Vec<_> = (self.host.as_str(), self.port).to_socket_addrs()?.collect();
        if addresses.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        Ok(addresses)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(formatter, "[{}]:{}", self.host, self.port),
            false => write!(formatter, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        let address = |host: &str, port| Ok(Address { host: host.to_owned(), port });
        assert_eq!(Address::parse("a:1", None), address("a", 1));
        assert_eq!(Address::parse("[::1]:65535", None), address("::1", 65535));
        assert_eq!(Address::parse("a", Some(80)), address("a", 80));
        assert_eq!(Address::parse("[::1]:1", None).unwrap().to_string(), "[::1]:1");
        for text in [
            "", "a", ":1", "a:", "a:0", "a:65536", "a:b", "a b:1", "::1:1", "[::1", "[::1]1",
            "[]:1",
        ] {
            assert!(Address::parse(text, None).is_err(), "{text:?}");
        }
    }
}
