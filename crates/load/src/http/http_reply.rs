// SPDX-License-Identifier: Apache-2.0
use super::chunked::Malformed;
use super::response::{Expected, Response};
use crate::net::reply_parser::ReplyParser;
use crate::record::sample::{ErrorKind, Outcome};
use std::sync::Arc;

/// The responses of one connection, beside what is expected of them.
#[derive(Debug)]
pub struct HttpReply {
    response: Response,
    to_head: bool,
    expected: Arc<Expected>,
}

impl HttpReply {
    pub fn new(to_head: bool, expected: Arc<Expected>) -> Self {
        Self { response: Response::new(), to_head, expected }
    }
}

impl ReplyParser for HttpReply {
    fn begin(&mut self) {
        self.response = Response::new();
    }

    fn advance(&mut self, input: &[u8]) -> Result<usize, ErrorKind> {
        let taken = self.response.advance(input, self.to_head, &self.expected);
        taken.map_err(|Malformed| ErrorKind::Protocol)
    }

    fn close(&mut self) -> bool {
        self.response.close()
    }

    fn is_done(&self) -> bool {
        self.response.is_done()
    }

    fn keeps_alive(&self) -> bool {
        self.response.keeps_alive()
    }

    fn outcome(&self) -> Outcome {
        self.response.outcome(&self.expected)
    }

    fn failed(&self, error: ErrorKind) -> Outcome {
        self.response.failed(error)
    }
}
