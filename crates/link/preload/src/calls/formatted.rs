// SPDX-License-Identifier: Apache-2.0
//! `dprintf` and its like: libc writes what they format in any number of unseen calls, of which only
//! the sum is returned, and not even that where one has failed.

use crate::calls::dispatch::leave;
use core::ffi::c_int;
use tare_interpose::Formatter;
use tare_link_segment::Reason;

pub struct Formatted;

impl Formatter for Formatted {
    fn before_format(fd: c_int) {
        leave(fd, Reason::Stdio);
    }
}
