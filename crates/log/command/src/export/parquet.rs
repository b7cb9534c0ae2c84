// SPDX-License-Identifier: Apache-2.0
//! Parquet: a row a span, with columns of the samples table, and a row an event or loss, which
//! are no samples.

use super::ids::Ids;
use super::{Exporter, Source};
use crate::log::{Row, What};
use crate::spans::{Happening, Open};
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use tare_log_file::Payload;

/// Columns of the samples table that are written.
pub const SAMPLES: &[&str] = &[
    "host",
    "service",
    "span",
    "trace_id",
    "span_id",
    "parent_id",
    "source",
    "start_ns",
    "duration_ns",
    "clock_error_ns",
];

/// Rows that are in memory before they are written.
const GROUP: usize = 1 << 17;

/// The order is that of the cells of a row.
const SCHEMA: &str = "message events {
    optional binary host (STRING);
    optional binary service (STRING);
    optional binary span (STRING);
    optional binary trace_id (STRING);
    optional binary span_id (STRING);
    optional binary parent_id (STRING);
    optional binary source (STRING);
    optional int64 start_ns;
    optional int64 duration_ns;
    optional int64 clock_error_ns;
    optional int64 pid;
    optional int64 tid;
    optional binary thread (STRING);
    optional binary channel (STRING);
    optional int64 payload;
    optional int64 end_payload;
    optional binary text (STRING);
    optional int64 lost;
}";
const COLUMNS: usize = 18;

/// Texts that come again and again, each in memory once.
const MOST_WORDS: usize = 1 << 16;

pub struct Parquet<'log, Out: Write + Send> {
    source: Source<'log>,
    ids: Ids,
    writer: SerializedFileWriter<Out>,
    columns: Vec<Column>,
    words: HashMap<String, ByteArray>,
}

/// Cells of a column that were not written yet: what is there, and for each row whether.
#[derive(Default)]
struct Column {
    texts: Vec<ByteArray>,
    numbers: Vec<i64>,
    levels: Vec<i16>,
}

enum Cell {
    None,
    Text(ByteArray),
    Number(i64),
}

impl Column {
    fn push(&mut self, cell: Cell) {
        self.levels.push(i16::from(!matches!(cell, Cell::None)));
        match cell {
            Cell::None => {}
            Cell::Text(text) => self.texts.push(text),
            Cell::Number(number) => self.numbers.push(number),
        }
    }

    fn write(&mut self, mut column: SerializedColumnWriter<'_>) -> Result<()> {
        let levels = Some(self.levels.as_slice());
        match column.untyped() {
            ColumnWriter::Int64ColumnWriter(column) => {
                column.write_batch(&self.numbers, levels, None)?;
            }
            ColumnWriter::ByteArrayColumnWriter(column) => {
                column.write_batch(&self.texts, levels, None)?;
            }
            _ => return Err(ParquetError::General("a column of another type".to_owned())),
        }
        *self = Self::default();
        column.close()
    }
}

