// SPDX-License-Identifier: Apache-2.0
use core::ffi::CStr;
use core::fmt;

/// A path that is written on the stack.
pub struct Path {
    bytes: [u8; 48],
    length: usize,
}

impl Path {
    pub const fn new() -> Self {
        Self { bytes: [0; 48], length: 0 }
    }

    /// What was written, which has found room.
    pub fn text(&self) -> Option<&CStr> {
        CStr::from_bytes_until_nul(&self.bytes).ok()
    }
}

impl Default for Path {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Write for Path {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // The last byte stays zero.
        let end = self.length + text.len();
        let place = self.bytes[..47].get_mut(self.length..end).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::fmt::Write;

    #[test]
    fn the_longest_descriptor_of_a_process_finds_room() {
        let mut path = Path::new();
        write!(path, "/proc/{}/task/{}/fd/{}", u32::MAX, u32::MAX, i32::MAX).unwrap();
        assert_eq!(path.text(), Some(c"/proc/4294967295/task/4294967295/fd/2147483647"));
        assert!(path.write_str("xx").is_err());
    }
}
