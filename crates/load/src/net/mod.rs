// SPDX-License-Identifier: Apache-2.0
//! Sockets, with and without TLS, and the connections that carry requests and replies.

pub mod byte_stream;
pub mod connection;
pub mod connections;
pub mod epoll;
pub mod reply_parser;
pub mod session_tickets;
pub mod socket;
pub mod tls;
pub mod transport;
