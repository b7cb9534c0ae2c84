// SPDX-License-Identifier: Apache-2.0
//! What is measured, written and reported.

pub mod live;
pub mod procfs;
pub mod readings;
pub mod recorder;
pub mod report;
pub mod sample;
pub mod sample_queue;
pub mod summary;
pub mod tables;
