// SPDX-License-Identifier: Apache-2.0
use crate::calls::{exit, forks};
use crate::lifecycle::connection_log;
use crate::state;
use crate::stream::buffers;
use tare_interpose::watch_forks;
use tare_link_segment::{Handover, LOG_VARIABLE, Statistics, VARIABLE, VERSION};
use tare_shm::found::StarterSegment;
use tare_shm::{Access, Segment};

/// Finds the statistics and begins to work; where there are none, everything is forwarded.
pub fn attach() {
    // SAFETY: constructors run before the program can change its environment.
    let variable = unsafe { tare_shm::variable(VARIABLE.as_bytes()) };
    let Some(handover) = variable.and_then(Handover::parse) else { return };
    watch_forks();
    if !buffers::can_copy() {
        return;
    }
    let Some(segment) = find(&handover) else { return };
    // SAFETY: atomics only, and the segment is writable.
    if let Some(statistics) = unsafe { segment.at::<Statistics>(0) }
        && forks::watch()
    {
        // SAFETY: as above.
        let file = unsafe { tare_shm::variable(LOG_VARIABLE.as_bytes()) };
        file.into_iter().for_each(connection_log::start);
        state::start(statistics, handover.eager);
        exit::watch();
    }
}

/// The segment of tare-link's descriptor: inherited, or found in its process.
fn find(handover: &Handover) -> Option<Segment> {
    let Handover { pid, start, statistics: fd, .. } = *handover;
    let (kind, access) = (Statistics::KIND, Access::ReadWrite);
    StarterSegment { pid, start, fd, kind, version: VERSION, access }.find([pid])
}
