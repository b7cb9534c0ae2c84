// SPDX-License-Identifier: Apache-2.0
//! The files that Cloudprofiler writes, one a channel, in a folder: what its own tools read
//! (docs/decisions/0098-cloudprofilers-files-are-an-export.md).

use super::{Exporter, Source};
use crate::reader::log::{Ended, Row, What};
use crate::reader::spans::SpanEvent;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use tare_command::NewFolder;
use tare_log_file::{Packer, Payload};
use tare_log_segment::{ChannelId, Codec};

/// What programs that are compiled with `tare_log_compat.h` say of their channels.
const DECLARATIONS: &str = "cloudprofiler";

/// Records that are compressed as one. Cloudprofiler has a million; its readers go by the size.
const BLOCK: usize = 1 << 16;

/// What is written at once of files that are not compressed.
const PART: usize = 1 << 16;

/// Bytes of the longest name of a file.
const LONGEST_NAME: usize = 255;

/// Handlers whose lines lack the processor: their numbers in `handler_type`.
const WITHOUT_AUX: [u8; 3] = [4, 5, 6];

/// How a file is written: a letter of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    letter: char,
    is_text: bool,
    /// Ticks alone; of text, behind the first line.
    is_short: bool,
    codec: Codec,
}

impl Layout {
    const ALL: [Self; 8] = {
        const fn of(letter: char, is_text: bool, is_short: bool, codec: Codec) -> Layout {
            Layout { letter, is_text, is_short, codec }
        }
        [
            of('a', true, false, Codec::None),
            of('i', true, true, Codec::None),
            of('b', false, false, Codec::None),
            of('y', false, true, Codec::None),
            of('z', false, false, Codec::Zstd),
            of('d', false, true, Codec::Zstd),
            of('l', false, false, Codec::Lzo1x),
            of('x', false, true, Codec::Lzo1x),
        ]
    };

    fn lettered(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| letter.chars().eq([layout.letter]))
    }
}

/// A channel as its program calls it.
struct Declaration {
    number: u32,
    layout: Layout,
    handler: u8,
    address: String,
    name: String,
    tid: u32,
}

impl Declaration {
    /// `ID NUMBER LETTER HANDLER ADDRESS NAME`, as `tare_log_compat.h` logs it.
    fn read(text: &str, tid: u32) -> Option<(ChannelId, Self)> {
        let mut words = text.splitn(6, ' ');
        let mut word = || words.next();
        let id = word()?.parse().ok()?;
        let number = word()?.parse().ok()?;
        let layout = Layout::lettered(word()?)?;
        let handler = word()?.parse().ok()?;
        let (address, name) = (word()?.to_owned(), word()?.to_owned());
        Some((id, Self { number, layout, handler, address, name, tid }))
    }

    fn file_name(&self, pid: u32) -> String {
        let Self { number, layout: Layout { letter, .. }, address, name, tid, .. } = self;
        let mut file = format!(":{address}:{pid}:{tid}:ch{number}:{letter}:{name}");
        while file.len() + ".txt".len() > LONGEST_NAME {
            file.pop();
        }
        // The letters that no name of a file can have.
        file.replace(['/', '\0'], "_") + ".txt"
    }
}

/// What is being written of a channel.
struct Channel {
    /// Of its file.
    name: String,
    layout: Layout,
    has_aux: bool,
    waiting: Vec<u8>,
    records: usize,
    has_begun: bool,
}

impl Channel {
    fn new(name: String, declaration: &Declaration) -> Self {
        Self {
            name,
            layout: declaration.layout,
            has_aux: !WITHOUT_AUX.contains(&declaration.handler),
            waiting: Vec::new(),
            records: 0,
            has_begun: false,
        }
    }

