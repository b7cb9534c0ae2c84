// SPDX-License-Identifier: Apache-2.0
//! Text of unknown origin on a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, StdoutLock, Write};

/// `text` with characters that a terminal obeys, or that cannot be seen, as escapes (`\x1b`,
/// `\u202e`), except those in `keep`. As `tare.terminal.printable` in Python.
pub fn printable<'text>(text: &'text str, keep: &[char]) -> Cow<'text, str> {
    let is_harmless = |character: char| keep.contains(&character) || !is_harmful(character);
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        let code = u32::from(character);
        // Writing to a string cannot fail.
        let _ = match code {
            _ if is_harmless(character) => write!(shown, "{character}"),
            0..0x100 => write!(shown, "\\x{code:02x}"),
            0x100..0x10000 => write!(shown, "\\u{code:04x}"),
            _ => write!(shown, "\\U{code:08x}"),
        };
    }
    Cow::Owned(shown)
}

/// JSON in which such characters are escapes (`\u202e`), wherever it goes: outside of its strings, JSON
/// has none. As `tare.terminal.json_text` in Python.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    if json.is_ascii() && !json.as_bytes().contains(&b'\x7f') {
        return Cow::Borrowed(json);
    }
    // Control characters of ASCII are escaped already, or separate values.
    let is_harmless = |character: char| character < '\x7f' || !is_harmful(character);
    if json.chars().all(is_harmless) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 8);
    for character in json.chars() {
        if is_harmless(character) {
            shown.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\u{unit:04x}");
        }
    }
    Cow::Owned(shown)
}

/// Controls, formats, separators and private characters of Unicode, and letters without a shape: what
/// hides text or changes its order.
fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
                | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{180e}'
                | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{3164}' | '\u{e000}'..='\u{f8ff}' | '\u{feff}' | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}' | '\u{fffe}'..='\u{ffff}' | '\u{110bd}' | '\u{110cd}'
                | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..
        )
}

/// Standard output: on a terminal, what is written is `printable`, line by line.
pub struct Output {
    stdout: StdoutLock<'static>,
    is_terminal: bool,
    /// The beginning of a character that is not complete.
    rest: Vec<u8>,
}

impl Output {
    pub fn lock() -> Self {
        let stdout = io::stdout().lock();
        let is_terminal = stdout.is_terminal();
        Self { stdout, is_terminal, rest: Vec::new() }
    }

    /// Whether a person reads it.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.stdout.write(bytes);
        }
        self.rest.extend_from_slice(bytes);
        let rest = std::mem::take(&mut self.rest);
        let (text, rest) = split(&rest);
        self.stdout.write_all(printable(&text, &['\n']).as_bytes())?;
        self.rest = rest;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

/// The complete characters of some bytes, and the beginning of one more.
fn split(bytes: &[u8]) -> (String, Vec<u8>) {
    let incomplete = match str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.len() - error.valid_up_to(),
        _ => 0,
    };
    let (text, rest) = bytes.split_at(bytes.len() - incomplete.min(3));
    (String::from_utf8_lossy(text).into_owned(), rest.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_is_unchanged() {
        for text in ["", "plain", "µs größer → 10 %", "日本語", "a\u{a0}b", "é🙂"] {
            assert!(matches!(printable(text, &[]), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        for (text, shown) in [
            ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
            ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
            ("one\r\ntwo\0", "one\\x0d\\x0atwo\\x00"),
            ("\u{9b}31m", "\\x9b31m"),
            ("user\u{202e}txt.exe", "user\\u202etxt.exe"),
            ("zero\u{200b}width\u{2028}", "zero\\u200bwidth\\u2028"),
            ("\u{e0041}", "\\U000e0041"),
            ("\u{601}\u{3164}", "\\u0601\\u3164"),
            ("\u{1d173}\u{e0100}", "\\U0001d173\\U000e0100"),
            ("\x7f", "\\x7f"),
        ] {
            assert_eq!(printable(text, &[]), shown);
        }
        assert_eq!(printable("one\n\ttwo\x1b", &['\n']), "one\n\\x09two\\x1b");
    }

    #[test]
    fn characters_that_arrive_in_parts_are_complete() {
        let bytes = "µ→🙂".as_bytes();
        for at in 0..bytes.len() {
            let (first, mut rest) = split(&bytes[..at]);
            rest.extend_from_slice(&bytes[at..]);
            assert_eq!(first + &split(&rest).0, "µ→🙂");
        }
        assert_eq!(split(b"a\xffb").0, "a\u{fffd}b");
    }

    #[test]
    fn json_has_no_character_that_changes_the_order_of_text() {
        for order in (0x202a..=0x202e).chain(0x2066..=0x2069).chain([0x200e, 0x200f, 0x61c]) {
            let name = format!("a{}b", char::from_u32(order).unwrap());
            assert_eq!(printable(&name, &[]), format!("a\\u{order:04x}b"));
            assert_eq!(printable_json(&name), format!("a\\u{order:04x}b"));
        }
        let json = "{\n  \"größe\": \"\x7f\u{9b}\u{e0001}\u{202e}\"\n}\n";
        let shown = "{\n  \"größe\": \"\\u007f\\u009b\\udb40\\udc01\\u202e\"\n}\n";
        assert_eq!(printable_json(json), shown);
        assert!(matches!(printable_json("{\"a\": \"ö\"}\n"), Cow::Borrowed(_)));
    }
}
