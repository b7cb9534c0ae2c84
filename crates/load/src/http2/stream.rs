// SPDX-License-Identifier: Apache-2.0
//! One request of HTTP/2 and its answer.

use crate::http::response::{BodyCheck, Expected};
use crate::record::sample::{ErrorKind, Outcome};
use h2::RecvStream;
use h2::client::ResponseFuture;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

pub struct Stream {
    state: State,
    status: u16,
    bytes: u64,
    body: BodyCheck,
    /// What its connection had heard of the server when the request was sent.
    pub heard: u64,
}

enum State {
    Head(ResponseFuture),
    Body(RecvStream),
}

impl Stream {
    pub fn new(response: ResponseFuture, heard: u64) -> Self {
        let state = State::Head(response);
        Self { state, status: 0, bytes: 0, body: BodyCheck::default(), heard }
    }

    /// Takes what has come, and the outcome if that was the end.
    pub fn poll(&mut self, context: &mut Context<'_>, expected: &Expected) -> Option<Outcome> {
        loop {
            match &mut self.state {
                State::Head(response) => match Pin::new(response).poll(context) {
                    Poll::Pending => return None,
                    Poll::Ready(Err(error)) => return Some(self.failed(ErrorKind::of_h2(&error))),
                    Poll::Ready(Ok(response)) => {
                        self.status = response.status().as_u16();
                        self.state = State::Body(response.into_body());
                    }
                },
                State::Body(body) => match body.poll_data(context) {
                    Poll::Pending => return None,
                    Poll::Ready(Some(Err(error))) => {
                        return Some(self.failed(ErrorKind::of_h2(&error)));
                    }
                    Poll::Ready(Some(Ok(data))) => {
                        // A stream that has failed meanwhile says so by its next data.
                        let _ = body.flow_control().release_capacity(data.len());
                        self.bytes += data.len() as u64;
                        self.body.add(&data, expected.body.as_deref());
                    }
                    Poll::Ready(None) => match body.poll_trailers(context) {
                        Poll::Pending => return None,
                        Poll::Ready(Err(error)) => {
                            return Some(self.failed(ErrorKind::of_h2(&error)));
                        }
                        Poll::Ready(Ok(_)) => {
                            let error = expected.error(self.status, &self.body);
                            return Some(Outcome { error, ..self.failed(ErrorKind::Status) });
                        }
                    },
                },
            }
        }
    }

    /// What the answer amounts to, cut short by an error.
    pub fn failed(&self, error: ErrorKind) -> Outcome {
        Outcome { status: self.status, error: Some(error), bytes: self.bytes }
    }
}

impl ErrorKind {
    /// Of a stream or a connection of HTTP/2.
    pub fn of_h2(error: &h2::Error) -> Self {
        match error.get_io() {
            // So says h2 where the server has closed.
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Self::Closed,
            Some(error) => Self::of_use(error),
            None if !error.is_remote() => Self::Protocol,
            None if error.is_reset() => Self::Reset,
            None => Self::Closed,
        }
    }
}
