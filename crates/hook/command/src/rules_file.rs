// SPDX-License-Identifier: Apache-2.0
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use tare_command::{Failure, ResultExt, regular_file};
use tare_hook_rules::{Keyword, Rules};
use tare_hook_segment::{Control, Generation, Keyword as Pattern};

/// Generations whose keywords are remembered: events of a generation are drained within
/// milliseconds of its end.
const REMEMBERED: usize = 16;
/// A search that meets two new generations begins anew, so they have a distance.
const DISTANCE: Duration = Duration::from_millis(10);

/// What the file held, or why it could not be read.
type Reading = Result<String, String>;

/// Rules ready to be published, and the texts of their keywords.
type Built = (Generation, Vec<String>);

/// Rules that were read and are in force nowhere yet.
pub struct FirstRules {
    path: PathBuf,
    reading: Reading,
    built: Built,
}

impl FirstRules {
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let reading = read(path);
        let built = build(path, &reading)?;
        Ok(Self { path: path.into(), reading, built })
    }
}

/// The rules in force, from a file that may change.
pub struct RuleBook {
    /// `None` where they are those of a tare-hook before this one.
    path: Option<PathBuf>,
    /// The last reading, good or bad: what is wrong is told once.
    last: Reading,
    control: &'static Control,
    generations: VecDeque<(u64, Vec<String>)>,
    published: Option<Instant>,
    /// Many keywords take long, and meanwhile signals and events must not wait.
    building: Option<JoinHandle<Result<Built, Failure>>>,
    /// The file may have changed since it was read for `building`.
    stale: bool,
    pub reloads: u64,
    pub refused: u64,
}

impl RuleBook {
    /// Publishes the first generation, after those that the segment has already: there may be
    /// events of theirs.
    pub fn open(first: FirstRules, control: &'static Control) -> Self {
        let mut book = Self { path: Some(first.path), last: first.reading, ..Self::adopt(control) };
        book.publish(first.built);
        book
    }

    /// Leaves in force what is.
    pub fn adopt(control: &'static Control) -> Self {
        let known = control.texts().into_iter();
        Self {
            path: None,
            last: Ok(String::new()),
            control,
            generations: known.map(|(number, texts)| (number, as_json(&texts))).collect(),
            published: None,
            building: None,
            stale: false,
            reloads: 0,
            refused: 0,
        }
    }

    /// Reads the file again and begins to build what it says, for [`RuleBook::renew`].
    pub fn reload(&mut self) -> Result<(), Failure> {
        match self.path.as_deref().map(read) {
            Some(reading) => self.begin(reading),
            None => Ok(()),
        }
    }

    /// As `reload`, if the file is another one than before.
    pub fn reload_if_changed(&mut self) -> Result<(), Failure> {
        // Between an editor's two renames there is no file: the second one is seen, too.
        let Some(path) = &self.path else { return Ok(()) };
        let reading = match regular_file::text(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(|error| error.to_string()),
        };
        if reading == self.last { Ok(()) } else { self.begin(reading) }
    }

    /// Publishes what has been built meanwhile; to be called often. What is wrong with it
    /// leaves the old rules in force.
    pub fn renew(&mut self) -> Result<(), Failure> {
        if self.published.is_some_and(|last| last.elapsed() < DISTANCE) {
            return Ok(());
        }
        match self.building.take_if(|thread| thread.is_finished()) {
            Some(ready) => {
                let built = ready.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                let built = self.count(built)?;
                self.publish(built);
                self.reloads += 1;
                Ok(())
            }
            None if self.building.is_none() && std::mem::take(&mut self.stale) => {
                self.reload_if_changed()
            }
            None => Ok(()),
        }
    }

    fn begin(&mut self, reading: Reading) -> Result<(), Failure> {
        if self.building.is_some() {
            self.stale = true;
            return Ok(());
        }
        let Some(path) = self.path.clone() else { return Ok(()) };
        self.last = reading.clone();
        let thread = Builder::new().spawn(move || build(&path, &reading));
        self.building = Some(self.count(thread.or_failed("a thread to build the rules"))?);
        Ok(())
    }

    fn count<T>(&mut self, done: Result<T, Failure>) -> Result<T, Failure> {
        self.refused += u64::from(done.is_err());
        done
    }

    fn publish(&mut self, (generation, texts): Built) {
        let number = self.control.publish(&generation);
        self.published = Some(Instant::now());
        self.generations.push_front((number, as_json(&texts)));
        self.generations.truncate(REMEMBERED);
    }

    /// The text of a keyword as JSON; `None` for numbers that no event should have.
    pub fn keyword(&self, generation: u64, number: u32) -> Option<&str> {
        let (_, texts) = self.generations.iter().find(|(known, _)| *known == generation)?;
        texts.get(number as usize).map(String::as_str)
    }

    /// How many keywords are in force.
    pub fn keywords(&self) -> usize {
        self.generations.front().map_or(0, |(_, texts)| texts.len())
    }
}

/// Once for all events that will have them.
fn as_json(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| serde_json::Value::from(text.as_str()).to_string()).collect()
}