impl<'log, Out: Write + Send> Parquet<'log, Out> {
    pub fn new(source: Source<'log>, out: Out) -> io::Result<Self> {
        let compression = Compression::ZSTD(ZstdLevel::default());
        let properties = WriterProperties::builder().set_compression(compression).build();
        let schema = parse_message_type(SCHEMA).map_err(io::Error::other)?;
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties));
        Ok(Self {
            source,
            ids: Ids::of(source.log),
            writer: writer.map_err(unpacked)?,
            columns: (0..COLUMNS).map(|_| Column::default()).collect(),
            words: HashMap::new(),
        })
    }

    fn word(&mut self, word: &str) -> Cell {
        if let Some(known) = self.words.get(word) {
            return Cell::Text(known.clone());
        }
        if self.words.len() == MOST_WORDS {
            self.words.clear();
        }
        let text = ByteArray::from(word);
        self.words.insert(word.to_owned(), text.clone());
        Cell::Text(text)
    }

    fn row(&mut self, row: &Row<'_>, what: [Cell; COLUMNS - 6]) -> io::Result<()> {
        let log = self.source.log;
        let host = self.word(&log.processes()[row.process].host);
        let service = self.source.program(row.process);
        let service = self.word(service);
        let [pid, tid] = [row.pid, row.tid].map(|number| Cell::Number(number.into()));
        let thread = self.word(row.thread);
        let error = log.clock_error_ns(row.process).map_or(Cell::None, Cell::Number);
        let [span, trace, id, parent, source, start, duration, rest @ ..] = what;
        let cells = [
            host, service, span, trace, id, parent, source, start, duration, error, pid, tid,
            thread,
        ];
        for (column, cell) in self.columns.iter_mut().zip(cells.into_iter().chain(rest)) {
            column.push(cell);
        }
        if self.columns[0].levels.len() < GROUP { Ok(()) } else { self.flush().map_err(unpacked) }
    }

    fn flush(&mut self) -> Result<()> {
        let mut group = self.writer.next_row_group()?;
        for cells in &mut self.columns {
            if let Some(column) = group.next_column()? {
                cells.write(column)?;
            }
        }
        group.close().map(drop)
    }

    fn span(
        &mut self,
        row: &Row<'_>,
        open: &Open,
        duration: Option<i64>,
        end: Payload<'_>,
    ) -> io::Result<()> {
        let roles = self.source.roles;
        let begin = open.value.payload();
        let cells = [
            self.word(&roles.names()[open.name]),
            Cell::Text(self.ids.trace(row.process, open.root).as_str().into()),
            Cell::Text(self.ids.span(open.id).as_str().into()),
            open.parent.map_or(Cell::None, |id| Cell::Text(self.ids.span(id).as_str().into())),
            self.word("span"),
            open.time_ns.map_or(Cell::None, Cell::Number),
            duration.map_or(Cell::None, Cell::Number),
            Cell::None,
            number(begin),
            number(end),
            text(begin),
            Cell::None,
        ];
        self.row(row, cells)
    }

    /// What is no span: within `open`, if that is known.
    fn event(&mut self, row: &Row<'_>, open: Option<&Open>) -> io::Result<()> {
        let [channel, payload, bytes, lost] = match row.what {
            What::Event { channel, payload, .. } => {
                [self.word(channel), number(payload), text(payload), Cell::None]
            }
            What::Loss { lost, .. } => {
                [Cell::None, Cell::None, Cell::None, Cell::Number(lost as i64)]
            }
        };
        let id = |id: Option<String>| id.map_or(Cell::None, |id| Cell::Text(id.as_str().into()));
        let cells = [
            Cell::None,
            id(open.map(|open| self.ids.trace(row.process, open.root))),
            Cell::None,
            id(open.map(|open| self.ids.span(open.id))),
            self.word("event"),
            row.time_ns.map_or(Cell::None, Cell::Number),
            Cell::None,
            channel,
            payload,
            Cell::None,
            bytes,
            lost,
        ];
        self.row(row, cells)
    }

    /// A span whose end is not known: a sample without a duration, which readers count.
    fn endless(&mut self, row: &Row<'_>, open: &Open) -> io::Result<()> {
        self.span(row, open, None, open.value.payload())
    }
}

impl<Out: Write + Send> Exporter for Parquet<'_, Out> {
    fn add(&mut self, row: &Row<'_>, happening: Happening<'_>) -> io::Result<()> {
        match (happening, row.what) {
            (Happening::Begin(_), _) => Ok(()),
            (Happening::End(open, duration), What::Event { payload, .. }) => {
                self.span(row, open, duration, payload)
            }
            (Happening::Cut(open) | Happening::Left(open), _) => self.endless(row, open),
            (Happening::Event(open), _) => self.event(row, open),
            _ => self.event(row, None),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        if !self.columns[0].levels.is_empty() {
            self.flush().map_err(unpacked)?;
        }
        self.writer.finish().map_err(unpacked)?;
        self.writer.inner_mut().flush()
    }
}

fn number(payload: Payload<'_>) -> Cell {
    match payload {
        Payload::Number(number) => Cell::Number(number),
        Payload::Bytes(_) => Cell::None,
    }
}

fn text(payload: Payload<'_>) -> Cell {
    match payload {
        Payload::Number(_) => Cell::None,
        Payload::Bytes(bytes) => Cell::Text(String::from_utf8_lossy(bytes).as_ref().into()),
    }
}

/// The system's own words, where an error has them.
fn unpacked(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
