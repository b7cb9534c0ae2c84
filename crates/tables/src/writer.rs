// SPDX-License-Identifier: Apache-2.0
use crate::cells::{Cell, Cells};
use crate::schema::Table;
use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::writer::StreamEncoder;
use arrow_schema::SchemaRef;
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

const BATCH_ROWS: usize = 1 << 16;
/// For whoever looks every 25 ms, so that no batch is older than 100.
const BATCH_TIME: Duration = Duration::from_millis(75);

/// Writes some columns of one table as an Arrow IPC stream.
///
/// What was flushed can be read whatever happens to the process later: a batch is
/// one write, and a batch that did not fit on the disk is taken back.
pub struct Writer {
    output: Output,
    encoder: StreamEncoder,
    schema: SchemaRef,
    columns: Vec<Cells>,
    rows: usize,
    rows_written: u64,
    flushed: Instant,
}

impl Writer {
    fn new(file: File, table: &Table, columns: &[&str]) -> io::Result<Self> {
        let schema = Arc::new(table.schema(columns));
        let mut writer = Self {
            output: Output { file, length: 0 },
            encoder: StreamEncoder::try_new(&schema).map_err(io::Error::other)?,
            schema,
            columns: table
                .select(columns)
                .iter()
                .map(|column| Cells::new(column.kind, BATCH_ROWS))
                .collect(),
            rows: 0,
            rows_written: 0,
            flushed: Instant::now(),
        };
        // A batch without rows, which carries the schema.
        writer.write_batch()?;
        Ok(writer)
    }

    /// Appends one row; a cell for each column, in the order of the columns.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        if cells.len() != self.columns.len() {
            return Err(misfit(format_args!(
                "{} cells for {} columns",
                cells.len(),
                self.columns.len()
            )));
        }
        for (index, (column, cell)) in self.columns.iter_mut().zip(cells).enumerate() {
            if !column.push(*cell) {
                let name = self.schema.field(index).name();
                return Err(misfit(format_args!("{cell:?} for the column {name}")));
            }
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    /// Flushes if the last batch is 75 ms old: to be called every 25 ms or more often.
    pub fn flush_if_due(&mut self) -> io::Result<()> {
        if self.flushed.elapsed() < BATCH_TIME {
            return Ok(());
        }
        self.flush()
    }

    /// Writes the rows appended since the last batch as one batch.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            self.flushed = Instant::now();
            return Ok(());
        }
        self.write_batch()
    }

    /// Flushes and writes the end of the stream.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        let end = self.encoder.finish().map_err(io::Error::other)?;
        self.output.put(&end)
    }

    /// Rows that are safely in the file.
    pub fn rows_written(&self) -> u64 {
        self.rows_written
    }

    fn write_batch(&mut self) -> io::Result<()> {
        self.flushed = Instant::now();
        let arrays = self.columns.iter_mut().map(Cells::finish).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), arrays).map_err(io::Error::other)?;
        let rows = std::mem::take(&mut self.rows);
        self.output.put(&self.encoder.encode(&batch).map_err(io::Error::other)?)?;
        self.rows_written += rows as u64;
        Ok(())
    }
}

/// A file that may become a stream, and has what stood in it until then.
#[derive(Debug)]
pub struct Vacant {
    file: File,
}

impl Vacant {
    /// A file that another writer still has is left alone: two streams in one file are none.
    /// Devices are taken as they are.
    pub fn of(file: File) -> io::Result<Self> {
        if file.metadata()?.is_file()
            && let Err(TryLockError::WouldBlock) = file.try_lock()
        {
            return Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "another program is writing this file",
            ));
        }
        Ok(Self { file })
    }

    /// Empties the file and writes the schema of the columns named.
    pub fn begin(self, table: &Table, columns: &[&str]) -> io::Result<Writer> {
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        Writer::new(self.file, table, columns)
    }
}

struct Output {
    file: File,
    length: u64,
}

