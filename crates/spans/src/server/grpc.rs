// SPDX-License-Identifier: Apache-2.0
//! OTLP over gRPC: one message to the method Export of the TraceService, and one back.
//!
//! Source: grpc/grpc, `doc/PROTOCOL-HTTP2.md`.

use super::Body;
use super::body::Held;
use super::export::{Exporter, Format};
use super::refusal::Refusal;
use crate::otlp::ExportResponse;
use bytes::{BufMut, Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use prost::Message;
use std::fmt::Write;

const PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const TYPE: &str = "application/grpc";
/// Whether the message is compressed, and its length.
const PREFIX: usize = 5;

pub fn is_meant(request: &Request<Incoming>) -> bool {
    let named = request.headers().get(CONTENT_TYPE);
    named.is_some_and(|named| named.as_bytes().starts_with(TYPE.as_bytes()))
}

pub async fn answer(request: Request<Incoming>, exporter: &Exporter) -> Response<Body> {
    let (message, code, why) = match export(request, exporter).await {
        Ok(response) => (frame(&response), 0, "".into()),
        Err(refusal) => {
            exporter.count_refusal();
            (Bytes::new(), refusal.grpc_code(), refusal.message())
        }
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.into());
    if !why.is_empty() {
        trailers.insert("grpc-message", percent_encoded(&why));
    }
    let body = Full::new(message).with_trailers(async move { Some(Ok(trailers)) });
    let mut response = Response::new(body.boxed());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(TYPE));
    response
}

async fn export(
    request: Request<Incoming>,
    exporter: &Exporter,
) -> Result<ExportResponse, Refusal> {
    if request.uri().path() != PATH {
        return Err(Refusal::NoSuchPath);
    }
    let (head, body) = request.into_parts();
    let mut body = exporter.budget.read(body).await?;
    let compressed = take_prefix(&mut body)?;
    let encoding = if compressed { head.headers.get("grpc-encoding") } else { None };
    if compressed && encoding.is_none() {
        return Err(Refusal::UnknownEncoding);
    }
    exporter.export(body, encoding, Format::Protobuf).await
}

/// Removes the prefix; returns whether the message is compressed.
fn take_prefix(body: &mut Held) -> Result<bool, Refusal> {
    let malformed = |why: &str| Err(Refusal::Malformed(why.to_owned()));
    let Some((prefix, message)) = body.bytes.split_first_chunk::<PREFIX>() else {
        return malformed("no message");
    };
    let [flag, length @ ..] = *prefix;
    if u32::from_be_bytes(length) as usize != message.len() {
        return malformed("its length is not the length of its message");
    }
    if flag > 1 {
        return malformed("an unknown flag");
    }
    body.bytes.drain(..PREFIX);
    Ok(flag == 1)
}

fn frame(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(PREFIX + length);
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(length).expect("an answer is short"));
    message.encode(&mut bytes).expect("there is room");
    bytes.freeze()
}

fn percent_encoded(text: &str) -> HeaderValue {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            _ => write!(encoded, "%{byte:02X}").expect("a String grows"),
        }
    }
    HeaderValue::from_str(&encoded).expect("it is printable ASCII")
}
