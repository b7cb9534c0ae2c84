// SPDX-License-Identifier: Apache-2.0
//! The thread that writes rows to the file.

use crate::attributes::Keys;
use crate::rows::Row;
use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tare_tables::{Cell, SAMPLES, Vacant, Writer};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// The last one only if attributes are kept.
pub const COLUMNS: [&str; 11] = [
    "host",
    "service",
    "span",
    "trace_id",
    "span_id",
    "parent_id",
    "source",
    "start_ns",
    "duration_ns",
    "ok",
    "attributes",
];
/// Rows that wait to be written.
pub const QUEUE_ROWS: usize = 500_000;
const PAUSE: Duration = Duration::from_millis(25);

/// Hands rows to the thread.
pub struct Output {
    rows: Sender<Batch>,
    room: Arc<Semaphore>,
}

struct Batch {
    rows: Vec<Row>,
    _room: OwnedSemaphorePermit,
}

/// Ends when all clones of the sender are dropped.
pub struct Written {
    thread: JoinHandle<io::Result<u64>>,
}

impl Output {
    /// The sender, the thread, and a message if writing fails.
    pub fn begin(
        file: Vacant,
        attributes: &Keys,
    ) -> io::Result<(Self, Written, oneshot::Receiver<()>)> {
        let columns = COLUMNS.len() - usize::from(attributes.are_none());
        let writer = file.begin(&SAMPLES, &COLUMNS[..columns])?;
        let (rows, queue) = channel();
        let (fails, failed) = oneshot::channel();
        let thread = std::thread::Builder::new().name("writer".to_owned()).spawn(move || {
            let written = write(writer, columns, &queue);
            if written.is_err() {
                let _ = fails.send(());
            }
            written
        })?;
        let room = Arc::new(Semaphore::new(QUEUE_ROWS));
        Ok((Self { rows, room }, Written { thread }, failed))
    }

    /// Queues rows, at most `QUEUE_ROWS`. Waits while the queue is full; false if nothing writes
    /// any more.
    pub async fn put(&self, rows: Vec<Row>) -> bool {
        let wanted = u32::try_from(rows.len()).expect("a request has fewer rows");
        let Ok(permit) = self.room.clone().acquire_many_owned(wanted).await else { return false };
        self.rows.send(Batch { rows, _room: permit }).is_ok()
    }
}

impl Written {
    /// The number of rows in the file.
    pub fn finish(self) -> io::Result<u64> {
        self.thread.join().expect("the writer does not panic")
    }
}

fn write(mut writer: Writer, columns: usize, queue: &Receiver<Batch>) -> io::Result<u64> {
    let mut ids: [String; 3] = Default::default();
    let mut rows = 0;
    loop {
        match queue.recv_timeout(PAUSE) {
            Ok(batch) => {
                for row in &batch.rows {
                    put(&mut writer, columns, row, &mut ids)?;
                }
                rows += batch.rows.len() as u64;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        writer.flush_if_due()?;
    }
    writer.finish()?;
    Ok(rows)
}

fn put(writer: &mut Writer, columns: usize, row: &Row, ids: &mut [String; 3]) -> io::Result<()> {
    let parent = row.parent_id.as_ref().map(|id| &id[..]);
    for (text, id) in ids.iter_mut().zip([Some(&row.trace_id[..]), Some(&row.span_id[..]), parent])
    {
        text.clear();
        for byte in id.unwrap_or_default() {
            write!(text, "{byte:02x}").expect("a String grows");
        }
    }
    let [trace_id, span_id, parent_id] = ids;
    let cells = [
        text(row.host.as_ref()),
        text(row.service.as_ref()),
        Cell::Text(&row.span),
        Cell::Text(trace_id),
        Cell::Text(span_id),
        if row.parent_id.is_some() { Cell::Text(parent_id) } else { Cell::Null },
        Cell::Text("span"),
        Cell::Int(row.start_ns),
        Cell::Int(row.duration_ns),
        Cell::Bool(row.ok),
        text(row.attributes.as_ref()),
    ];
    writer.row(&cells[..columns])
}

fn text(text: Option<&Arc<str>>) -> Cell<'_> {
    text.map_or(Cell::Null, |text| Cell::Text(text))
}
