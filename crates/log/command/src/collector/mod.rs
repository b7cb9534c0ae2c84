// SPDX-License-Identifier: Apache-2.0
//! `tare log run` and `tare log collect`: serves programs that log, and writes their events.

pub mod accept;
pub mod compressor;
pub mod costs;
pub mod event_counts;
pub mod event_loop;
pub mod poll_thread;
pub mod producer;
pub mod quotas;
pub mod rules;
pub mod run;