    /// `aux`, the processor that logged, is not in the file: it is 0.
    fn add(&mut self, tuple: i64, time_ns: i64, ticks: u64) -> io::Result<()> {
        const SECOND: i64 = 1_000_000_000;
        let (seconds, rest) = (time_ns.div_euclid(SECOND), time_ns.rem_euclid(SECOND));
        let Layout { is_text, is_short, .. } = self.layout;
        let out = &mut self.waiting;
        if is_text {
            let aux = if self.has_aux { ", 0" } else { "" };
            if is_short && self.has_begun {
                writeln!(out, "{tuple}, {ticks}{aux}")?;
            } else {
                writeln!(out, "{tuple}, {seconds}, {rest}, {ticks}{aux}")?;
            }
        } else if is_short {
            out.extend(tuple.to_le_bytes());
            out.extend(ticks.to_le_bytes());
        } else {
            for number in [tuple, seconds, rest, ticks as i64, 0] {
                out.extend(number.to_le_bytes());
            }
        }
        self.has_begun = true;
        self.records += 1;
        Ok(())
    }

    fn is_due(&self) -> bool {
        match self.layout.codec {
            Codec::None => self.waiting.len() >= PART,
            _ => self.records >= BLOCK,
        }
    }

    /// Appends what waits, compressed as one behind its size.
    fn write(&mut self, folder: &NewFolder, packer: &mut Packer) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut file = folder.append(&self.name)?;
        if self.layout.codec == Codec::None {
            file.write_all(&self.waiting)?;
        } else {
            let mut block = vec![0; size_of::<i32>()];
            let length = packer.pack(self.layout.codec, &self.waiting, &mut block)?;
            let length = i32::try_from(length).map_err(io::Error::other)?;
            block[..size_of::<i32>()].copy_from_slice(&length.to_le_bytes());
            file.write_all(&block)?;
        }
        self.waiting.clear();
        self.records = 0;
        Ok(())
    }
}

pub struct Cloudprofiler<'log> {
    source: Source<'log>,
    folder: &'log NewFolder,
    channels: HashMap<(usize, ChannelId), Channel>,
    names: HashSet<String>,
    packer: Packer,
}

impl<'log> Cloudprofiler<'log> {
    /// Makes a file in the folder for each channel that a program has declared.
    pub fn new(source: Source<'log>, folder: &'log NewFolder) -> io::Result<Self> {
        let mut export = Self {
            source,
            folder,
            channels: HashMap::new(),
            names: HashSet::new(),
            packer: Packer::default(),
        };
        let read = source.log.rows(|row| match row.what {
            What::Event { channel: DECLARATIONS, payload: Payload::Bytes(text), .. } => {
                let text = String::from_utf8_lossy(text);
                let Some((id, declaration)) = Declaration::read(&text, row.tid) else {
                    return Ok(());
                };
                export.create((row.process, id), row.pid, &declaration)
            }
            _ => Ok(()),
        });
        match read {
            Ok(()) => Ok(export),
            Err(Ended::Enough(error)) => Err(error),
            Err(Ended::Failed(failure)) => Err(io::Error::other(failure.to_string())),
        }
    }

    fn create(
        &mut self,
        key: (usize, ChannelId),
        pid: u32,
        declaration: &Declaration,
    ) -> io::Result<()> {
        // A program that executed another, which opens the same, has the same name for it.
        let mut name = declaration.file_name(pid);
        while !self.names.insert(name.clone()) {
            name.push('_');
        }
        self.folder.append(&name)?;
        self.channels.insert(key, Channel::new(name, declaration));
        Ok(())
    }

    /// A channel of a program that was not written for Cloudprofiler.
    fn create_undeclared(
        &mut self,
        key: (usize, ChannelId),
        pid: u32,
        name: &str,
    ) -> io::Result<()> {
        let host = &self.source.log.processes()[key.0].host;
        let opened = self.source.log.channel(key.0, key.1);
        let declaration = Declaration {
            number: key.1.into(),
            layout: Layout::ALL[2],
            handler: 1,
            address: host.clone(),
            name: name.to_owned(),
            tid: opened.map_or(0, |channel| channel.tid),
        };
        self.create(key, pid, &declaration)
    }
}

