// SPDX-License-Identifier: Apache-2.0
//! The functions of libc that the library has to see: it makes system calls, reads the tick
//! counter and maps memory only as long as the program may.

use core::ffi::c_long;
use tare_interpose::{Observer, Restriction};
use tare_log_producer::{
    forbid_system_calls, limit_address_space, lock_memory, read_environment, replace_counter,
};

struct Restrictions;

impl Observer for Restrictions {
    fn observe(number: c_long, first: usize, second: usize, third: usize) {
        match Restriction::of(number, first, second, third) {
            Some(Restriction::SystemCalls) => forbid_system_calls(),
            Some(Restriction::TickCounter) => replace_counter(),
            Some(Restriction::All) => {
                replace_counter();
                forbid_system_calls();
            }
            Some(Restriction::Memory(Some(limit))) => limit_address_space(limit),
            Some(Restriction::Memory(None)) => lock_memory(),
            None => {}
        }
    }
}

tare_interpose::export! { Restrictions: observed }

pub extern "C" fn constructor() {
    resolve();
    read_environment();
}
