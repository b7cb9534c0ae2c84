// SPDX-License-Identifier: Apache-2.0
//! What happens when the program, or the library that this is part of, is loaded and ends.

use tare_log_producer::{finish, read_environment};

/// Before the program can change its environment.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = read_environment;

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = finish;