fn read(path: &Path) -> Reading {
    regular_file::text(path).map_err(|error| error.to_string())
}

fn build(path: &Path, reading: &Reading) -> Result<Built, Failure> {
    let file = path.display().to_string();
    let text = reading.as_ref().map_err(|error| {
        Failure::input(format_args!("--rules {file}: {error}; name a text file that can be read"))
    })?;
    let keywords = Rules::parse(&file, text)?.keywords;
    let patterns: Vec<_> = keywords.iter().map(pattern).collect();
    let generation = Generation::build(&patterns).or_input(&file)?;
    Ok((generation, keywords.into_iter().map(|keyword| keyword.text).collect()))
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

    struct File(PathBuf);

    impl File {
        fn new(name: &str) -> Self {
            let file = format!("tare-book-{name}-{}.toml", std::process::id());
            let file = Self(std::env::temp_dir().join(file));
            file.write(rules("first"));
            file
        }

        fn write(&self, text: impl AsRef<[u8]>) {
            std::fs::write(&self.0, text).unwrap();
        }

        fn book(&self, segments: &Segments) -> RuleBook {
            RuleBook::open(FirstRules::read(&self.0).unwrap(), segments.control)
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn rules(word: &str) -> String {
        format!("[[rule]]\nkeywords = [\"{word}\"]\n")
    }

    /// Renews until nothing is being built or waited for.
    fn settle(book: &mut RuleBook) -> Result<(), String> {
        while book.building.is_some() || book.stale {
            book.renew().map_err(|failure| failure.to_string())?;
            std::thread::yield_now();
        }
        Ok(())
    }

    #[test]
    fn broken_rules_leave_the_old_ones_in_force() {
        let file = File::new("broken");
        let segments = Segments::create().unwrap().0;
        let mut book = file.book(&segments);
        assert_eq!(book.keyword(1, 0), Some("\"first\""));

        file.write("[[rule]]\nkeywords = 1\n");
        book.reload_if_changed().unwrap();
        let error = settle(&mut book).unwrap_err();
        assert!(error.contains(":2: rule[1].keywords: found integer 1"), "{error}");
        book.reload_if_changed().unwrap();
        assert_eq!(settle(&mut book), Ok(()), "said once");
        assert_eq!(segments.control.view().unwrap().generation, 1);

        file.write(rules("second"));
        book.reload_if_changed().unwrap();
        settle(&mut book).unwrap();
        assert_eq!(segments.control.view().unwrap().generation, 2);
        let both = (Some("\"first\""), Some("\"second\""));
        assert_eq!((book.keyword(1, 0), book.keyword(2, 0)), both);
        assert_eq!((book.keyword(3, 0), book.keyword(2, 1)), (None, None));
        assert_eq!((book.reloads, book.refused), (1, 1));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told_once_and_one_that_is_not_there_never() {
        let file = File::new("unread");
        let segments = Segments::create().unwrap().0;
        let mut book = file.book(&segments);
        file.write(b"[[rule]]\nkeywords = [\"\xff\"]\n");
        book.reload_if_changed().unwrap();
        let error = settle(&mut book).unwrap_err();
        assert!(error.contains("did not contain valid UTF-8; name a text file"), "{error}");
        book.reload_if_changed().unwrap();
        assert_eq!(settle(&mut book), Ok(()), "said once");
        std::fs::remove_file(&file.0).unwrap();
        book.reload_if_changed().unwrap();
        assert_eq!(settle(&mut book), Ok(()), "there may be a new one soon");
        assert_eq!((book.reloads, book.refused), (0, 1));
    }

    #[test]
    fn rules_are_built_aside_and_those_that_come_meanwhile_are_next() {
        let file = File::new("aside");
        let segments = Segments::create().unwrap().0;
        let mut book = file.book(&segments);
        for word in ["second", "third", "fourth"] {
            file.write(rules(word));
            book.reload_if_changed().unwrap();
            assert_eq!(segments.control.view().unwrap().generation, 1, "nobody waits for it");
        }
        settle(&mut book).unwrap();
        assert_eq!(segments.control.view().unwrap().generation, 3);
        let both = (Some("\"second\""), Some("\"fourth\""));
        assert_eq!((book.keyword(2, 0), book.keyword(3, 0)), both);
    }

    #[test]
    fn who_takes_over_knows_the_keywords_of_the_last_generations() {
        let file = File::new("adopted");
        let segments = Segments::create().unwrap().0;
        assert_eq!(RuleBook::adopt(segments.control).keywords(), 0);
        drop(file.book(&segments));
        file.write("[[rule]]\nkeywords = [\"käse\", \"say \\\"x\\\"\"]\n");
        drop(file.book(&segments));

        let mut book = RuleBook::adopt(segments.control);
        assert_eq!(book.keywords(), 2);
        assert_eq!((book.keyword(2, 0), book.keyword(1, 0)), (Some("\"käse\""), Some("\"first\"")));
        assert_eq!(book.keyword(2, 1), Some(r#""say \"x\"""#));
        book.reload().unwrap();
        assert_eq!(segments.control.view().unwrap().generation, 2, "there is no file to read");
    }
}
