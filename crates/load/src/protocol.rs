// SPDX-License-Identifier: Apache-2.0
//! The protocols of targets, and their readers of replies.

use crate::http::http_reply::HttpReply;
use crate::http::response::Expected;
use crate::net::reply_parser::ReplyParser;
use crate::tcp::tcp_reply::{End, TcpReply};
use std::sync::Arc;

/// What a target speaks, and what makes a reply of it a success.
#[derive(Debug, Clone)]
pub enum Protocol {
    Http {
        /// A response to HEAD has no body.
        to_head: bool,
        expected: Arc<Expected>,
    },
    Tcp(Arc<End>),
}

impl Protocol {
    /// The replies of one connection.
    pub fn reply(&self) -> Box<dyn ReplyParser> {
        match self {
            Self::Http { to_head, expected } => {
                Box::new(HttpReply::new(*to_head, expected.clone()))
            }
            Self::Tcp(end) => Box::new(TcpReply::new(end.clone())),
        }
    }
}
