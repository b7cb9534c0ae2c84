// SPDX-License-Identifier: Apache-2.0
//! What people and programs get to see: formats, the live view, the course of a command.

pub mod live_view;
pub mod output;
pub mod watch;