impl Output {
    fn put(&mut self, message: &[Buffer]) -> io::Result<()> {
        let bytes: Vec<u8> = message.iter().flat_map(|part| part.as_slice()).copied().collect();
        if let Err(error) = self.file.write_all(&bytes) {
            // A torn batch cannot be taken back from a pipe, whose reader sees the
            // end of the stream there anyway.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}

fn misfit(what: std::fmt::Arguments<'_>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{COSTS, SAMPLES};
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int32Type, Int64Type};
    use arrow_array::{Array, StringArray};
    use arrow_ipc::reader::StreamReader;
    use std::path::Path;

    fn create(path: &Path, table: &Table, columns: &[&str]) -> io::Result<Writer> {
        Vacant::of(File::options().write(true).create(true).truncate(false).open(path)?)?
            .begin(table, columns)
    }

    fn path(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("tare-tables-{}-{name}", std::process::id()))
    }

    fn batches(path: &Path) -> Vec<RecordBatch> {
        let reader = StreamReader::try_new(File::open(path).unwrap(), None).unwrap();
        reader.map_while(Result::ok).collect()
    }

    fn words(batch: &RecordBatch, name: &str) -> Vec<Option<String>> {
        let column = batch.column_by_name(name).unwrap().as_dictionary::<Int32Type>();
        let column = column.downcast_dict::<StringArray>().unwrap();
        column.into_iter().map(|word| word.map(str::to_owned)).collect()
    }

    #[test]
    fn a_file_has_one_writer_at_a_time() {
        let path = path("twice");
        let mut first = create(&path, &SAMPLES, &["start_ns"]).unwrap();
        first.row(&[Cell::Int(1)]).unwrap();
        first.flush().unwrap();
        let second = create(&path, &SAMPLES, &["start_ns"]);
        assert_eq!(second.err().map(|error| error.kind()), Some(io::ErrorKind::ResourceBusy));
        first.finish().unwrap();
        assert_eq!(batches(&path).iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
        assert!(create(&path, &SAMPLES, &["start_ns"]).is_ok());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn rows_come_back_with_categories_that_appeared_late() {
        let path = path("late");
        let mut writer = create(&path, &SAMPLES, &["condition", "start_ns", "ok"]).unwrap();
        writer.row(&[Cell::Text("plain"), Cell::Int(1), Cell::Bool(true)]).unwrap();
        writer.flush().unwrap();
        writer.row(&[Cell::Text("hook"), Cell::Int(2), Cell::Null]).unwrap();
        writer.row(&[Cell::Text("plain"), Cell::Null, Cell::Bool(false)]).unwrap();
        writer.flush().unwrap();
        assert_eq!(writer.rows_written(), 3);
        writer.finish().unwrap();
        let read = batches(&path);
        let conditions: Vec<_> = read.iter().flat_map(|batch| words(batch, "condition")).collect();
        assert_eq!(conditions, ["plain", "hook", "plain"].map(|word| Some(word.to_owned())));
        let last = read.last().unwrap();
        assert_eq!(last.column(1).as_primitive::<Int64Type>().value(0), 2);
        assert!(last.column(1).is_null(1) && last.column(2).is_null(0));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_stream_without_its_end_is_read_up_to_the_last_batch() {
        let path = path("torn");
        let mut writer = create(&path, &SAMPLES, &["start_ns"]).unwrap();
        for start in 0..2 {
            writer.row(&[Cell::Int(start)]).unwrap();
            writer.flush().unwrap();
        }
        drop(writer);
        let length = std::fs::metadata(&path).unwrap().len();
        let rows = |path: &Path| batches(path).iter().map(RecordBatch::num_rows).sum::<usize>();
        assert_eq!(rows(&path), 2);
        File::options().write(true).open(&path).unwrap().set_len(length - 1).unwrap();
        assert_eq!(rows(&path), 1);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_cell_of_another_type_is_refused_and_named() {
        let path = path("misfit");
        let mut writer = create(&path, &COSTS, &["layer", "block"]).unwrap();
        let too_large = Cell::Int(i64::from(i32::MAX) + 1);
        let error = writer.row(&[Cell::Text("hook"), too_large]).unwrap_err();
        assert!(error.to_string().contains("block"), "{error}");
        assert!(writer.row(&[Cell::Text("hook")]).is_err());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let full = Path::new("/dev/full");
        let error = create(full, &SAMPLES, &["seq"]).err().expect("nothing fits");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
