// SPDX-License-Identifier: Apache-2.0
use crate::arguments::address::Address;
use crate::http::response::Expected;
use crate::net::byte_stream::ByteStream;
use crate::net::tls::{self, Tls};
use crate::protocol::Protocol;
use crate::requests::Requests;
use bytes::Bytes;
use http::Request;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tare_command::{Failure, ResultExt};

/// One service under load: where it is and what is sent to it.
#[derive(Debug, Clone)]
pub struct Target {
    pub name: String,
    pub address: SocketAddr,
    /// Of a target that is spoken to in clear text there is none.
    pub tls: Option<Tls>,
    pub requests: Requests,
    pub protocol: Protocol,
    /// Instead of the two above, if HTTP/2 is spoken.
    pub stream: StreamRequest,
}

/// A request of HTTP/2, and the answer that it should have.
#[derive(Debug, Clone, Default)]
pub struct StreamRequest {
    pub head: Request<()>,
    pub body: Option<Bytes>,
    pub expected: Expected,
}

/// Looks the host up and takes the first of its addresses that accepts a connection, and
/// a session where there is TLS; beside the address, why none did.
pub fn find(
    address: &Address,
    tls: Option<&Tls>,
    timeout: Duration,
) -> Result<(SocketAddr, Option<Failure>), Failure> {
    let addresses = address.resolve().or_failed(format_args!("{address} was not found"))?;
    let first = addresses[0];
    let mut failure = None;
    for candidate in addresses {
        match ByteStream::probe(&candidate, tls, timeout) {
            Ok(()) => return Ok((candidate, None)),
            Err(error) => {
                let what = if error.kind() == ErrorKind::InvalidData {
                    "failed the TLS handshake"
                } else {
                    "cannot be reached"
                };
                let advice = tls::advice(&error);
                failure = Some(Failure::work(format_args!("{address} {what}: {error}{advice}")));
            }
        }
    }
    Ok((first, failure))
}

/// The targets, unless none of them can be reached. With another target there is something to
/// measure: then the failure to connect is the outcome of each request to this one.
pub fn if_any_answers(found: Vec<(Target, Option<Failure>)>) -> Result<Arc<[Target]>, Failure> {
    let (targets, refused): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let refused: Vec<_> = refused.into_iter().collect::<Option<_>>().unwrap_or_default();
    match refused.into_iter().next() {
        Some(failure) => Err(failure),
        None => Ok(targets.into()),
    }
}
