// SPDX-License-Identifier: Apache-2.0
use crate::connection::Connection;
use crate::record::mapped;
use crate::thread::Thread;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use tare_hook_segment::{Control, Counters, Shared, Statistics, Symbol, Unseen, View};
use tare_interpose::{Descriptors, Kind};

static CONTROL: AtomicPtr<Control> = AtomicPtr::new(core::ptr::null_mut());
static SHARED: AtomicPtr<Shared> = AtomicPtr::new(core::ptr::null_mut());

pub static DESCRIPTORS: Descriptors<Connection> = Descriptors::new();

/// The two segments, once they were found.
#[derive(Clone, Copy)]
pub struct Hook {
    pub control: &'static Control,
    pub shared: &'static Shared,
}

impl Hook {
    pub fn start(control: &'static Control, shared: &'static Shared) {
        CONTROL.store(core::ptr::from_ref(control).cast_mut(), Relaxed);
        SHARED.store(core::ptr::from_ref(shared).cast_mut(), Release);
        shared.attached.fetch_add(1, Relaxed);
    }

    /// `None` before the constructor, and where there is no tare-hook.
    #[inline(always)]
    pub fn get() -> Option<Self> {
        // SAFETY: null, or set by `start` from a reference that lives for ever; the first is
        // set before the second.
        unsafe {
            let shared = SHARED.load(Acquire).as_ref()?;
            Some(Self { control: CONTROL.load(Relaxed).as_ref()?, shared })
        }
    }

    /// The newest generation of the rules.
    #[inline]
    pub fn rules(self) -> Option<View<'static>> {
        self.control.view_of(mapped::mask())
    }

    /// The statistics that this thread counts in.
    #[inline]
    pub fn statistics(self) -> &'static Statistics {
        let (_, tid) = Thread::get().identity();
        &self.shared.statistics[mapped::shard(tid)]
    }

    #[inline]
    pub fn counters(self, symbol: Symbol) -> &'static Counters {
        &self.statistics().counters[symbol as usize]
    }

    /// Counts a call on a socket that took `own` ticks of ours.
    #[inline]
    pub fn spent(self, statistics: &Statistics, symbol: Symbol, own: u64) {
        // Says that there are values: their number is the histogram's to tell, and a counter
        // that many threads add to takes 6 ns.
        let any = &statistics.counters[symbol as usize].calls_socket;
        if any.load(Relaxed) == 0 {
            any.store(1, Relaxed);
        }
        tare_hist::record(&statistics.own_time[symbol as usize], own);
    }

    /// Counts a call that moves no bytes.
    pub fn count(self, symbol: Symbol, kind: Kind) {
        let counters = self.counters(symbol);
        let calls = if kind.is_socket() { &counters.calls_socket } else { &counters.calls_other };
        calls.fetch_add(1, Relaxed);
    }

    pub fn count_unseen(self, what: Unseen) {
        self.statistics().unseen[what as usize].fetch_add(1, Relaxed);
    }
}
