// SPDX-License-Identifier: Apache-2.0
//! Forks and other programs that this one starts.

use crate::lifecycle::{closing, delivery};
use crate::{kernel, state};
use tare_interpose::Starter;
use tare_link_segment::Reason;

pub struct Programs;

impl Starter for Programs {
    /// Connections that are not linked yet stay TCP: two processes may use them. Those that are,
    /// both processes can use.
    fn before_fork() {
        closing::forking();
    }

    /// What the next program inherits, it can use through the kernel alone. What it does not is
    /// closed by the kernel.
    fn before_exec() {
        delivery::end_closed();
        closing::settle_all(kernel::is_close_on_exec);
        state::forked();
        closing::leave_all(Reason::Exec, |fd| !kernel::is_close_on_exec(fd));
    }

    fn before_spawn() {
        state::forked();
        closing::leave_all(Reason::Spawn, |_| true);
    }
}
