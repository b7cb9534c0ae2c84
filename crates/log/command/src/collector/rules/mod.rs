// SPDX-License-Identifier: Apache-2.0
//! The rules file: what is done with events of which channels, processes and threads.

pub mod apply;
pub mod parse;
pub mod rules_file;
