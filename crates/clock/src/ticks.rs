// SPDX-License-Identifier: Apache-2.0

/// The tick counter now. Later and earlier instructions may pass it by some tens of
/// cycles: the price of an ordered read would be more than what is measured.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has it, and Linux lets user code read it.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: Linux lets user code read the virtual counter.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack));
        }
        ticks
    }
}

/// The tick counter when all that was read before had been read.
pub fn ordered_ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has it.
    unsafe {
        core::arch::x86_64::_mm_lfence();
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: it changes nothing.
    unsafe {
        core::arch::asm!("isb", options(nostack, preserves_flags));
    }
    ticks()
}

/// Whether the counter runs at one rate on all processors, whatever they do
/// (Intel SDM volume 3, 19.17.1: CPUID 80000007H, EDX bit 8; on aarch64 always).
pub fn is_invariant() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::__cpuid;
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
    }
    #[cfg(target_arch = "aarch64")]
    {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_advances() {
        let first = ticks();
        assert!((0..1_000_000).any(|_| ticks() > first));
    }
}
