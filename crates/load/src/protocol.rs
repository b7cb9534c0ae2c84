// SPDX-License-Identifier: Apache-2.0
//! The protocols of targets, and their readers of replies.

use crate::http::reply::HttpReply;
use crate::http::response::Expected;
use crate::net::reply::Reply;
use crate::tcp::reply::{End, TcpReply};
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
    pub fn reply(&self) -> Box<dyn Reply> {
        match self {
            Self::Http { to_head, expected } => {
                Box::new(HttpReply::new(*to_head, expected.clone()))
            }
            Self::Tcp(end) => Box::new(TcpReply::new(end.clone())),
        }
    }
}
