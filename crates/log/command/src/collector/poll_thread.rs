// SPDX-License-Identifier: Apache-2.0
//! Waits for descriptors in a thread of its own, and rings a bell as programs do when their
//! rings fill: so that one wait is for both.

use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use tare_shm::Bell;

/// Where the kernel cannot wait for bells, or for so many.
const WITHOUT_BELLS: Duration = Duration::from_millis(2);

pub struct PollThread(Arc<Shared>);

#[derive(Default)]
struct Shared {
    bell: Bell,
    has_come: Mutex<bool>,
    go_on: Condvar,
}

impl Shared {
    fn has_come(&self) -> MutexGuard<'_, bool> {
        self.has_come.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PollThread {
    /// Waits for these as long as the program runs; -1 is none.
    pub fn start(descriptors: [RawFd; 3]) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = shared.clone();
        thread::Builder::new().name("poll".to_owned()).spawn(move || watch(descriptors, &own))?;
        Ok(Self(shared))
    }

    /// Sleeps until a descriptor is readable or one of the bells is rung, at most for so long;
    /// not at all where `is_late`, asked when nobody can ring any more without being heard, says
    /// that a bell was to be rung before. What was readable before must have been read. Says
    /// whether one of the bells was rung.
    pub fn sleep(&self, bells: &[&Bell], most: Duration, is_late: impl FnOnce() -> bool) -> bool {
        *self.0.has_come() = false;
        self.0.go_on.notify_one();
        let mut all = vec![&self.0.bell];
        all.extend(bells);
        all.iter().for_each(|bell| bell.arm());
        let has_come = *self.0.has_come();
        if !has_come && !is_late() && !Bell::wait(&all, most) {
            thread::sleep(most.min(WITHOUT_BELLS));
        }
        let is_rung = bells.iter().any(|bell| !bell.is_armed());
        all.iter().for_each(|bell| bell.disarm());
        is_rung
    }
}

fn watch(descriptors: [RawFd; 3], shared: &Shared) {
    let mut all = descriptors.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    loop {
        // SAFETY: three entries.
        unsafe { libc::poll(all.as_mut_ptr(), 3, -1) };
        *shared.has_come() = true;
        shared.bell.wake();
        let come = shared.go_on.wait_while(shared.has_come(), |has_come| *has_come);
        drop(come);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn whatever_comes_ends_the_sleep() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let poll_thread = PollThread::start([far.as_raw_fd(), far.as_raw_fd(), -1]).unwrap();
        let begin = Instant::now();
        for number in 0..100u8 {
            // Before it sleeps, or while it does.
            if number % 2 == 0 {
                near.write_all(&[number]).unwrap();
                poll_thread.sleep(&[], LONG, || false);
            } else {
                let mut near = near.try_clone().unwrap();
                let writing = thread::spawn(move || near.write_all(&[number]).unwrap());
                poll_thread.sleep(&[], LONG, || false);
                writing.join().unwrap();
            }
            far.read_exact(&mut [0]).unwrap();
        }
        assert!(begin.elapsed() < LONG);
        poll_thread.sleep(&[], LONG, || true);
        let bell = Bell::default();
        thread::scope(|scope| {
            scope.spawn(|| {
                while !bell.is_armed() {
                    thread::yield_now();
                }
                bell.wake();
            });
            poll_thread.sleep(&[&bell], LONG, || false);
        });
        assert!(begin.elapsed() < LONG);
        poll_thread.sleep(&[], Duration::from_millis(1), || false);
    }
}
