// SPDX-License-Identifier: Apache-2.0
//! `tare-load http`: what is sent to which servers, and what they should answer.

pub mod chunked;
pub mod http_reply;
pub mod message;
pub mod response;

use crate::arguments::url::Url;
use crate::arguments::values;
use crate::arguments::{Http, Version};
use crate::net::tls::{self, Tls, Trust};
use crate::protocol::Protocol;
use crate::requests::Requests;
use crate::run::{self, Sharing};
use crate::target::{self, StreamRequest, Target};
use message::Message;
use response::Expected;
use rustls::ClientConfig;
use std::process::ExitCode;
use std::sync::Arc;
use tare_command::Failure;

pub fn run(arguments: &Http) -> Result<ExitCode, Failure> {
    let connections = connections(arguments)?;
    run::run(&arguments.options, Sharing { connections, pipeline: 1 }, || targets(arguments))
}

/// Connections of HTTP/2; without them it is HTTP/1.1.
fn connections(arguments: &Http) -> Result<Option<usize>, Failure> {
    let given = arguments.connections;
    match arguments.http {
        Version::One if given.is_some() => Err(Failure::input(
            "--connections applies to --http 2; with HTTP/1.1 each of --users has its own connection",
        )),
        Version::One => Ok(None),
        Version::Two if arguments.options.is_per_request() => {
            Err(Failure::input("--connection per-request applies to --http 1.1"))
        }
        Version::Two if given.is_some_and(|given| given < arguments.options.threads) => {
            Err(Failure::input(format_args!(
                "--threads {}: expected at most the number of --connections",
                arguments.options.threads
            )))
        }
        Version::Two => Ok(Some(given.unwrap_or(arguments.options.threads) as usize)),
    }
}

fn targets(arguments: &Http) -> Result<Arc<[Target]>, Failure> {
    let url = arguments.url.as_deref().map(Url::parse).transpose().map_err(Failure::input)?;
    let named = values::targets(url.as_ref(), &arguments.target)?;
    let tls = tls_config(arguments, named.iter().any(|(_, url)| url.tls))?;
    let body = values::read(arguments.body.as_deref(), "--body")?;
    let method = match (&arguments.method, &body) {
        (Some(method), _) => method.clone(),
        (None, Some(_)) => "POST".to_owned(),
        (None, None) => "GET".to_owned(),
    };
    let message = Message {
        method,
        headers: arguments.header.clone(),
        body,
        close: arguments.options.is_per_request(),
        for_http2: arguments.http == Version::Two,
    };
    let expected = Arc::new(Expected {
        statuses: arguments.expect_status.clone(),
        body: values::read(arguments.expect_body.as_deref(), "--expect-body")?,
    });
    let found = named.into_iter().map(|(name, url)| {
        let tls = tls.as_ref().filter(|_| url.tls);
        let tls = tls.map(|config| Tls::new(config, &url.address.host)).transpose()?;
        let (address, refused) =
            target::find(&url.address, tls.as_ref(), arguments.options.timeout)?;
        let target = Target {
            name: name.to_owned(),
            address,
            tls,
            requests: Requests::new(&message.encode(url), 1),
            protocol: Protocol::Http {
                to_head: message.method == "HEAD",
                expected: expected.clone(),
            },
            stream: if message.for_http2 {
                let (head, body) = message.for_stream(url)?;
                StreamRequest { head, body, expected: (*expected).clone() }
            } else {
                StreamRequest::default()
            },
        };
        Ok((target, refused))
    });
    target::if_any_answers(found.collect::<Result<_, Failure>>()?)
}

/// What the sessions have in common, if any of the targets has TLS.
fn tls_config(arguments: &Http, is_needed: bool) -> Result<Option<ClientConfig>, Failure> {
    if !is_needed {
        return match (&arguments.ca, arguments.insecure) {
            (None, false) => Ok(None),
            _ => Err(Failure::input("--ca and --insecure need a URL with https://")),
        };
    }
    let trust = match &arguments.ca {
        _ if arguments.insecure => Trust::Anybody,
        Some(file) => Trust::File(file),
        None => Trust::System,
    };
    let protocol = match arguments.http {
        Version::One => tls::HTTP1,
        Version::Two => tls::HTTP2,
    };
    trust.config(protocol).map(Some)
}
