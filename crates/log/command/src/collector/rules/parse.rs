// SPDX-License-Identifier: Apache-2.0
//! The rules file as text.

use crate::argument_values::{nanoseconds, whole_name};
use regex::Regex;
use std::net::SocketAddrV4;
use tare_command::Failure;
use tare_command::reading::{Document, Node};
use tare_log_segment::layout::RULE_SETTINGS;
use tare_log_segment::{Codec, Handler, Policy, RuleSettings};

/// A rules file, understood. Of several rules that match, the first holds.
#[derive(Debug, Default)]
pub struct Rules {
    pub rules: Vec<Rule>,
}

#[derive(Debug)]
pub struct Rule {
    channel: Option<Regex>,
    process: Option<Regex>,
    thread: Option<Regex>,
    /// What it asks for.
    pub settings: RuleSettings,
}

/// What a `handler` can be: one of the library, or one of these, which are it and a codec.
const COMPRESSED: [(&str, Codec); 3] =
    [("zstd", Codec::Zstd), ("lz4", Codec::Lz4), ("lzo1x", Codec::Lzo1x)];

const KEYS: &[&str] = &[
    "channel", "process", "thread", "handler", "policy", "codec", "n", "x", "y", "period",
    "address", "timeout",
];

impl Rules {
    /// Reads the rules in `text`; an error names `file`, the line, the key, what was found and
    /// what was expected.
    pub fn parse(file: &str, text: &str) -> Result<Self, Failure> {
        let document = Document::parse(file, text)?;
        let root = document.root();
        root.only(&["rule"])?;
        let mut rules = Vec::new();
        for node in
            root.required("rule", "tables [[rule]], or rule = []")?.list("tables [[rule]]")?
        {
            if rules.len() == RULE_SETTINGS - 1 {
                return Err(node.refuse(format_args!("{} rules at most", RULE_SETTINGS - 1)));
            }
            rules.push(Rule::read(&node)?);
        }
        Ok(Self { rules })
    }

    /// Whether some speak of threads.
    pub fn know_threads(&self) -> bool {
        self.rules.iter().any(Rule::knows_threads)
    }
}

impl Rule {
    fn read(node: &Node<'_>) -> Result<Self, Failure> {
        node.only(KEYS)?;
        let pattern = |key| node.get(key)?.map(|node| expression(&node)).transpose();
        let (handler, compressed) = match node.get("handler")? {
            None => (None, None),
            Some(named) => {
                let (handler, codec) = handler(&named)?;
                (Some((named, handler)), codec)
            }
        };
        let parameters = parameters(node, handler.as_ref().map(|(_, handler)| *handler))?;
        let codec = match (node.get("codec")?, compressed) {
            (None, compressed) => compressed,
            (Some(named), None) => Some(named.choice(Codec::ALL)?),
            (Some(named), Some(_)) => {
                return Err(named.refuse("no codec, because this handler sets one"));
            }
        };
        let policy = node.get("policy")?.map(|node| node.choice(Policy::ALL)).transpose()?;
        let handler = handler.map(|(_, handler)| (handler, parameters[0], parameters[1]));
        let settings = RuleSettings { handler, policy, codec };
        if settings == RuleSettings::default() {
            return Err(node.refuse("handler, policy or codec"));
        }
        Ok(Self {
            channel: pattern("channel")?,
            process: pattern("process")?,
            thread: pattern("thread")?,
            settings,
        })
    }

    pub fn knows_threads(&self) -> bool {
        self.thread.is_some()
    }

    /// Whether it speaks of this channel of a process with one of these names.
    pub fn is_of(&self, channel: &str, process: &[String]) -> bool {
        self.channel.as_ref().is_none_or(|pattern| pattern.is_match(channel))
            && self
                .process
                .as_ref()
                .is_none_or(|pattern| process.iter().any(|name| pattern.is_match(name)))
    }

    /// Whether it speaks of this thread; of none that has no name and number yet, if it names
    /// threads.
    pub fn is_of_thread(&self, thread: Option<&[String; 2]>) -> bool {
        self.thread.as_ref().is_none_or(|pattern| {
            thread.is_some_and(|names| names.iter().any(|name| pattern.is_match(name)))
        })
    }
}

fn handler(node: &Node<'_>) -> Result<(Handler, Option<Codec>), Failure> {
    let plain = Handler::ALL.iter().map(|(name, handler)| (*name, (*handler, None)));
    let compressed = COMPRESSED.map(|(name, codec)| (name, (Handler::Buffered, Some(codec))));
    node.choice(&plain.chain(compressed).collect::<Vec<_>>())
}

