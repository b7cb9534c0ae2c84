// SPDX-License-Identifier: Apache-2.0
//! Attributes of spans that are kept, because the user named their keys.

use serde_json::{Map, Value};

const MOST_KEYS: usize = 16;
const LONGEST_KEY: usize = 256;
/// Bytes of a value; the rest is cut off.
const LONGEST_VALUE: usize = 256;

/// Their keys.
#[derive(Clone, Debug, Default)]
pub struct Keys(Vec<String>);

impl Keys {
    /// An error says what is wrong with the keys.
    pub fn new(keys: &[String]) -> Result<Self, String> {
        if keys.len() > MOST_KEYS {
            return Err(format!("{} keys; give at most {MOST_KEYS}", keys.len()));
        }
        match keys.iter().find(|key| key.is_empty() || key.len() > LONGEST_KEY) {
            Some(key) if key.is_empty() => {
                Err("is empty; give the name of an attribute".to_owned())
            }
            Some(_) => Err(format!("is longer than {LONGEST_KEY} bytes")),
            None => Ok(Self(keys.to_vec())),
        }
    }

    pub fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(test)]
    pub fn of(keys: &[&str]) -> Self {
        Self(keys.iter().map(|key| (*key).to_owned()).collect())
    }
}

/// The values that one span or resource has for the keys.
pub struct Values<'keys> {
    keys: &'keys [String],
    texts: Vec<Option<String>>,
}

impl<'keys> Values<'keys> {
    pub fn new(keys: &'keys Keys) -> Self {
        Self { keys: &keys.0, texts: vec![None; keys.0.len()] }
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
        let made = |key: &str, count| Keys::new(&vec![key.to_owned(); count]);
        assert!(made("", 1).is_err() && made(&"k".repeat(LONGEST_KEY + 1), 1).is_err());
        assert!(made("http.route", MOST_KEYS).is_ok());
        assert_eq!(made("a", 17).unwrap_err(), "17 keys; give at most 16");
    }
}
