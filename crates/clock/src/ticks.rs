// SPDX-License-Identifier: Apache-2.0
use crate::counter;

/// The tick counter now. Later and earlier instructions may pass it by some tens of
/// cycles: the price of an ordered read would be more than what is measured.
#[inline(always)]
pub fn ticks() -> u64 {
    if counter::is_replaced() {
        return counter::computed_ticks();
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has it, and this program may read it.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: this program may read the virtual counter.
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
        has_bit(0x8000_0007, 8, core::arch::x86_64::__cpuid)
    }
    #[cfg(target_arch = "aarch64")]
    {
        true
    }
}

/// Whether the processor has this leaf of CPUID, an extended one, and this bit of its EDX.
#[cfg(target_arch = "x86_64")]
pub fn has_bit(
    leaf: u32,
    bit: u32,
    cpuid: impl Fn(u32) -> core::arch::x86_64::CpuidResult,
) -> bool {
    cpuid(0x8000_0000).eax >= leaf && cpuid(leaf).edx & 1 << bit != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_advances() {
        let first = ticks();
        assert!((0..1_000_000).any(|_| ticks() > first));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_processor_says_whether_its_counter_is_invariant() {
        use core::arch::x86_64::CpuidResult;
        let processor = |largest, edx| {
            move |leaf| {
                let eax = if leaf == 0x8000_0000 { largest } else { 0 };
                let edx = if leaf == 0x8000_0007 { edx } else { !0 };
                CpuidResult { eax, ebx: 0, ecx: 0, edx }
            }
        };
        for (largest, edx, is) in [
            (0x8000_0008, 1 << 8, true),
            (0x8000_0008, !(1 << 8), false),
            // An old one answers a leaf that it does not have with those of another.
            (0x8000_0004, !0, false),
        ] {
            assert_eq!(has_bit(0x8000_0007, 8, processor(largest, edx)), is, "{largest:x} {edx:x}");
        }
    }
}
