// SPDX-License-Identifier: Apache-2.0
//! The events of a channel among which the median is looked for. They are this process's alone:
//! what is not complete when it ends is no median.

use crate::program::threads::hold;
use crate::segment::median_window::Window;
use crate::segment::racy_init::agreed;
use crate::segment::region::Region;
use core::slice;
use core::sync::atomic::Ordering::Release;
use tare_log_segment::ChannelId;
use tare_shm::{Errno, memory};

/// Of so many events at most.
const MOST: usize = 1 << 16;

/// Time and payload.
type Event = (u64, i64);

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Waits,
    /// Of the last `n` events, this is the median.
    Complete(Event),
    /// There is no memory, or a signal handler has interrupted an event that it would wait for.
    Lost,
}

/// Adds an event of thread `tid`.
pub fn add(region: &Region, channel: ChannelId, n: u32, event: Event, tid: u32) -> Step {
    let n = (n as usize).clamp(1, MOST);
    let Some(window) = window(region, channel, n) else { return Step::Lost };
    // SAFETY: mapped with its events, and never unmapped.
    let holder = unsafe { &(*window).holder };
    if !hold(holder, tid) {
        return Step::Lost;
    }
    // SAFETY: whoever holds it is alone with the rest, until the store below.
    let step = unsafe {
        let capacity = (*window).capacity as usize;
        let events = slice::from_raw_parts_mut(window.add(1).cast::<Event>(), capacity);
        put(events, &mut (*window).filled, n, event)
    };
    holder.store(0, Release);
    step
}

fn put(events: &mut [Event], filled: &mut u64, n: usize, event: Event) -> Step {
    let place = (*filled as usize).min(n - 1).min(events.len() - 1);
    events[place] = event;
    *filled = place as u64 + 1;
    if place + 1 < n {
        return Step::Waits;
    }
    *filled = 0;
    let (_, middle, _) = events[..=place].select_nth_unstable(n / 2);
    Step::Complete(*middle)
}

/// That of the channel, with room for `n` events.
fn window(region: &Region, channel: ChannelId, n: usize) -> Option<*mut Window> {
    let place = region.medians.get(usize::from(channel))?;
    // However often another number is asked for, few windows stay behind.
    let n = n.next_power_of_two();
    let length = size_of::<Window>() + n * size_of::<Event>();
    // The smaller one stays mapped: another thread may be at it.
    // SAFETY: mapped for ever, and the capacity is never changed.
    let fits = |window: *mut Window| unsafe { (*window).capacity } as usize >= n;
    let make = || {
        let window: *mut Window = memory::map_private(length)?.cast();
        // SAFETY: just mapped, for us alone, and aligned to a page.
        unsafe { (*window).capacity = n as u32 };
        Ok::<_, Errno>(window)
    };
    // SAFETY: nobody else ever had it.
    agreed(place, fits, make, |window| unsafe { memory::unmap(window.cast(), length) }).ok()
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;

    #[test]
    fn the_event_in_the_middle_by_time_is_the_median() {
        let mut events = vec![(0, 0); 5];
        let mut filled = 0;
        let mut add = |n, time| put(&mut events, &mut filled, n, (time, -(time as i64)));
        for time in [5, 1, 4, 2] {
            assert_eq!(add(5, time), Step::Waits);
        }
        assert_eq!(add(5, 3), Step::Complete((3, -3)));
        assert_eq!(add(2, 9), Step::Waits);
        assert_eq!(add(2, 8), Step::Complete((9, -9)), "the later of the two in the middle");
        assert_eq!(add(1, 7), Step::Complete((7, -7)));
        for time in [1, 2, 3] {
            assert_eq!(add(5, time), Step::Waits);
        }
        assert_eq!(add(2, 4), Step::Complete((4, -4)), "a rule has asked for fewer meanwhile");
    }

    #[test]
    fn numbers_that_change_leave_few_windows_behind() {
        let region = Region::get_or_make().unwrap();
        let windows = (1..=1000).map(|n| window(region, 1, n).unwrap());
        assert_eq!(windows.collect::<std::collections::BTreeSet<_>>().len(), 11);
    }
}
