// SPDX-License-Identifier: Apache-2.0
//! What is done with a request, whatever protocol it came by.

use super::body::{Budget, Held};
use super::refusal::Refusal;
use crate::attributes::Keys;
use crate::jaeger;
use crate::otlp::{ExportResponse, PartialSuccess, read};
use crate::output::Output;
use crate::rows::{Names, Rejected, RowBuilder};
use http::HeaderValue;
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// As JSON, a request needs several times its size.
const LARGEST_JSON: usize = 4 << 20;
const SLOWEST_DISK: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Protobuf,
    Json,
    Jaeger,
}

/// Takes spans out of requests.
pub struct Exporter {
    output: Output,
    attributes: Keys,
    pub budget: Budget,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    names: Names,
    counts: Counts,
}

/// What was received.
#[derive(Debug, Default, Clone)]
pub struct Counts {
    pub requests: u64,
    pub refused_requests: u64,
    pub spans: u64,
    pub rejected: Rejected,
}

impl Counts {
    /// Rejected spans, too.
    pub fn all_spans(&self) -> u64 {
        self.spans + self.rejected.total()
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let Self { requests, refused_requests, spans, rejected } = self;
        json!({
            "spans": spans,
            "requests": requests,
            "refused_requests": refused_requests,
            "rejected": {
                "bad_ids": rejected.bad_ids,
                "bad_times": rejected.bad_times,
                "too_many_names": rejected.too_many_names,
            },
        })
    }

    /// For people; `name` is the file.
    pub fn text(&self, name: &str) -> String {
        let mut text = format!("{} spans of {} requests in {name}\n", self.spans, self.requests);
        if self.rejected.total() > 0 {
            text += &format!("rejected spans: {}\n", self.rejected.reasons());
        }
        if self.refused_requests > 0 {
            text += &format!("refused requests: {}\n", self.refused_requests);
        }
        text
    }
}

impl Exporter {
    pub fn new(output: Output, attributes: Keys) -> Self {
        Self { output, attributes, budget: Budget::new(), state: Mutex::default() }
    }

    pub fn counts(&self) -> Counts {
        self.state().counts.clone()
    }

    pub fn count_refusal(&self) {
        self.state().counts.refused_requests += 1;
    }

    /// Unpacks and reads a request, and queues its spans for the file.
    pub async fn export(
        &self,
        body: Held,
        encoding: Option<&HeaderValue>,
        format: Format,
    ) -> Result<ExportResponse, Refusal> {
        let body = match encoding.map(HeaderValue::as_bytes) {
            None | Some(b"identity" | b"") => body,
            Some(b"gzip") => self.budget.unpack(&body)?,
            Some(_) => return Err(Refusal::UnknownEncoding),
        };
        let (rows, rejected) = self.read(&body.bytes, format)?;
        drop(body);
        let spans = rows.len() as u64;
        let put = tokio::time::timeout(SLOWEST_DISK, self.output.put(rows)).await;
        if !matches!(put, Ok(true)) {
            return Err(Refusal::Busy);
        }
        let counts = &mut self.state().counts;
        counts.requests += 1;
        counts.spans += spans;
        counts.rejected.add(&rejected);
        Ok(ExportResponse {
            partial_success: (rejected.total() > 0).then(|| PartialSuccess {
                rejected_spans: rejected.total() as i64,
                error_message: format!("spans {}", rejected.reasons()),
            }),
        })
    }

    fn read(
        &self,
        bytes: &[u8],
        format: Format,
    ) -> Result<(Vec<crate::rows::Row>, Rejected), Refusal> {
        let state = &mut *self.state();
        let mut builder = RowBuilder::new(&mut state.names, &self.attributes);
        match format {
            Format::Protobuf => read::protobuf(bytes, &mut builder).map_err(malformed)?,
            Format::Jaeger => jaeger::read(bytes, &mut builder).map_err(malformed)?,
            Format::Json if bytes.len() > LARGEST_JSON => return Err(Refusal::TooLarge),
            Format::Json => read::json(bytes, &mut builder).map_err(malformed)?,
        }
        Ok((builder.rows, builder.rejected))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn malformed(error: impl std::fmt::Display) -> Refusal {
    Refusal::Malformed(error.to_string())
}
