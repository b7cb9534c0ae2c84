// SPDX-License-Identifier: Apache-2.0
//! `tare-load tcp`: what is sent to which services, and where their replies end.

pub mod tcp_reply;

use crate::arguments::Tcp;
use crate::arguments::values;
use crate::protocol::Protocol;
use crate::requests::Requests;
use crate::run::{self, Sharing};
use crate::target::{self, StreamRequest, Target};
use std::process::ExitCode;
use std::sync::Arc;
use tare_command::Failure;
use tare_load_replies::Until;
use tcp_reply::End;

pub fn run(arguments: &Tcp) -> Result<ExitCode, Failure> {
    if arguments.pipeline > 1 && arguments.options.is_per_request() {
        return Err(Failure::input("--pipeline applies to --connection keep-alive"));
    }
    let sharing = Sharing { connections: None, pipeline: arguments.pipeline as usize };
    run::run(&arguments.options, sharing, || targets(arguments))
}

fn targets(arguments: &Tcp) -> Result<Arc<[Target]>, Failure> {
    let request = request(arguments)?;
    let end = Arc::new(end(arguments)?);
    let found = values::targets(arguments.address.as_ref(), &arguments.target)?.into_iter().map(
        |(name, address)| {
            let (address, refused) = target::find(address, None, arguments.options.timeout)?;
            let target = Target {
                name: name.to_owned(),
                address,
                tls: None,
                requests: Requests::new(&request, arguments.pipeline as usize),
                protocol: Protocol::Tcp(end.clone()),
                stream: StreamRequest::default(),
            };
            Ok((target, refused))
        },
    );
    target::if_any_answers(found.collect::<Result<_, Failure>>()?)
}

fn request(arguments: &Tcp) -> Result<Vec<u8>, Failure> {
    let (option, request) = match &arguments.send {
        Some(text) => ("--send", text.0.clone()),
        None => {
            let file = values::read(arguments.send_file.as_deref(), "--send-file")?;
            ("--send-file", file.unwrap_or_default())
        }
    };
    if request.is_empty() {
        return Err(Failure::input(format_args!(
            "{option}: the request is empty; give at least one byte"
        )));
    }
    Ok(request)
}

fn end(arguments: &Tcp) -> Result<End, Failure> {
    let limit = arguments.reply_limit;
    match (&arguments.reply_until, arguments.reply_bytes) {
        (Some(text), _) => match Until::new(&text.0) {
            Some(text) => Ok(End::Until { text, limit }),
            None => Err(Failure::input(
                "--reply-until: the text is empty; give the text that ends a reply",
            )),
        },
        (None, Some(bytes)) => Ok(End::Bytes(bytes)),
        (None, None) => Ok(End::Resp { limit }),
    }
}
