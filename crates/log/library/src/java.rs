// SPDX-License-Identifier: Apache-2.0
//! What `java/tare-log` calls: the native methods of `tare.log.Native`. They are its slow path;
//! events of platform threads are written by Java itself, with the same writer.

mod environment;

use crate::{Options, configuration, id, tag};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;
use environment::{Array, Class, Environment, Object};
use tare_clock::ticks;
use tare_log_producer::{Author, Carrier, Payload, close, log, log_as, open, status};
use tare_log_segment::Writer;
use tare_log_segment::layout::LONGEST_NAME;
use tare_log_segment::record::LONGEST;

/// `name` has `LONGEST_NAME` bytes at most; `options` are those of C, byte by byte, or null.
#[unsafe(no_mangle)]
extern "C" fn Java_tare_log_Native_open(
    environment: Environment<'_>,
    _: Class,
    name: Array,
    options: Array,
) -> i32 {
    let (mut letters, mut bytes) = ([0; LONGEST_NAME], [0; size_of::<Options>()]);
    let length = environment.copy(name, 0, &mut letters);
    let options = (!options.is_null()).then(|| {
        environment.copy(options, 0, &mut bytes);
        // SAFETY: any bytes are options.
        unsafe { ptr::read_unaligned(bytes.as_ptr().cast::<Options>()) }
    });
    tag(open(&letters[..length], options.as_ref().map(configuration))).cast_signed()
}

#[unsafe(no_mangle)]
extern "C" fn Java_tare_log_Native_close(_: Environment<'_>, _: Class, channel: i32) {
    close(id(channel.cast_unsigned()));
}

/// `writer` is 0 or what an earlier call in this thread has returned.
#[unsafe(no_mangle)]
extern "C" fn Java_tare_log_Native_log(
    _: Environment<'_>,
    _: Class,
    writer: i64,
    channel: i32,
    payload: i64,
) -> i64 {
    log_here(writer, channel, Payload::Number(payload))
}

#[unsafe(no_mangle)]
extern "C" fn Java_tare_log_Native_logBytes(
    environment: Environment<'_>,
    _: Class,
    writer: i64,
    channel: i32,
    bytes: Array,
    from: i32,
    length: i32,
) -> i64 {
    let mut copy = [MaybeUninit::uninit(); LONGEST];
    let bytes = environment.copy_range(bytes, from, length, &mut copy);
    log_here(writer, channel, Payload::Bytes(bytes))
}

fn log_here(writer: i64, channel: i32, payload: Payload<'_>) -> i64 {
    // SAFETY: Java passes 0 or what this function has returned; writers are never unmapped.
    let writer = unsafe { writer_at(writer) };
    if let Some(writer) = writer {
        writer.resume();
    }
    log(writer, id(channel.cast_unsigned()), payload)
        .map_or(0, |writer| ptr::from_ref(writer).expose_provenance() as i64)
}

/// # Safety
/// 0, or the address of a writer.
unsafe fn writer_at(address: i64) -> Option<&'static Writer> {
    // SAFETY: null, or a writer, as the caller promises.
    unsafe { ptr::with_exposed_provenance::<Writer>(address as usize).as_ref() }
}

/// Logs an event of the virtual thread `number`, if that takes nothing but a few stores into
/// the ring of the kernel's thread that it is on, which it cannot leave meanwhile. Else 0, and
/// `logVirtual` does it. Java calls this through its address where it can, without leaving the
/// state in which collections wait for it: so it must not wait.
#[unsafe(no_mangle)]
extern "C" fn Java_tare_log_Native_tryVirtual(
    _: Environment<'_>,
    _: Class,
    channel: i32,
    payload: i64,
    number: i32,
) -> i32 {
    try_virtual(channel, payload, number)
}

extern "C" fn try_virtual(channel: i32, payload: i64, number: i32) -> i32 {
    let carrier = Carrier::this();
    let is_logged = carrier.author() == number.cast_unsigned()
        && carrier
            .writer()
            .is_some_and(|writer| writer.log(id(channel.cast_unsigned()), payload, ticks));
    is_logged.into()
}

/// The address of `try_virtual` or, for 1, of `read_ticks`.
#[unsafe(no_mangle)]
extern "C" fn Java_tare_log_Native_address(_: Environment<'_>, _: Class, what: i32) -> i64 {
    let function =
        if what == 0 { try_virtual as *const c_void } else { read_ticks as *const c_void };
    function.expose_provenance() as i64
}

#[unsafe(no_mangle)]
extern "C" fn Java_tare_log_Native_logVirtual(
    environment: Environment<'_>,
    _: Class,
    channel: i32,
    payload: i64,
    number: i32,
    name: Array,
) {
    log_virtual(environment, channel, Payload::Number(payload), number, name);
}

#[unsafe(no_mangle)]
extern "C" fn Java_tare_log_Native_logVirtualBytes(
    environment: Environment<'_>,
    _: Class,
    channel: i32,
    bytes: Array,
    from: i32,
    length: i32,
    number: i32,
    name: Array,
) {
    let mut copy = [MaybeUninit::uninit(); LONGEST];
    let bytes = environment.copy_range(bytes, from, length, &mut copy);
    log_virtual(environment, channel, Payload::Bytes(bytes), number, name);
}

fn log_virtual(
    environment: Environment<'_>,
    channel: i32,
    payload: Payload<'_>,
    number: i32,
    name: Array,
) {
    let carrier = Carrier::this();
    let number = number.cast_unsigned();
    let mut author = (carrier.author() != number).then(|| {
        let mut letters = [0; 16];
        environment.copy(name, 0, &mut letters[..15]);
        let (first, second) = letters.split_at(8);
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        Author { number, name: [word(first), word(second)] }
    });
    let writer = log_as(&mut author, carrier.writer(), id(channel.cast_unsigned()), payload);
    if author.is_none() {
        carrier.keep(writer, number);
    }
}

#[unsafe(no_mangle)]
extern "C" fn Java_tare_log_Native_ticks(_: Environment<'_>, _: Class) -> i64 {
    read_ticks()
}

extern "C" fn read_ticks() -> i64 {
    ticks().cast_signed()
}

/// One of the numbers that `tare.log.Native` names; 0 as long as the process has no segment.
#[unsafe(no_mangle)]
extern "C" fn Java_tare_log_Native_status(_: Environment<'_>, _: Class, what: i32) -> i64 {
    let Some(status) = status() else { return 0 };
    match what {
        0 => status.modes.as_ptr().expose_provenance() as i64,
        1 => status.is_on.into(),
        2 => status.is_served.into(),
        3 => status.clock.into(),
        4 => status.ring_bytes.cast_signed(),
        _ => 0,
    }
}

/// Lets the classes of `to` use `package` of `module`, as `--add-exports` does; says whether
/// it could.
#[unsafe(no_mangle)]
extern "C" fn Java_tare_log_Native_export(
    environment: Environment<'_>,
    _: Class,
    module: Object,
    package: Object,
    to: Object,
) -> u8 {
    environment
        .call(
            module,
            c"java/lang/Module",
            c"implAddExports",
            c"(Ljava/lang/String;Ljava/lang/Module;)V",
            &[package, to],
        )
        .into()
}
