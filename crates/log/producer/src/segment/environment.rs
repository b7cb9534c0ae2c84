// SPDX-License-Identifier: Apache-2.0
//! Reads the environment variables once, before the program's own code can change them.

use crate::program::settings::{self, CLOCK, RING, SOCKET, USER};
use crate::program::warnings;
use crate::segment::region::Region;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

static IS_READ: AtomicBool = AtomicBool::new(false);

/// To be called when the program starts, before it can change its environment; and by whoever
/// comes earlier, as constructors of a program do that the library is a part of.
pub extern "C" fn read_environment() {
    // Whoever starts a program with more rights than his own does not say where its events go.
    // SAFETY: asks for a number that the kernel has given the program.
    let has_more_rights = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if IS_READ.swap(true, Relaxed) || has_more_rights {
        return;
    }
    if let Some(path) = variable(SOCKET) {
        warnings::note_stderr();
        if settings::set_socket(path) {
            // A child of vfork that logs first finds that it is another process.
            let _ = Region::get_or_make();
        } else {
            warnings::SOCKET.say_to_anyone();
        }
    }
    if variable(RING).is_some_and(|text| !settings::set_ring(text)) {
        warnings::RING.say();
    }
    if variable(USER).is_some_and(|text| !settings::set_user(text)) {
        warnings::USER.say();
    }
    if variable(CLOCK).is_some_and(|text| !settings::set_clock(text)) {
        warnings::CLOCK.say();
    }
}

/// `None` where it is empty.
fn variable(name: &[u8]) -> Option<&'static [u8]> {
    // SAFETY: at the start of the program nothing else changes the environment.
    unsafe { tare_shm::variable(name) }.filter(|value| !value.is_empty())
}
