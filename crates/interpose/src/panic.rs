// SPDX-License-Identifier: Apache-2.0
use core::arch::asm;
use tare_shm::syscall;

/// The panic handler of a library without std: ends the program. Once, under `cfg(not(test))`.
#[macro_export]
macro_rules! panic_handler {
    () => {
        #[panic_handler]
        fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
            $crate::abort()
        }
    };
}

/// Nothing panics; what cannot go on must not go on quietly.
pub fn abort() -> ! {
    let (process, thread) = (syscall::getpid() as usize, syscall::gettid() as usize);
    let arguments = [process, thread, libc::SIGABRT as usize, 0, 0, 0];
    // To this thread, which takes it before the call returns: another thread might take a signal to
    // the process later than this one reaches the end by another signal below.
    // SAFETY: a signal to this thread.
    let _ = unsafe { syscall::call(libc::SYS_tgkill, arguments) };
    loop {
        // The signal is blocked, or the program has forbidden system calls.
        // SAFETY: an instruction that the processor refuses.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            asm!("ud2");
            #[cfg(target_arch = "aarch64")]
            asm!("udf #0");
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    const HOW: &str = "TARE_TEST_ABORT";

    /// The signal that ends this test's program where it aborts in such a way.
    fn ended_by(how: &str) -> Option<i32> {
        let program = std::env::current_exe().unwrap();
        let arguments = ["--exact", "panic::tests::a_library_that_cannot_go_on_ends_the_program"];
        let status = Command::new(program).args(arguments).env(HOW, how).output().unwrap().status;
        status.signal()
    }

    #[test]
    fn a_library_that_cannot_go_on_ends_the_program() {
        match std::env::var(HOW).as_deref() {
            Ok("forbidden") => syscall::forbid(),
            Ok(_) => {}
            Err(_) => {
                // The harness's main thread could take a signal to the process, and be late.
                for _ in 0..20 {
                    assert_eq!(ended_by("allowed"), Some(libc::SIGABRT));
                }
                assert_eq!(ended_by("forbidden"), Some(libc::SIGILL));
                return;
            }
        }
        abort();
    }
}
