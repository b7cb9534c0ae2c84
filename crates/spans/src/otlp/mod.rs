// SPDX-License-Identifier: Apache-2.0
//! OTLP 1.x for traces: the fields that are used, as protobuf and as JSON.
//!
//! Source: opentelemetry-proto, `trace/v1/trace.proto`, `collector/trace/v1/trace_service.proto`.

mod json;
mod message;
pub mod read;

pub use message::{ExportResponse, PartialSuccess, Span, SpanStatus, Status};
