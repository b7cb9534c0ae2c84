// SPDX-License-Identifier: Apache-2.0
use super::address::Address;

/// An `http://` or `https://` URL, split into what a request and a connection need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    pub tls: bool,
    pub address: Address,
    /// The value of the Host header: the authority as it was given.
    pub authority: String,
    /// Path and query, starting with a slash.
    pub path: String,
}

impl Url {
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("'{text}' is not an HTTP URL: {why}"));
        let (tls, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return wrong("expected http:// or https:// at its beginning"),
        };
        if text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return wrong("it contains a space or a control character; write %20 for a space");
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return wrong("it contains a user; send user and password with --header");
        }
        let usual_port = if tls { 443 } else { 80 };
        let address = match Address::parse(authority, Some(usual_port)) {
            Ok(address) => address,
            Err(why) => return wrong(why),
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self { tls, address, authority: authority.to_owned(), path: format!("{slash}{path}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, u16, String, String) {
        let url = Url::parse(text).unwrap();
        (url.address.host, url.address.port, url.authority, url.path)
    }

    fn expected(
        host: &str,
        port: u16,
        authority: &str,
        path: &str,
    ) -> (String, u16, String, String) {
        (host.into(), port, authority.into(), path.into())
    }

    #[test]
    fn urls_are_split() {
        assert_eq!(parts("http://a"), expected("a", 80, "a", "/"));
        assert_eq!(parts("http://a:8080/x?y=1#z"), expected("a", 8080, "a:8080", "/x?y=1"));
        assert_eq!(parts("http://a?y"), expected("a", 80, "a", "/?y"));
        assert_eq!(parts("http://[::1]:81/"), expected("::1", 81, "[::1]:81", "/"));
        assert_eq!(parts("http://[::1]"), expected("::1", 80, "[::1]", "/"));
    }

    #[test]
    fn the_scheme_says_whether_there_is_tls() {
        assert_eq!(parts("https://a/x"), expected("a", 443, "a", "/x"));
        assert_eq!(parts("https://a:8443"), expected("a", 8443, "a:8443", "/"));
        assert!(Url::parse("https://a").unwrap().tls && !Url::parse("http://a").unwrap().tls);
    }

    #[test]
    fn what_is_not_a_url_is_refused() {
        for text in [
            "",
            "a",
            "ftp://a",
            "https://",
            "http://",
            "http:///x",
            "http://a:b",
            "http://a:0",
            "http://a:65536",
            "http://[::1",
            "http://[::1]x",
            "http://u@a",
            "http://a/b c",
            "http://a/\r\nX: y",
        ] {
            assert!(Url::parse(text).is_err(), "{text:?}");
        }
    }
}
