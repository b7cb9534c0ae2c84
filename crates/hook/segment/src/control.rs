// SPDX-License-Identifier: Apache-2.0
use crate::Rules;
use crate::rules::{STATE, TABLE};
use core::ffi::CStr;
use core::mem::offset_of;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, fence};
use tare_shm::header;

/// What tare-hook alone writes, as it stands in the memfd: a file of `size_of::<Control>()`
/// bytes. Generation g of the rules stands in slot g modulo 2, so that a search under the
/// last but one is undisturbed while the next is written; the one before is overwritten,
/// which a search finds out when it ends ([`View::holds`]).
#[repr(C)]
pub struct Control {
    _header: [AtomicU64; 8],
    /// The newest whole generation, from 1; 0 before the first.
    generation: AtomicU64,
    _reserved: [AtomicU64; 503],
    slots: [Rules; 2],
}

/// One generation of rules, as long as it [holds](View::holds).
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub rules: &'a Rules,
    pub generation: u64,
    /// Which bits of an entry are a place in what is mapped of the table.
    pub(crate) mask: u32,
}

impl Control {
    pub const NAME: &CStr = c"tare-hook-control";
    pub const KIND: u32 = header::kind::HOOK;

    /// The newest generation; `None` before the first. If it is being overwritten already,
    /// there is a newer one, and this does not hold.
    #[inline]
    pub fn view(&self) -> Option<View<'_>> {
        self.view_of(STATE)
    }

    /// As `view`, where tables are mapped up to the place `mask`, which is from [`Control::mask`].
    #[inline]
    pub fn view_of(&self, mask: u32) -> Option<View<'_>> {
        let generation = self.generation.load(Acquire);
        let rules = &self.slots[(generation & 1) as usize];
        (generation != 0).then_some(View { rules, generation, mask: mask & STATE })
    }

    /// The mask of tables that have the larger of both generations, and at least `entries` entries.
    pub fn mask(&self, entries: usize) -> u32 {
        let used = self.slots.iter().map(|slot| slot.entries.load(Relaxed) as usize);
        let most = used.fold(entries, usize::max).clamp(1, TABLE);
        most.next_power_of_two() as u32 - 1
    }

    /// The addresses of what is not needed where tables are mapped up to the place `mask`: the rest
    /// of both tables, and all texts.
    pub fn unneeded(&self, mask: u32) -> [Range<usize>; 2] {
        self.slots.each_ref().map(|slot| {
            let end = (&raw const *slot).addr() + size_of::<Rules>();
            (&raw const slot.table).addr() + 4 * (mask as usize + 1)..end
        })
    }
}

impl View<'_> {
    /// Whether everything read from the rules so far was of this generation.
    #[inline]
    pub fn holds(&self) -> bool {
        // The reads before come before the read of the generation (a sequence lock).
        fence(Acquire);
        self.rules.generation.load(Relaxed) == self.generation
    }

    /// Whether the table is mapped as far as these rules need it.
    #[inline]
    pub fn is_mapped(&self) -> bool {
        self.rules.entries.load(Relaxed) <= u64::from(self.mask) + 1
    }
}

#[cfg(any(test, feature = "build"))]
mod publish {
    use super::Control;
    use crate::Rules;
    use crate::build::Generation;
    use crate::rules::KEYWORDS;
    use core::sync::atomic::Ordering::{Relaxed, Release};
    use core::sync::atomic::fence;
    use std::string::String;
    use std::vec::Vec;

    impl Control {
        /// The generations that stand here, the newest first, with the texts of their
        /// keywords: for a tare-hook that takes over from one that died.
        pub fn texts(&self) -> Vec<(u64, Vec<String>)> {
            let newest = self.generation.load(Relaxed);
            let both = [newest, newest.wrapping_sub(1)];
            let whole = both.into_iter().filter_map(|generation| {
                let slot = &self.slots[(generation & 1) as usize];
                let is_whole = generation != 0 && slot.generation.load(Relaxed) == generation;
                is_whole.then(|| (generation, slot.texts()))
            });
            whole.collect()
        }

        /// Makes `rules` the newest generation and says its number. For tare-hook alone, by
        /// one thread, at most every few milliseconds: a search that meets two of them
        /// begins anew.
        pub fn publish(&self, rules: &Generation) -> u64 {
            let generation = self.generation.load(Relaxed) + 1;
            let slot = &self.slots[(generation & 1) as usize];
            slot.generation.store(0, Relaxed);
            // Readers that see any of the words below see the 0, too.
            fence(Release);
            rules.write(slot);
            slot.generation.store(generation, Release);
            self.generation.store(generation, Release);
            generation
        }
    }

    impl Rules {
        /// What is no text, and what lies beyond the room for texts, is left out.
        fn texts(&self) -> Vec<String> {
            let keywords = (self.keywords.load(Relaxed) as usize).min(KEYWORDS);
            let mut place = 0;
            let text = |number: usize| {
                let length = self.attributes[number].load(Relaxed) as u16;
                let bytes = self.texts.iter().skip(place).take(length.into());
                place += usize::from(length);
                let bytes: Vec<u8> = bytes.map(|byte| byte.load(Relaxed)).collect();
                String::from_utf8_lossy(&bytes).into_owned()
            };
            (0..keywords).map(text).collect()
        }
    }
}

/// What the version is made from.
pub(crate) const LAYOUT: &[usize] = &[
    offset_of!(Control, generation),
    offset_of!(Control, _reserved),
    offset_of!(Control, slots),
    size_of::<Control>(),
];

const _: () = {
    assert!(offset_of!(Control, generation) == 64);
    assert!(offset_of!(Control, slots) == 4096);
    assert!(size_of::<Control>() < 48 << 20);
};
