// SPDX-License-Identifier: Apache-2.0
//! TOML read key by key, so that every error can say its line, key, what was found and
//! what was expected.

use crate::Failure;
use std::fmt::Display;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub struct Document<'t> {
    file: &'t str,
    text: &'t str,
    root: DeValue<'t>,
}

impl<'t> Document<'t> {
    pub fn parse(file: &'t str, text: &'t str) -> Result<Self, Failure> {
        let root = DeTable::parse(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            Failure::input(format_args!("{file}:{}: {}", line(text, start), error.message()))
        })?;
        Ok(Self { file, text, root: DeValue::Table(root.into_inner()) })
    }

    pub fn root(&self) -> Node<'_> {
        Node { document: self, key: String::new(), span: 0..0, value: &self.root }
    }
}

/// A value and where it stands.
pub struct Node<'d> {
    document: &'d Document<'d>,
    key: String,
    span: Range<usize>,
    value: &'d DeValue<'d>,
}

impl<'d> Node<'d> {
    pub fn is_table(&self) -> bool {
        self.value.is_table()
    }

    pub fn string(&self) -> Result<&'d str, Failure> {
        self.value.as_str().ok_or_else(|| self.refuse("a string"))
    }

    pub fn boolean(&self) -> Result<bool, Failure> {
        self.value.as_bool().ok_or_else(|| self.refuse("true or false"))
    }

    /// A whole number in these bounds.
    pub fn integer(&self, least: u32, most: u32) -> Result<u32, Failure> {
        let expected = || self.refuse(format_args!("a number from {least} to {most}"));
        let DeValue::Integer(number) = self.value else { return Err(expected()) };
        let number = u32::from_str_radix(number.as_str(), number.radix()).ok();
        number.filter(|number| (least..=most).contains(number)).ok_or_else(expected)
    }

    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, Failure> {
        let found = self.value.as_str();
        let choice = choices.iter().find(|(name, _)| found == Some(name));
        choice.map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<_> = choices.iter().map(|(name, _)| format!("{name:?}")).collect();
            self.refuse(one_of(&names))
        })
    }

    pub fn list(&self, expected: &str) -> Result<Vec<Node<'d>>, Failure> {
        let list = self.value.as_array().ok_or_else(|| self.refuse(expected))?;
        let child = |(index, value): (usize, &'d Spanned<DeValue<'d>>)| {
            self.child(format!("{}[{}]", self.key, index + 1), value)
        };
        Ok(list.iter().enumerate().map(child).collect())
    }

    pub fn required(&self, key: &str, expected: &str) -> Result<Node<'d>, Failure> {
        self.get(key)?.ok_or_else(|| {
            let key = self.join(key);
            self.document.refuse(self.span.start, &key, "nothing", expected)
        })
    }

    pub fn optional<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Node<'d>) -> Result<T, Failure>,
        default: T,
    ) -> Result<T, Failure> {
        self.get(key)?.map_or(Ok(default), |node| read(&node))
    }

    /// Refuses every key of this table that is not in `known`.
    pub fn only(&self, known: &[&str]) -> Result<(), Failure> {
        match self.table()?.keys().find(|key| !known.contains(&key.get_ref().as_ref())) {
            None => Ok(()),
            Some(unknown) => Err(self.document.refuse(
                unknown.span().start,
                &self.join(unknown.get_ref()),
                "an unknown key",
                one_of(known),
            )),
        }
    }

    pub fn get(&self, key: &str) -> Result<Option<Node<'d>>, Failure> {
        let entry = self.table()?.iter().find(|(name, _)| name.get_ref() == key);
        Ok(entry.map(|(_, value)| self.child(self.join(key), value)))
    }

    fn table(&self) -> Result<&'d DeTable<'d>, Failure> {
        self.value.as_table().ok_or_else(|| self.refuse("a table"))
    }

    fn child(&self, key: String, value: &'d Spanned<DeValue<'d>>) -> Node<'d> {
        Node { document: self.document, key, span: value.span(), value: value.get_ref() }
    }

    fn join(&self, key: &str) -> String {
        if self.key.is_empty() { key.to_owned() } else { format!("{}.{key}", self.key) }
    }

    pub fn refuse(&self, expected: impl Display) -> Failure {
        let found = match self.value {
            DeValue::String(text) => format!("{text:?}"),
            DeValue::Integer(number) => format!("integer {number}"),
            DeValue::Boolean(value) => value.to_string(),
            other => format!("{} {}", article(other.type_str()), other.type_str()),
        };
        self.refuse_found(found, expected)
    }

    pub fn refuse_found(&self, found: impl Display, expected: impl Display) -> Failure {
        self.document.refuse(self.span.start, &self.key, found, expected)
    }
}

impl Document<'_> {
    fn refuse(
        &self,
        position: usize,
        key: &str,
        found: impl Display,
        expected: impl Display,
    ) -> Failure {
        let (file, line) = (self.file, line(self.text, position));
        Failure::input(format_args!("{file}:{line}: {key}: found {found}, expected {expected}"))
    }
}

fn line(text: &str, position: usize) -> usize {
    let before = &text.as_bytes()[..position.min(text.len())];
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

fn article(name: &str) -> &'static str {
    if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

fn one_of(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}
