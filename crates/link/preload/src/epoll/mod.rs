// SPDX-License-Identifier: Apache-2.0
//! Epoll sets: which links are in them, and what those report.

mod epoll_member;
pub mod epoll_members;
pub mod epoll_sets;
pub mod epoll_waiter;
pub mod one_shot;
mod one_shot_state;
