// SPDX-License-Identifier: Apache-2.0
//! `tare log run` and `tare log collect`: serves programs that log, and writes their events.

pub mod accept;
pub mod collect;
pub mod costs;
pub mod porter;
pub mod press;
pub mod producer;
pub mod quotas;
pub mod rules;
pub mod run;
pub mod totals;
