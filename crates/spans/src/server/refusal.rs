// SPDX-License-Identifier: Apache-2.0
use http::StatusCode;
use std::borrow::Cow;

/// Why a request is refused as a whole.
#[derive(Debug, PartialEq)]
pub enum Refusal {
    /// It cannot be read.
    Malformed(String),
    TooLarge,
    /// The sender shall try again later.
    Busy,
    Slow,
    NoSuchPath,
    NoSuchMethod,
    UnknownType,
    UnknownEncoding,
}

impl Refusal {
    pub fn message(&self) -> Cow<'static, str> {
        match self {
            Self::Malformed(why) => format!("the request cannot be read: {why}").into(),
            Self::TooLarge => {
                "the request is larger than 16 MiB (4 MiB as JSON); send smaller batches".into()
            }
            Self::Busy => "too many spans at once; send them again later".into(),
            Self::Slow => "the request did not arrive within 10 s".into(),
            Self::NoSuchPath => {
                "only traces are received; switch off the export of metrics and logs".into()
            }
            Self::NoSuchMethod => "expected POST".into(),
            Self::UnknownType => "expected application/x-protobuf or application/json".into(),
            Self::UnknownEncoding => "expected gzip or no compression".into(),
        }
    }

    /// The status over HTTP, as the protocol's specification maps it.
    pub fn http_status(&self) -> StatusCode {
        match self {
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::NoSuchMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::UnknownType | Self::UnknownEncoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }

    /// The status over gRPC (`google.rpc.Code`).
    pub fn grpc_code(&self) -> i32 {
        match self {
            Self::Malformed(_) => 3,
            Self::Slow => 4,
            Self::TooLarge => 8,
            Self::NoSuchPath | Self::NoSuchMethod | Self::UnknownType | Self::UnknownEncoding => 12,
            Self::Busy => 14,
        }
    }
}
