// SPDX-License-Identifier: Apache-2.0
use crate::channel::Channel;
use crate::response::Expected;
use crate::socket::Waiting;
use crate::tls::{self, Tls};
use crate::url::Url;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use tare_command::{Failure, ResultExt};

/// One service under load: where it is and what is sent to it.
#[derive(Debug, Clone)]
pub struct Target {
    pub name: String,
    pub address: SocketAddr,
    /// Of a target that is spoken to in clear text there is none.
    pub tls: Option<Tls>,
    /// The bytes of the whole request.
    pub request: Vec<u8>,
    /// A response to HEAD has no body.
    pub to_head: bool,
    pub expected: Expected,
}

impl Target {
    /// Looks the host up and takes the first of its addresses that accepts a connection, and
    /// a session where there is TLS; beside the target, why none did.
    pub fn find(
        name: String,
        url: &Url,
        tls: Option<Tls>,
        message: &Message,
        expected: &Expected,
        timeout: Duration,
    ) -> Result<(Self, Option<Failure>), Failure> {
        let host = format!("{}:{}", url.host, url.port);
        let addresses = url.resolve().or_failed(format_args!("{host} was not found"))?;
        let waiting = Waiting::Blocking { connect: timeout };
        let mut failure = None;
        let mut address = addresses[0];
        for candidate in addresses {
            match Channel::open(&candidate, tls.as_ref(), waiting) {
                Ok(_) => {
                    address = candidate;
                    failure = None;
                    break;
                }
                Err(error) => {
                    let what = if error.kind() == ErrorKind::InvalidData {
                        "has no TLS session for us"
                    } else {
                        "cannot be reached"
                    };
                    let advice = tls::advice(&error);
                    failure = Some(Failure::work(format_args!("{host} {what}: {error}{advice}")));
                }
            }
        }
        let target = Self {
            name,
            address,
            tls,
            request: message.encode(url),
            to_head: message.method == "HEAD",
            expected: expected.clone(),
        };
        Ok((target, failure))
    }
}

/// What every request to every target has in common.
#[derive(Debug, Clone)]
pub struct Message {
    pub method: String,
    /// Lines `Name: value` that the user gave.
    pub headers: Vec<String>,
    pub body: Option<Vec<u8>>,
    /// A connection for each request: the server is told.
    pub close: bool,
}

impl Message {
    /// The bytes of the request to a URL. A header that the user gave replaces ours.
    pub fn encode(&self, url: &Url) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, url.path);
        let mut add = |name: &str, value: &str| {
            if !self.has(name) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        };
        add("Host", &url.authority);
        // Without it a server may wait for a body where such a method usually has one.
        let usual = matches!(&*self.method, "POST" | "PUT" | "PATCH");
        if (self.body.is_some() || usual) && !self.has("Transfer-Encoding") {
            let length = self.body.as_ref().map_or(0, Vec::len);
            add("Content-Length", &length.to_string());
        }
        if self.close {
            add("Connection", "close");
        }
        for header in &self.headers {
            head.push_str(header);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        let mut request = head.into_bytes();
        request.extend_from_slice(self.body.as_deref().unwrap_or_default());
        request
    }

    fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|line| {
            line.split_once(':').is_some_and(|(given, _)| given.trim().eq_ignore_ascii_case(name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(headers: &[&str], body: Option<&[u8]>, close: bool) -> String {
        let message = Message {
            method: "PUT".into(),
            headers: headers.iter().map(ToString::to_string).collect(),
            body: body.map(<[u8]>::to_vec),
            close,
        };
        let url = Url::parse("http://host:81/a?b").unwrap();
        String::from_utf8(message.encode(&url)).unwrap()
    }

    #[test]
    fn a_request_has_what_http_asks_for() {
        assert_eq!(
            encoded(&[], None, false),
            "PUT /a?b HTTP/1.1\r\nHost: host:81\r\nContent-Length: 0\r\n\r\n"
        );
        assert_eq!(
            encoded(&["X: y"], Some(b"xyz"), true),
            "PUT /a?b HTTP/1.1\r\nHost: host:81\r\nContent-Length: 3\r\n\
             Connection: close\r\nX: y\r\n\r\nxyz"
        );
    }

    #[test]
    fn a_header_that_was_given_replaces_ours() {
        assert_eq!(
            encoded(&["host: other", "content-length: 1"], None, false),
            "PUT /a?b HTTP/1.1\r\nhost: other\r\ncontent-length: 1\r\n\r\n"
        );
        assert_eq!(
            encoded(&["transfer-encoding: chunked"], Some(b"0\r\n\r\n"), false),
            "PUT /a?b HTTP/1.1\r\nHost: host:81\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
        );
    }
}
