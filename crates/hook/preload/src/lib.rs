// SPDX-License-Identifier: Apache-2.0
//! libtare_hook.so: searches what a program reads from and writes to its sockets for
//! keywords, counts, and tells tare-hook (docs/hook.md).
#![cfg_attr(not(test), no_std)]
#![cfg_attr(test, allow(dead_code, unused_imports, reason = "tests export nothing"))]

mod attach;
mod calls;
mod connection;
mod memory;
mod record;
mod search;
mod thread;

#[cfg(not(test))]
use calls::Calls;

#[cfg(not(test))]
tare_interpose::export! { Calls: bytes connections descriptors streams observed vfork }

#[cfg(not(test))]
tare_interpose::panic_handler!();

/// Runs when the library is loaded, after the constructors of the libraries that it does not
/// know of: their calls have been forwarded by then.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

#[cfg(not(test))]
extern "C" fn constructor() {
    resolve();
    attach::attach();
}