/// The handler's numbers; those of others are refused.
fn parameters(node: &Node<'_>, handler: Option<Handler>) -> Result<[u32; 2], Failure> {
    let known: &[&str] = match handler {
        Some(Handler::Downsample | Handler::Median) => &["n"],
        Some(Handler::XOfY) => &["x", "y"],
        Some(Handler::PeriodicCounter | Handler::FastPeriodicCounter) => &["period"],
        Some(Handler::FoxStart) => &["address"],
        Some(Handler::FoxEnd) => &["address", "timeout"],
        _ => &[],
    };
    for key in ["n", "x", "y", "period", "address", "timeout"] {
        if let Some(other) = node.get(key)?.filter(|_| !known.contains(&key)) {
            return Err(other.refuse("no such key, because this handler has no such parameter"));
        }
    }
    let Some(handler) = handler else { return Ok([0; 2]) };
    let [a, b] = handler.defaults();
    match handler {
        Handler::Downsample => Ok([node.optional("n", |n| n.integer(1, u32::MAX), a)?, 0]),
        Handler::Median => Ok([node.optional("n", |n| n.integer(1, 1 << 16), a)?, 0]),
        Handler::XOfY => {
            let y = node.optional("y", power_of_two, b)?;
            Ok([node.optional("x", |x| x.integer(0, y), a.min(y))?, y])
        }
        Handler::PeriodicCounter | Handler::FastPeriodicCounter => {
            let default = u64::from(a) | u64::from(b) << 32;
            let nanoseconds = node.optional("period", period, default)?;
            Ok([nanoseconds as u32, (nanoseconds >> 32) as u32])
        }
        Handler::FoxStart | Handler::FoxEnd => {
            if let Some(thread) = node.get("thread")? {
                return Err(thread.refuse(
                    "no thread, because this handler applies to all threads \
                                          of a channel",
                ));
            }
            let address = address(&node.required(
                "address",
                "a text such as \
                                                  \"10.0.0.1:9100\"",
            )?)?;
            let timeout = node.optional("timeout", timeout_ms, 0)?;
            Ok([address.ip().to_bits(), u32::from(address.port()) | timeout << 16])
        }
        _ => Ok([0; 2]),
    }
}

fn address(node: &Node<'_>) -> Result<SocketAddrV4, Failure> {
    let address = node.string()?.parse().ok();
    let valid = address.filter(|address: &SocketAddrV4| address.port() != 0);
    valid.ok_or_else(|| node.refuse("an IPv4 address and a port, such as \"10.0.0.1:9100\""))
}

/// How long an answer may take.
fn timeout_ms(node: &Node<'_>) -> Result<u32, Failure> {
    let valid = period(node)?;
    let milliseconds = valid / 1_000_000;
    if (1..=10_000).contains(&milliseconds) && valid % 1_000_000 == 0 {
        Ok(milliseconds as u32)
    } else {
        Err(node.refuse("whole milliseconds from \"1ms\" to \"10s\""))
    }
}

fn power_of_two(node: &Node<'_>) -> Result<u32, Failure> {
    let number = node.integer(1, 1 << 31)?;
    if number.is_power_of_two() { Ok(number) } else { Err(node.refuse("a power of two")) }
}

/// `10ms`: a time above zero, in nanoseconds.
fn period(node: &Node<'_>) -> Result<u64, Failure> {
    let text = node.string()?;
    let valid = nanoseconds(text).filter(|time| (1..1 << 62).contains(time));
    valid.ok_or_else(|| node.refuse("a time such as \"500us\", \"10ms\" or \"1s\""))
}