impl Exporter for Cloudprofiler<'_> {
    fn add(&mut self, row: &Row<'_>, span_event: SpanEvent<'_>) -> io::Result<()> {
        // What is said of a span besides its own rows.
        if matches!(span_event, SpanEvent::Cut(_) | SpanEvent::Left(_)) {
            return Ok(());
        }
        // Tuples are numbers.
        let What::Event { id, channel: name, payload: Payload::Number(tuple) } = row.what else {
            return Ok(());
        };
        let key = (row.process, id);
        if !self.channels.contains_key(&key) {
            self.create_undeclared(key, row.pid, name)?;
        }
        let Some(channel) = self.channels.get_mut(&key) else { return Ok(()) };
        channel.add(tuple, row.time_ns.unwrap_or_default(), row.ticks)?;
        if channel.is_due() { channel.write(self.folder, &mut self.packer) } else { Ok(()) }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.channels
            .values_mut()
            .try_for_each(|channel| channel.write(self.folder, &mut self.packer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declaration(letter: &str, handler: u8) -> Declaration {
        let text = format!("5 2 {letter} {handler} 10.0.0.1 a/b  tin");
        let (id, declaration) = Declaration::read(&text, 42).unwrap();
        assert_eq!(id, 5);
        declaration
    }

    fn waiting(letter: &str, handler: u8) -> Vec<u8> {
        let mut channel = Channel::new(String::new(), &declaration(letter, handler));
        channel.add(7, 1_500_000_002, 99).unwrap();
        channel.add(-2, 2_000_000_000, 100).unwrap();
        channel.waiting
    }

    #[test]
    fn names_have_address_process_thread_number_and_letter() {
        assert_eq!(declaration("b", 1).file_name(17), ":10.0.0.1:17:42:ch2:b:a_b  tin.txt");
        let odd = Declaration { name: "a\0b".to_owned(), ..declaration("b", 1) };
        assert_eq!(odd.file_name(17), ":10.0.0.1:17:42:ch2:b:a_b.txt");
        let long = Declaration { name: "é".repeat(300), ..declaration("b", 1) };
        let name = long.file_name(17);
        assert!((LONGEST_NAME - 1..=LONGEST_NAME).contains(&name.len()));
        assert!(name.ends_with("é.txt"));
    }

    #[test]
    fn lines_have_five_numbers_and_short_ones_three() {
        let text = |letter, handler| String::from_utf8(waiting(letter, handler)).unwrap();
        assert_eq!(text("a", 1), "7, 1, 500000002, 99, 0\n-2, 2, 0, 100, 0\n");
        assert_eq!(text("a", 4), "7, 1, 500000002, 99\n-2, 2, 0, 100\n");
        assert_eq!(text("i", 1), "7, 1, 500000002, 99, 0\n-2, 100, 0\n");
    }

    #[test]
    fn records_have_forty_bytes_and_short_ones_sixteen() {
        let words = |letter| {
            let bytes = waiting(letter, 1);
            let words = bytes.chunks(8).map(|word| i64::from_le_bytes(word.try_into().unwrap()));
            words.collect::<Vec<_>>()
        };
        for letter in ["b", "z", "l"] {
            assert_eq!(words(letter), [7, 1, 500_000_002, 99, 0, -2, 2, 0, 100, 0]);
        }
        for letter in ["y", "d", "x"] {
            assert_eq!(words(letter), [7, 99, -2, 100]);
        }
    }

    #[test]
    fn what_tells_nothing_is_left_out() {
        for text in ["", "5", "5 2 q 1 a b", "x 2 b 1 a b", "5 2 b 1 a", "70000 2 b 1 a b"] {
            assert!(Declaration::read(text, 1).is_none(), "{text}");
        }
    }
}
