// SPDX-License-Identifier: Apache-2.0
//! The program that logs: what its user has set and is told, its threads, its clock and its limits.

pub mod clock;
pub mod limits;
pub mod settings;
pub mod threads;
pub mod warnings;
