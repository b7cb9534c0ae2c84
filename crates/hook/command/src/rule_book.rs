// SPDX-License-Identifier: Apache-2.0
use tare_hook_rules::{Keyword, Rules};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use tare_command::{Failure, ResultExt};
use tare_hook_segment::{Control, Generation, Keyword as Pattern};

/// Generations whose keywords are remembered: events of a generation are drained within
/// milliseconds of its end.
const REMEMBERED: usize = 16;
/// A search that meets two new generations begins anew, so they have a distance.
const DISTANCE: Duration = Duration::from_millis(10);

/// The rules in force, from a file that may change.
pub struct RuleBook {
    path: PathBuf,
    text: String,
    control: &'static Control,
    generations: VecDeque<(u64, Vec<String>)>,
    published: Option<Instant>,
    pub reloads: u64,
    pub refused: u64,
}

impl RuleBook {
    /// Reads and publishes the first generation.
    pub fn open(path: &Path, control: &'static Control) -> Result<Self, Failure> {
        let text = read(path)?;
        let mut book = Self {
            path: path.to_owned(),
            text: String::new(),
            control,
            generations: VecDeque::new(),
            published: None,
            reloads: 0,
            refused: 0,
        };
        book.publish(text)?;
        Ok(book)
    }

    /// Reads the file again. What is wrong with it leaves the old rules in force.
    pub fn reload(&mut self) -> Result<(), Failure> {
        let done = read(&self.path).and_then(|text| self.publish(text));
        match done {
            Ok(()) => self.reloads += 1,
            Err(_) => self.refused += 1,
        }
        done
    }

    /// Reads the file again if its text is another one.
    pub fn reload_if_changed(&mut self) -> Result<(), Failure> {
        // Between an editor's two renames there is no file: the second one is seen, too.
        match std::fs::read_to_string(&self.path) {
            Ok(text) if text != self.text => self.reload(),
            _ => Ok(()),
        }
    }

    fn publish(&mut self, text: String) -> Result<(), Failure> {
        let file = self.path.display().to_string();
        let rules = Rules::parse(&file, &text);
        // A broken text is remembered, too, so that it is refused once.
        self.text = text;
        let keywords = rules?.keywords;
        let patterns: Vec<_> = keywords.iter().map(pattern).collect();
        let generation = Generation::build(&patterns).or_input(&file)?;
        if let Some(rest) = self.published.and_then(|last| DISTANCE.checked_sub(last.elapsed())) {
            thread::sleep(rest);
        }
        let number = self.control.publish(&generation);
        self.published = Some(Instant::now());
        let texts = keywords.into_iter().map(|keyword| keyword.text).collect();
        self.generations.push_front((number, texts));
        self.generations.truncate(REMEMBERED);
        Ok(())
    }

    /// The text of a keyword; `None` for numbers that no event should have.
    pub fn keyword(&self, generation: u64, number: u32) -> Option<&str> {
        let (_, texts) = self.generations.iter().find(|(known, _)| *known == generation)?;
        texts.get(number as usize).map(String::as_str)
    }

    /// How many keywords are in force.
    pub fn keywords(&self) -> usize {
        self.generations.front().map_or(0, |(_, texts)| texts.len())
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).or_input(format_args!("--rules {}", path.display()))
}

fn pattern(keyword: &Keyword) -> Pattern<'_> {
    Pattern {
        text: keyword.text.as_bytes(),
        ignore_case: keyword.ignore_case,
        scope: keyword.scope,
        directions: keyword.direction,
        action: keyword.action,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::Segments;

    #[test]
    fn broken_rules_leave_the_old_ones_in_force() {
        let path = std::env::temp_dir().join(format!("tare-book-{}.toml", std::process::id()));
        let rules = |word: &str| format!("[[rule]]\nkeywords = [\"{word}\"]\n");
        std::fs::write(&path, rules("first")).unwrap();
        let segments = Segments::create().unwrap();
        let mut book = RuleBook::open(&path, segments.control).unwrap();
        assert_eq!(book.keyword(1, 0), Some("first"));

        std::fs::write(&path, "[[rule]]\nkeywords = 1\n").unwrap();
        let error = book.reload_if_changed().unwrap_err().to_string();
        assert!(error.contains(":2: rule[1].keywords: found integer 1"), "{error}");
        assert!(book.reload_if_changed().is_ok(), "said once");
        assert_eq!(segments.control.view().unwrap().generation, 1);

        std::fs::write(&path, rules("second")).unwrap();
        book.reload_if_changed().unwrap();
        assert_eq!(segments.control.view().unwrap().generation, 2);
        assert_eq!((book.keyword(1, 0), book.keyword(2, 0)), (Some("first"), Some("second")));
        assert_eq!((book.keyword(3, 0), book.keyword(2, 1)), (None, None));
        assert_eq!((book.reloads, book.refused), (1, 1));
        std::fs::remove_file(path).unwrap();
    }
}