fn expression(node: &Node<'_>) -> Result<Regex, Failure> {
    whole_name(node.string()?)
        .map_err(|reason| node.refuse(format_args!("a regular expression ({reason})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Rules, String> {
        Rules::parse("r.toml", text).map_err(|failure| failure.to_string())
    }

    fn settings(text: &str) -> RuleSettings {
        parse(&format!("[[rule]]\n{text}\n")).unwrap().rules[0].settings
    }

    #[test]
    fn handlers_have_their_parameters_and_defaults() {
        let handler = |text: &str| settings(text).handler.unwrap();
        for (text, expected) in [
            ("handler = 'null'", (Handler::Null, 0, 0)),
            ("handler = 'downsample'\nn = 7", (Handler::Downsample, 7, 0)),
            ("handler = 'downsample'", (Handler::Downsample, 10, 0)),
            ("handler = 'x-of-y'\nx = 3\ny = 8", (Handler::XOfY, 3, 8)),
            ("handler = 'x-of-y'", (Handler::XOfY, 100, 16_384)),
            ("handler = 'id'", (Handler::Id, 0, 0)),
            ("handler = 'first-last'", (Handler::FirstLast, 0, 0)),
            ("handler = 'median'", (Handler::Median, 1000, 0)),
            (
                "handler = 'periodic-counter'\nperiod = '5s'",
                (Handler::PeriodicCounter, 705_032_704, 1),
            ),
            (
                "handler = 'fox-start'\naddress = '10.0.0.1:9100'",
                (Handler::FoxStart, 0x0a00_0001, 9100),
            ),
            (
                "handler = 'fox-end'\naddress = '10.0.0.1:9100'\ntimeout = '2s'",
                (Handler::FoxEnd, 0x0a00_0001, 9100 | 2000 << 16),
            ),
            ("handler = 'fast-periodic-counter'", (Handler::FastPeriodicCounter, 10_000_000, 0)),
        ] {
            assert_eq!(handler(text), expected, "{text}");
        }
        assert_eq!(
            settings("policy = 'wait'"),
            RuleSettings { policy: Some(Policy::Wait), ..RuleSettings::default() }
        );
        let zstd = settings("handler = 'zstd'");
        assert_eq!(
            (zstd.handler, zstd.codec),
            (Some((Handler::Buffered, 0, 0)), Some(Codec::Zstd))
        );
        assert_eq!(settings("handler = 'median'\ncodec = 'lzo1x'").codec, Some(Codec::Lzo1x));
    }

    #[test]
    fn names_have_to_match_from_end_to_end() {
        assert!(parse("rule = []").unwrap().rules.is_empty());
        let rules = parse(
            "[[rule]]\nchannel = 'in|out.*'\nprocess = 'java|77'\nthread = 'w-[0-9]'\n\
             policy = 'drop'",
        )
        .unwrap();
        let rule = &rules.rules[0];
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        assert!(rule.is_of("in", &names(&["java", "5"])) && rule.is_of("output", &names(&["77"])));
        assert!(!rule.is_of("inn", &names(&["java"])) && !rule.is_of("in", &names(&["777"])));
        let thread = |name: &str| rule.is_of_thread(Some(&[name.to_owned(), "9".to_owned()]));
        assert!(thread("w-1") && !thread("w-11") && !rule.is_of_thread(None));
        assert!(rules.know_threads());
        assert!(!parse("[[rule]]\ncodec = 'lz4'").unwrap().know_threads());
    }

    #[test]
    fn errors_name_line_key_found_and_expected() {
        for (text, expected) in [
            ("", "r.toml:1: rule: found nothing, expected tables [[rule]], or rule = []"),
            (
                "[[rule]]\nchannel = 'a('\nhandler = 'ids'",
                "r.toml:3: rule[1].handler: found \"ids\", expected \"null\", \"buffered\"",
            ),
            (
                "[[rule]]\nhandler = 'null'\nchannel = 'a('",
                "r.toml:3: rule[1].channel: found \"a(\", expected a regular expression \
                 (unclosed group)",
            ),
            (
                "[[rule]]\nchannel = 'a'",
                "r.toml:1: rule[1]: found a table, expected handler, policy or codec",
            ),
            (
                "[[rule]]\nhandler = 'median'\nn = 0",
                "r.toml:3: rule[1].n: found integer 0, expected a number from 1 to 65536",
            ),
            (
                "[[rule]]\nhandler = 'null'\nn = 1",
                "r.toml:3: rule[1].n: found integer 1, expected no such key, because this handler \
                 has no such parameter",
            ),
            (
                "[[rule]]\nhandler = 'x-of-y'\ny = 12",
                "r.toml:3: rule[1].y: found integer 12, expected a power of two",
            ),
            (
                "[[rule]]\nhandler = 'x-of-y'\nx = 9\ny = 8",
                "r.toml:3: rule[1].x: found integer 9, expected a number from 0 to 8",
            ),
            (
                "[[rule]]\nhandler = 'periodic-counter'\nperiod = '0s'",
                "r.toml:3: rule[1].period: found \"0s\", expected a time such as \"500us\"",
            ),
            (
                "[[rule]]\nhandler = 'fox-end'\naddress = 'there:9100'",
                "r.toml:3: rule[1].address: found \"there:9100\", expected an IPv4 address and",
            ),
            (
                "[[rule]]\nhandler = 'fox-end'\naddress = '1.2.3.4:5'\ntimeout = '11s'",
                "r.toml:4: rule[1].timeout: found \"11s\", expected whole milliseconds",
            ),
            (
                "[[rule]]\nhandler = 'fox-start'\naddress = '1.2.3.4:5'\nthread = 'a'",
                "r.toml:4: rule[1].thread: found \"a\", expected no thread",
            ),
            (
                "[[rule]]\nhandler = 'zstd'\ncodec = 'lz4'",
                "r.toml:3: rule[1].codec: found \"lz4\", expected no codec, because this handler sets \
                 one",
            ),
            (
                "[[rule]]\nchanel = 'a'",
                "r.toml:2: rule[1].chanel: found an unknown key, expected channel, process",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        let many = "[[rule]]\npolicy = 'drop'\n".repeat(256);
        assert!(parse(&many).unwrap_err().ends_with("expected 255 rules at most"));
    }
}
