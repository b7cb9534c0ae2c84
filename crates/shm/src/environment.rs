// SPDX-License-Identifier: Apache-2.0
use core::ffi::{CStr, c_char};

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// The value of environment variable `name`.
///
/// # Safety
/// The program cannot change its environment meanwhile, or later while the value is used: for
/// constructors, which run before it can.
pub unsafe fn variable(name: &[u8]) -> Option<&'static [u8]> {
    // SAFETY: nothing changes the environment, as the caller promises; libc has set the pointer up
    // (null where there is none), and null ends the list.
    unsafe {
        let mut place = environ;
        while !place.is_null() && !(*place).is_null() {
            let text = CStr::from_ptr(*place).to_bytes();
            if let Some([b'=', value @ ..]) = text.strip_prefix(name) {
                return Some(value);
            }
            place = place.add(1);
        }
    }
    None
}

#[cfg(all(test, not(miri)))]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn variable_is_found_by_its_whole_name() {
        let path = std::env::var("PATH").unwrap();
        // SAFETY: no test of this crate changes the environment.
        unsafe {
            assert_eq!(variable(b"PATH"), Some(path.as_bytes()));
            assert_eq!(variable(b"PAT"), None);
            assert_eq!(variable(b"TARE_SHM_HAS_NO_SUCH_VARIABLE"), None);
        }
    }
}
