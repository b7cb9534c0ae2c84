// SPDX-License-Identifier: Apache-2.0
//! libtare_log: what `include/tare_log.h` declares.
#![cfg_attr(not(test), no_std)]

mod java;
#[cfg(not(test))]
mod restrictions;

use core::ffi::{CStr, c_char, c_void};
use core::slice;
#[cfg(not(test))]
use tare_log_producer::finish;
use tare_log_producer::{Payload, close, log, open};
use tare_log_segment::{ChannelId, Codec, Configuration, Handler, Policy, Writer};

/// Runs when the library is loaded, before the program can change its environment.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = restrictions::constructor;

/// Runs when the program exits.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = finish;

/// In a channel as C has it: the record's tag, so that the fast path has only to add the payload.
const SHORT: u32 = 1;
const SHIFT: u32 = 2;

const fn tag(id: ChannelId) -> u32 {
    (id as u32) << SHIFT | SHORT
}

const fn id(channel: u32) -> ChannelId {
    (channel >> SHIFT) as ChannelId
}

/// What a program asks for: `tare_log_options` of the header.
#[repr(C)]
pub struct Options {
    handler: u8,
    policy: u8,
    codec: u8,
    reserved: u8,
    parameters: [u32; 2],
}

/// # Safety
/// `name` is a string, and `options` null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tare_log_open_with(name: *const c_char, options: *const Options) -> u32 {
    if name.is_null() {
        return tag(0);
    }
    // SAFETY: a string, and null or options, as the caller promises.
    let (name, options) = unsafe { (CStr::from_ptr(name), options.as_ref()) };
    tag(open(name.to_bytes(), options.map(configuration)))
}

/// What is 0 or unknown is the default.
fn configuration(options: &Options) -> Configuration {
    fn numbered<T: Copy + Default>(all: &[(&str, T)], number: u8, of: fn(T) -> u8) -> T {
        all.iter().map(|(_, value)| *value).find(|value| of(*value) == number).unwrap_or_default()
    }
    let [a, b] = options.parameters;
    Configuration {
        handler: numbered(Handler::ALL, options.handler, |handler| handler as u8),
        policy: numbered(Policy::ALL, options.policy, |policy| policy as u8),
        codec: Codec::numbered(options.codec.into()),
        a,
        b,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn tare_log_close(channel: u32) {
    close(id(channel));
}

/// # Safety
/// `writer` is null or what an earlier call in this thread has returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tare_log_slow(
    writer: *const Writer,
    channel: u32,
    payload: i64,
) -> *const Writer {
    // SAFETY: null or a writer, as the caller promises; writers are never unmapped.
    let writer = unsafe { writer.as_ref() };
    log(writer, id(channel), Payload::Number(payload)).map_or(core::ptr::null(), |writer| writer)
}

/// # Safety
/// `writer` is null or what an earlier call in this thread has returned; `bytes` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tare_log_slow_bytes(
    writer: *const Writer,
    channel: u32,
    bytes: *const c_void,
    length: usize,
) -> *const Writer {
    // SAFETY: null or a writer, and so many bytes, as the caller promises.
    let (writer, bytes) = unsafe {
        let bytes = if bytes.is_null() { &[] } else { slice::from_raw_parts(bytes.cast(), length) };
        (writer.as_ref(), bytes)
    };
    log(writer, id(channel), Payload::Bytes(bytes)).map_or(core::ptr::null(), |writer| writer)
}

#[cfg(not(test))]
tare_interpose::panic_handler!();
