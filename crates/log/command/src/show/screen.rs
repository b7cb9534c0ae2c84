// SPDX-License-Identifier: Apache-2.0
//! The terminal as a page that is shown anew, and plain lines where there is none.

use std::io::{self, IsTerminal, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;
use tare_command::Signals;
use tare_command::terminal::{Output, printable};

const SIGNALS: &[i32] = &[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// What the user did while nothing was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    None,
    Other,
    /// q, Ctrl-C, or a signal.
    End,
}

pub struct Screen {
    signals: Signals,
    /// As the terminal was before; `None` where nothing was changed.
    before: Option<libc::termios>,
    is_page: bool,
}

impl Screen {
    /// A page where stdout is a terminal and `page` is wanted.
    pub fn open(page: bool) -> io::Result<Self> {
        let signals = Signals::take(SIGNALS)?;
        let is_page = page && io::stdout().is_terminal();
        let mut screen = Self { signals, before: None, is_page };
        if is_page {
            if io::stdin().is_terminal() {
                screen.before = Some(without_echo()?);
            }
            // The other page, so that what was there comes back; without a cursor.
            write!(io::stdout(), "\x1b[?1049h\x1b[?25l")?;
        }
        Ok(screen)
    }

    /// Waits for a key, no longer than `timeout`.
    pub fn wait(&self, timeout: Duration) -> io::Result<Key> {
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let keys = if self.before.is_some() { libc::STDIN_FILENO } else { -1 };
        let mut all = [entry(self.signals.as_fd().as_raw_fd()), entry(keys)];
        let timeout = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: two entries.
        unsafe { libc::poll(all.as_mut_ptr(), 2, timeout) };
        if self.signals.next().is_some() {
            return Ok(Key::End);
        }
        if all[1].revents == 0 {
            return Ok(Key::None);
        }
        let mut key = 0u8;
        // SAFETY: one byte.
        let read = unsafe { libc::read(libc::STDIN_FILENO, (&raw mut key).cast(), 1) };
        Ok(if read <= 0 || key == b'q' { Key::End } else { Key::Other })
    }

    /// Shows a text: as much of it as there is room for, in the place of the last one.
    pub fn show(&self, text: &str) -> io::Result<()> {
        if !self.is_page {
            return self.line(text);
        }
        let (columns, rows) = size();
        let mut page = String::from("\x1b[H");
        for (index, line) in text.lines().take(rows).enumerate() {
            if index > 0 {
                page += "\r\n";
            }
            page.extend(printable(line, &[]).chars().take(columns));
            page += "\x1b[K";
        }
        page += "\x1b[J";
        let mut out = io::stdout().lock();
        out.write_all(page.as_bytes())?;
        out.flush()
    }

    /// A line that stays.
    pub fn line(&self, text: &str) -> io::Result<()> {
        let mut out = Output::lock();
        writeln!(out, "{text}")?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: the kernel reads the settings, which are those that it gave.
            unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, before) };
        }
        if self.is_page {
            let _ = write!(io::stdout(), "\x1b[?25h\x1b[?1049l");
            let _ = io::stdout().flush();
        }
    }
}

/// Keys come at once, and are not printed; how it was before.
fn without_echo() -> io::Result<libc::termios> {
    let mut settings = MaybeUninit::<libc::termios>::zeroed();
    // SAFETY: the kernel fills the settings, of which zeros are valid ones.
    unsafe {
        if libc::tcgetattr(libc::STDIN_FILENO, settings.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let before = settings.assume_init();
        let mut now = before;
        now.c_lflag &= !(libc::ICANON | libc::ECHO);
        match libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, &now) {
            0 => Ok(before),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Columns and rows.
fn size() -> (usize, usize) {
    let mut size = MaybeUninit::<libc::winsize>::zeroed();
    // SAFETY: the kernel fills it, and zeros are valid.
    let size = unsafe {
        libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, size.as_mut_ptr());
        size.assume_init()
    };
    let or = |number: u16, usual| if number == 0 { usual } else { usize::from(number) };
    (or(size.ws_col, 80), or(size.ws_row, 24))
}
