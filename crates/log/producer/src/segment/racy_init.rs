// SPDX-License-Identifier: Apache-2.0
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{AcqRel, Acquire};

/// What stands in `place`, if it serves; else what `make` makes, or what another thread has put
/// there first: all have the same.
///
/// The place is read once, for the question and for the exchange. With a second reading, a thread
/// that was held up between the two would replace what another has made meanwhile and uses.
pub fn agreed<T, Error>(
    place: &AtomicPtr<T>,
    serves: impl Fn(*mut T) -> bool,
    make: impl Fn() -> Result<*mut T, Error>,
    discard: impl Fn(*mut T),
) -> Result<*mut T, Error> {
    loop {
        let known = place.load(Acquire);
        if !known.is_null() && serves(known) {
            return Ok(known);
        }
        let fresh = make()?;
        if place.compare_exchange(known, fresh, AcqRel, Acquire).is_ok() {
            return Ok(fresh);
        }
        discard(fresh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use core::ptr;
    use core::sync::atomic::Ordering::Relaxed;

    const DEAD: u8 = 0;
    const OWN: u8 = 1;
    const OTHERS: u8 = 2;

    /// What this thread gets where another puts its own there at that moment; and how many of what
    /// it made itself it threw away.
    fn raced(first: *mut u8, at: Moment) -> (u8, usize) {
        let [mut own, mut others] = [OWN, OTHERS];
        let [own, others] = [&raw mut own, &raw mut others];
        let place = AtomicPtr::new(first);
        let discarded = Cell::new(0);
        let other_comes = |now| {
            if now == at {
                place.store(others, Relaxed);
            }
        };
        let serves = |known: *mut u8| {
            other_comes(Moment::AfterLook);
            // SAFETY: one of this function's or its caller's.
            unsafe { *known != DEAD }
        };
        let make = || {
            other_comes(Moment::WhileMaking);
            Ok::<_, ()>(own)
        };
        let discard = |fresh| {
            assert_eq!(fresh, own);
            discarded.set(discarded.get() + 1);
        };
        let got = agreed(&place, serves, make, discard).unwrap_or(ptr::null_mut());
        assert_eq!(place.load(Relaxed), got);
        // SAFETY: one of this function's.
        (unsafe { *got }, discarded.get())
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Moment {
        AfterLook,
        WhileMaking,
        Never,
    }

    #[test]
    fn a_faster_threads_is_not_replaced() {
        let mut dead = DEAD;
        assert_eq!(raced(ptr::null_mut(), Moment::Never), (OWN, 0));
        assert_eq!(raced(ptr::null_mut(), Moment::WhileMaking), (OTHERS, 1));
        assert_eq!(raced(&raw mut dead, Moment::Never), (OWN, 0));
        assert_eq!(raced(&raw mut dead, Moment::AfterLook), (OTHERS, 1));
        assert_eq!(raced(&raw mut dead, Moment::WhileMaking), (OTHERS, 1));
    }
}
