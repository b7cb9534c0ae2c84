// SPDX-License-Identifier: Apache-2.0
use crate::arguments::url::Url;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Version};
use tare_command::{Failure, ResultExt};

/// Headers about a connection of HTTP/1.1; the host is another part of a head.
const OF_HTTP1: [&str; 6] =
    ["connection", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// What every request of HTTP to every target has in common.
#[derive(Debug, Clone)]
pub struct Message {
    pub method: String,
    /// Lines `Name: value` that the user gave.
    pub headers: Vec<String>,
    pub body: Option<Vec<u8>>,
    /// A connection for each request: the server is told.
    pub close: bool,
    /// HTTP/2 refuses some of what HTTP/1.1 sends as it was given.
    pub for_http2: bool,
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
        if self.tells_its_length() && !self.has("Transfer-Encoding") {
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

    /// The same as a head and a body of HTTP/2, without what only HTTP/1.1 has.
    pub fn for_stream(&self, url: &Url) -> Result<(Request<()>, Option<Bytes>), Failure> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.headers.iter().filter_map(|line| line.split_once(':')) {
            if OF_HTTP1.iter().any(|of_http1| name.eq_ignore_ascii_case(of_http1)) {
                continue;
            }
            let name = HeaderName::try_from(name).or_input(format_args!("--header {name}"))?;
            let value =
                HeaderValue::try_from(value.trim()).or_input(format_args!("--header {name}"))?;
            headers.append(name, value);
        }
        if self.tells_its_length() && !headers.contains_key("content-length") {
            headers.insert("content-length", self.body.as_ref().map_or(0, Vec::len).into());
        }
        let scheme = if url.tls { "https" } else { "http" };
        let authority = self.value_of("Host").unwrap_or(&url.authority);
        let mut request = Request::builder()
            .method(&*self.method)
            .uri(format!("{scheme}://{authority}{}", url.path))
            .version(Version::HTTP_2)
            .body(())
            .or_input("this request cannot be sent")?;
        *request.headers_mut() = headers;
        Ok((request, self.body.clone().map(Bytes::from)))
    }

    /// Without it a server may wait for a body where such a method usually has one.
    fn tells_its_length(&self) -> bool {
        self.body.is_some() || matches!(&*self.method, "POST" | "PUT" | "PATCH")
    }

    fn has(&self, name: &str) -> bool {
        self.value_of(name).is_some()
    }

    fn value_of(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.iter().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(given, _)| given.trim().eq_ignore_ascii_case(name))?;
        Some(value.trim())
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
            for_http2: false,
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

    #[test]
    fn a_stream_has_no_headers_about_connections() {
        let headers =
            ["Host: other:1", "Connection: close", "Transfer-Encoding: chunked", "X-Y:  z"];
        let message = Message {
            method: "PUT".into(),
            headers: headers.map(String::from).to_vec(),
            body: Some(b"xyz".to_vec()),
            close: false,
            for_http2: true,
        };
        let (request, body) =
            message.for_stream(&Url::parse("https://host:81/a?b").unwrap()).unwrap();
        assert_eq!(request.uri(), "https://other:1/a?b");
        assert_eq!(body.as_deref(), Some(&b"xyz"[..]));
        let mut headers: Vec<_> =
            request.headers().iter().map(|(name, value)| (name.as_str(), value)).collect();
        headers.sort();
        let expected = [("content-length", "3"), ("x-y", "z")];
        assert!(
            headers.iter().zip(expected).all(|(have, want)| have.0 == want.0 && have.1 == want.1)
        );
        assert_eq!(headers.len(), 2);
    }
}
