// SPDX-License-Identifier: Apache-2.0
use crate::{counter, is_invariant, ticks};
use core::mem::MaybeUninit;
use tare_shm::syscall::are_forbidden;

/// What the times of events are read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Source {
    /// The tick counter, unfenced.
    #[default]
    Tsc = 0,
    /// The tick counter, when all that stands before has been done (RDTSCP; ISB on aarch64).
    Tscp = 1,
    /// CLOCK_MONOTONIC_RAW, whose ticks are nanoseconds; computed by libc from a reliable counter.
    Monotonic = 2,
    /// The same in the place of a tick counter that is not to be relied on.
    Fallback = 3,
}

impl Source {
    pub const ALL: &[(&str, Self)] = &[
        ("tsc", Self::Tsc),
        ("tscp", Self::Tscp),
        ("monotonic", Self::Monotonic),
        ("fallback", Self::Fallback),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, source)| *source == self).map_or("", |(name, _)| name)
    }

    /// That with this name; `None` for another.
    pub fn named(name: &[u8]) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, source)| *source)
    }

    /// That with this number; the tick counter for one that no source has.
    pub fn numbered(number: u32) -> Self {
        let all = Self::ALL.iter().map(|(_, source)| *source);
        all.into_iter().find(|source| *source as u32 == number).unwrap_or_default()
    }

    /// Whether its ticks are those of the tick counter; else they are nanoseconds.
    pub fn counts_ticks(self) -> bool {
        matches!(self, Self::Tsc | Self::Tscp)
    }

    /// This, or what has to stand in for it where the processor does not have it or the kernel
    /// does not trust it. `listed` is the kernel's list of its clock sources, if it can be read.
    pub fn or_fallback(self, listed: Option<&[u8]>) -> Self {
        let is_reliable = || is_invariant() && listed.is_none_or(is_trusted);
        match self {
            Self::Tsc | Self::Monotonic if !is_reliable() => Self::Fallback,
            Self::Tscp if !is_reliable() || !has_tscp() => Self::Fallback,
            _ => self,
        }
    }

    pub fn now(self) -> u64 {
        match self {
            Self::Tsc => ticks(),
            Self::Tscp if counter::is_replaced() => ticks(),
            Self::Tscp => tscp(),
            Self::Monotonic if !counter::is_replaced() => monotonic(),
            // Without a reliable counter libc's function may make a system call.
            Self::Fallback if !counter::is_replaced() && !are_forbidden() => monotonic(),
            Self::Monotonic | Self::Fallback => counter::monotonic(),
        }
    }
}

fn tscp() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: chosen only where the processor has it; it writes the processor's number.
    unsafe {
        core::arch::x86_64::__rdtscp(&mut 0)
    }
    #[cfg(target_arch = "aarch64")]
    {
        crate::ordered_ticks()
    }
}

/// CPUID 80000001H, EDX bit 27.
fn has_tscp() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        crate::ticks::has_bit(0x8000_0001, 27, core::arch::x86_64::__cpuid)
    }
    #[cfg(target_arch = "aarch64")]
    {
        true
    }
}

/// Whether the kernel still has the tick counter among its clock sources: it takes away what it
/// has found to be unstable.
fn is_trusted(listed: &[u8]) -> bool {
    let name: &[u8] = if cfg!(target_arch = "aarch64") { b"arch_sys_counter" } else { b"tsc" };
    listed.split(u8::is_ascii_whitespace).any(|word| word == name)
}

/// By libc, which asks the kernel's memory: a system call would take five times as long.
fn monotonic() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: `time` has room for the result; a zeroed one is valid if the call fails, which it
    // cannot for this clock.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, time.as_mut_ptr());
        time.assume_init()
    };
    (time.tv_sec * 1_000_000_000 + time.tv_nsec) as u64
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    #[test]
    fn sources_have_names_and_numbers() {
        for (name, source) in Source::ALL {
            assert_eq!(source.name(), *name);
            assert_eq!(Source::named(name.as_bytes()), Some(*source));
            assert_eq!(Source::numbered(*source as u32), *source);
        }
        assert_eq!(Source::named(b"tsc "), None);
        assert_eq!(Source::numbered(99), Source::Tsc);
    }

    #[test]
    fn the_kernel_takes_an_unstable_counter_off_its_list() {
        let name = if cfg!(target_arch = "aarch64") { "arch_sys_counter" } else { "tsc" };
        for (list, is) in [
            (std::format!("{name} \n"), true),
            (std::format!("kvm-clock {name} acpi_pm \n"), true),
            ("kvm-clock acpi_pm \n".into(), false),
            ("tsc-early hpet acpi_pm \n".into(), false),
            (std::string::String::new(), false),
        ] {
            assert_eq!(is_trusted(list.as_bytes()), is, "{list}");
        }
    }

    #[test]
    fn without_the_kernels_trust_there_is_a_fallback() {
        let none = Some(&b"hpet acpi_pm\n"[..]);
        assert_eq!(Source::Tsc.or_fallback(none), Source::Fallback);
        assert_eq!(Source::Tscp.or_fallback(none), Source::Fallback);
        assert_eq!(Source::Monotonic.or_fallback(none), Source::Fallback);
        if is_invariant() {
            assert_eq!(Source::Monotonic.or_fallback(None), Source::Monotonic);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads the tick counter")]
    fn all_sources_advance_and_nanoseconds_are_the_kernels() {
        for (name, source) in Source::ALL {
            let first = source.now();
            sleep(Duration::from_millis(1));
            assert!(source.now() > first, "{name}");
        }
        let (begin, first) = (Instant::now(), Source::Monotonic.now());
        sleep(Duration::from_millis(20));
        let (passed, told) = (begin.elapsed().as_nanos() as u64, Source::Monotonic.now() - first);
        // RAW is not slewed, by 500 ppm at most.
        assert!(told.abs_diff(passed) < 1_000_000, "{told} {passed}");
    }
}
