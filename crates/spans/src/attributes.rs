// SPDX-License-Identifier: Apache-2.0
//! Attributes of spans that are kept, because the user named their keys.

use clap::Args;
use serde_json::{Map, Value};

const MOST_KEYS: usize = 16;
const LONGEST_KEY: usize = 256;
/// Bytes of a value; the rest is cut off.
const LONGEST_VALUE: usize = 256;

#[derive(Args, Clone, Debug, Default)]
pub struct Keys {
    /// Keep this attribute of spans or of their resource, for --group-by; can be repeated.
    #[arg(long = "attribute", value_name = "KEY", value_parser = key)]
    keys: Vec<String>,
}

impl Keys {
    /// None, or why there are too many.
    pub fn problem(&self) -> Option<String> {
        let count = self.keys.len();
        (count > MOST_KEYS).then(|| format!("--attribute: {count} keys; give at most {MOST_KEYS}"))
    }

    pub fn are_none(&self) -> bool {
        self.keys.is_empty()
    }

    #[cfg(test)]
    pub fn of(keys: &[&str]) -> Self {
        Self { keys: keys.iter().map(|key| (*key).to_owned()).collect() }
    }
}

fn key(text: &str) -> Result<String, String> {
    match text.len() {
        0 => Err("it is empty".to_owned()),
        1..=LONGEST_KEY => Ok(text.to_owned()),
        _ => Err(format!("it is longer than {LONGEST_KEY} bytes")),
    }
}

/// The values that one span or resource has for the keys.
pub struct Values<'keys> {
    keys: &'keys [String],
    texts: Vec<Option<String>>,
}

impl<'keys> Values<'keys> {
    pub fn new(keys: &'keys Keys) -> Self {
        Self { keys: &keys.keys, texts: vec![None; keys.keys.len()] }
    }

    /// Whether nothing is to be kept.
    pub fn are_none(&self) -> bool {
        self.keys.is_empty()
    }

    /// Keeps a value if its key was named; the first one counts.
    pub fn set(&mut self, key: &str, text: impl FnOnce() -> Option<String>) {
        for (own, place) in self.keys.iter().zip(&mut self.texts) {
            if own == key && place.is_none() {
                *place = text();
                return;
            }
        }
    }

    /// An object in JSON; what a span does not have is its resource's.
    pub fn json(&self, of_resource: &Self) -> Option<String> {
        let texts = self.texts.iter().zip(&of_resource.texts);
        let found: Map<String, Value> = self
            .keys
            .iter()
            .zip(texts)
            .filter_map(|(key, (own, other))| {
                let text = own.as_ref().or(other.as_ref())?;
                let length = text.floor_char_boundary(LONGEST_VALUE);
                Some((key.clone(), Value::from(&text[..length])))
            })
            .collect();
        (!found.is_empty()).then(|| Value::Object(found).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_span_come_before_those_of_its_resource() {
        let keys = Keys::of(&["tier", "zone", "none"]);
        let [mut own, mut shared] = [Values::new(&keys), Values::new(&keys)];
        assert_eq!(own.json(&shared), None);
        own.set("tier", || Some("gold \"1\"".to_owned()));
        own.set("tier", || Some("second".to_owned()));
        own.set("other", || panic!("it was not named"));
        shared.set("tier", || Some("silver".to_owned()));
        shared.set("zone", || Some("ä".repeat(LONGEST_VALUE)));
        let zone = "ä".repeat(LONGEST_VALUE / 2);
        let expected = format!(r#"{{"tier":"gold \"1\"","zone":"{zone}"}}"#);
        assert_eq!(own.json(&shared), Some(expected));
    }

    #[test]
    fn keys_have_limits() {
        assert!(key("").is_err() && key(&"k".repeat(LONGEST_KEY + 1)).is_err());
        assert_eq!(key("http.route"), Ok("http.route".to_owned()));
        assert!(Keys::of(&["a"; MOST_KEYS]).problem().is_none());
        let problem = Keys::of(&["a"; MOST_KEYS + 1]).problem();
        assert_eq!(problem.as_deref(), Some("--attribute: 17 keys; give at most 16"));
    }
}
