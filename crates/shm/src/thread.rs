// SPDX-License-Identifier: Apache-2.0

/// Gives each thread a `$type`, all bytes 0 in a new thread, and defines the function that returns
/// the calling thread's. `$symbol` is the linker's name for it, hidden in the library.
///
/// The memory is in the initial-exec model, two instructions away: Rust's own thread-local
/// variables may allocate at first use, which may be in a signal handler.
#[macro_export]
macro_rules! per_thread {
    (
        $(#[$attribute:meta])*
        $visibility:vis fn $function:ident() -> *const $type:ty = $symbol:literal;
    ) => {
        core::arch::global_asm!(
            // Not .tbss: before a segment that begins with that, LLD leaves a page of the file empty.
            concat!(".section .tdata.", $symbol, ",\"awT\",%progbits"),
            ".balign {align}",
            concat!(".globl ", $symbol),
            concat!(".hidden ", $symbol),
            concat!(".type ", $symbol, ", %object"),
            concat!(".size ", $symbol, ", {size}"),
            concat!($symbol, ":"),
            ".zero {size}",
            ".previous",
            size = const size_of::<$type>(),
            align = const align_of::<$type>(),
        );

        $(#[$attribute])*
        #[inline(always)]
        $visibility fn $function() -> *const $type {
            let place: *const $type;
            #[cfg(target_arch = "x86_64")]
            // SAFETY: reads the thread pointer and a constant of the linker's.
            unsafe {
                core::arch::asm!(
                    "mov {place}, qword ptr fs:[0]",
                    concat!("add {place}, qword ptr [rip + ", $symbol, "@GOTTPOFF]"),
                    place = out(reg) place,
                    options(pure, nomem, nostack),
                );
            }
            #[cfg(target_arch = "aarch64")]
            // SAFETY: reads the thread pointer and a constant of the linker's.
            unsafe {
                core::arch::asm!(
                    "mrs {place}, tpidr_el0",
                    concat!("adrp {offset}, :gottprel:", $symbol),
                    concat!("ldr {offset}, [{offset}, :gottprel_lo12:", $symbol, "]"),
                    "add {place}, {place}, {offset}",
                    place = out(reg) place,
                    offset = out(reg) _,
                    options(pure, nomem, nostack),
                );
            }
            place
        }
    };
}

#[cfg(all(test, not(miri)))]
mod tests {
    extern crate std;
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[repr(align(64))]
    struct Number(AtomicU32);

    per_thread! {
        fn number() -> *const Number = "tare_shm_test_number";
    }

    #[test]
    fn each_thread_has_its_own_from_zero() {
        // SAFETY: the thread's own, which lives as long as the thread.
        let swap = |new| unsafe { (*number()).0.swap(new, Relaxed) };
        assert_eq!((swap(7), swap(8)), (0, 7));
        let there = std::thread::spawn(move || (number().addr(), swap(9)));
        let (address, before) = there.join().unwrap();
        assert_eq!((before, swap(0)), (0, 8));
        assert!(address != number().addr() && address.is_multiple_of(64));
    }
}
