// SPDX-License-Identifier: Apache-2.0
//! Parquet: a row a span, with columns of the samples table, and a row an event or loss, which
//! are no samples.

use super::trace_ids::TraceIds;
use super::{Exporter, Source};
use crate::reader::log::{Row, What};
use crate::reader::spans::{Open, SpanEvent};
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

/// Rows that are in memory before they are written, and bytes of their texts.
const GROUP: usize = 1 << 17;
const GROUP_BYTES: usize = 1 << 25;

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
    optional binary end_text (STRING);
    optional binary text_bytes;
    optional binary end_text_bytes;
    optional int64 lost;
}";
const COLUMNS: usize = 21;

/// Texts that come again and again, each in memory once.
const MOST_WORDS: usize = 1 << 16;

pub struct Parquet<'log, Out: Write + Send> {
    source: Source<'log>,
    ids: TraceIds,
    writer: SerializedFileWriter<Out>,
    columns: Vec<Column>,
    /// Of payloads in them.
    bytes: usize,
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
            ids: TraceIds::of(source.log),
            writer: writer.map_err(unpacked)?,
            columns: (0..COLUMNS).map(|_| Column::default()).collect(),
            bytes: 0,
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

    /// `what` is one of this row: span to duration, channel, payload of it and of its end, and
    /// what was lost.
    fn row(
        &mut self,
        row: &Row<'_>,
        what: [Cell; 8],
        (begin, end): (Option<Payload<'_>>, Option<Payload<'_>>),
        lost: Cell,
    ) -> io::Result<()> {
        let log = self.source.log;
        let host = self.word(&log.processes()[row.process].host);
        let service = self.source.program(row.process);
        let service = self.word(service);
        let [pid, tid] = [row.pid, row.tid].map(|number| Cell::Number(number.into()));
        let thread = self.word(row.thread);
        let error = log.clock_error_ns(row.process).map_or(Cell::None, Cell::Number);
        let [span, trace, id, parent, source, start, duration, channel] = what;
        let cells: [Cell; COLUMNS] = [
            host,
            service,
            span,
            trace,
            id,
            parent,
            source,
            start,
            duration,
            error,
            pid,
            tid,
            thread,
            channel,
            number(begin),
            number(end),
            text(begin),
            text(end),
            bytes(begin),
            bytes(end),
            lost,
        ];
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.push(cell);
        }
        for payload in [begin, end].into_iter().flatten() {
            self.bytes += if let Payload::Bytes(bytes) = payload { bytes.len() } else { 0 };
        }
        let is_full = self.columns[0].levels.len() == GROUP || self.bytes >= GROUP_BYTES;
        if is_full { self.flush().map_err(unpacked) } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.bytes = 0;
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
        end: Option<Payload<'_>>,
    ) -> io::Result<()> {
        let roles = self.source.roles;
        let cells = [
            self.word(&roles.names()[open.name]),
            Cell::Text(self.ids.trace(open.root).as_str().into()),
            Cell::Text(self.ids.span(open.id).as_str().into()),
            open.parent.map_or(Cell::None, |id| Cell::Text(self.ids.span(id).as_str().into())),
            self.word("span"),
            open.time_ns.map_or(Cell::None, Cell::Number),
            duration.map_or(Cell::None, Cell::Number),
            Cell::None,
        ];
        self.row(row, cells, (Some(open.value.payload()), end), Cell::None)
    }

    /// What is no span: within `open`, if that is known.
    fn event(&mut self, row: &Row<'_>, open: Option<&Open>) -> io::Result<()> {
        let (channel, payload, lost) = match row.what {
            What::Event { channel, payload, .. } => (self.word(channel), Some(payload), Cell::None),
            What::Loss { lost, .. } => (Cell::None, None, Cell::Number(lost as i64)),
            What::Gap { .. } => return Ok(()),
        };
        let id = |id: Option<String>| id.map_or(Cell::None, |id| Cell::Text(id.as_str().into()));
        let cells = [
            Cell::None,
            id(open.map(|open| self.ids.trace(open.root))),
            Cell::None,
            id(open.map(|open| self.ids.span(open.id))),
            self.word("event"),
            row.time_ns.map_or(Cell::None, Cell::Number),
            Cell::None,
            channel,
        ];
        self.row(row, cells, (payload, None), lost)
    }
}

impl<Out: Write + Send> Exporter for Parquet<'_, Out> {
    fn add(&mut self, row: &Row<'_>, span_event: SpanEvent<'_>) -> io::Result<()> {
        match (span_event, row.what) {
            (SpanEvent::Begin(_), _) => Ok(()),
            (SpanEvent::End(open, duration), What::Event { payload, .. }) => {
                let duration = duration.map(|duration| duration.round() as i64);
                self.span(row, open, duration, Some(payload))
            }
            // A sample without a duration, which readers count.
            (SpanEvent::Cut(open) | SpanEvent::Left(open), _) => self.span(row, open, None, None),
            (SpanEvent::Event(open), _) => self.event(row, open),
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

fn number(payload: Option<Payload<'_>>) -> Cell {
    match payload {
        Some(Payload::Number(number)) => Cell::Number(number),
        _ => Cell::None,
    }
}

fn text(payload: Option<Payload<'_>>) -> Cell {
    match payload {
        Some(Payload::Bytes(bytes)) => Cell::Text(String::from_utf8_lossy(bytes).as_ref().into()),
        _ => Cell::None,
    }
}

/// Those that no text can give back.
fn bytes(payload: Option<Payload<'_>>) -> Cell {
    match payload {
        Some(Payload::Bytes(bytes)) if str::from_utf8(bytes).is_err() => {
            Cell::Text(bytes.to_vec().into())
        }
        _ => Cell::None,
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
