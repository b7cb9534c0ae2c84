// SPDX-License-Identifier: Apache-2.0
//! OTLP over HTTP: POST to /v1/traces, protobuf or JSON.

use super::Body;
use super::export::{Exporter, Format};
use super::refusal::Refusal;
use crate::otlp::Status;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use prost::Message;
use serde::Serialize;

const PATH: &str = "/v1/traces";

pub async fn answer(request: Request<Incoming>, exporter: &Exporter) -> Response<Body> {
    let format = format_of(&request);
    match export(request, format, exporter).await {
        Ok(response) => written(StatusCode::OK, format, &response),
        Err(refusal) => {
            exporter.count_refusal();
            let status =
                Status { code: refusal.grpc_code(), message: refusal.message().into_owned() };
            let mut response = written(refusal.http_status(), format, &status);
            if refusal == Refusal::Busy {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            response
        }
    }
}

async fn export(
    request: Request<Incoming>,
    format: Option<Format>,
    exporter: &Exporter,
) -> Result<impl Message + Serialize + use<>, Refusal> {
    if request.uri().path() != PATH {
        return Err(Refusal::NoSuchPath);
    }
    if request.method() != Method::POST {
        return Err(Refusal::NoSuchMethod);
    }
    let format = format.ok_or(Refusal::UnknownType)?;
    let (head, body) = request.into_parts();
    let body = exporter.budget.read(body).await?;
    exporter.export(body, head.headers.get(CONTENT_ENCODING), format).await
}

fn format_of(request: &Request<Incoming>) -> Option<Format> {
    let named = request.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    match named.split(';').next()?.trim() {
        "application/x-protobuf" => Some(Format::Protobuf),
        "application/json" => Some(Format::Json),
        _ => None,
    }
}

/// In the format of the request; JSON if it has none that is known.
fn written(
    status: StatusCode,
    format: Option<Format>,
    message: &(impl Message + Serialize),
) -> Response<Body> {
    let (named, bytes) = match format {
        Some(Format::Protobuf) => ("application/x-protobuf", message.encode_to_vec()),
        _ => ("application/json", serde_json::to_vec(message).expect("it has no maps")),
    };
    let mut response = Response::new(Full::new(Bytes::from(bytes)).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(named));
    response
}
