// SPDX-License-Identifier: Apache-2.0
//! Where edges come from: programs in the kernel, or lists of sockets.

use crate::arguments::Arguments;
use std::os::fd::{AsRawFd, RawFd};
use tare_command::Failure;
use tare_map::{Cost, Error, Method, Options, Poller, Reading, Tracer, obstacle};

pub struct Source {
    method: Method,
    kind: Kind,
}

enum Kind {
    Kernel(Box<Tracer>),
    Lists(Box<Poller>),
}

/// Without --method, what the kernel and the rights of this process allow.
pub fn method(arguments: &Arguments) -> Method {
    let allowed = || if obstacle().is_some() { Method::Poll } else { Method::Bundle };
    arguments.method.unwrap_or_else(allowed)
}

fn is_root() -> bool {
    // SAFETY: asks for a number.
    unsafe { libc::geteuid() == 0 }
}

/// Whether something is lost unless it is read at every interval.
pub fn needs_intervals(method: Method) -> bool {
    matches!(method, Method::Aggregate | Method::Poll)
}

impl Source {
    pub fn start(arguments: &Arguments) -> Result<Self, Failure> {
        let method = method(arguments);
        if arguments.method.is_none()
            && let Some(reason) = obstacle()
        {
            let all = ", other namespaces, and names of other users' programs";
            let of_others = if is_root() { "" } else { all };
            tare_command::say(format_args!(
                "using --method poll, because {reason}. Missing are short connections, failed \
                 connects, bytes of UDP{of_others}"
            ));
        }
        let kind = if method == Method::Poll {
            Poller::start(arguments.max_edges).map(|poller| Kind::Lists(Box::new(poller)))
        } else {
            let options = Options {
                method,
                events: arguments.events,
                buffer: arguments.buffer.next_power_of_two() << 20,
                max_edges: arguments.max_edges,
                statistics: arguments.tracer_stats,
            };
            Tracer::start(&options).map(|tracer| {
                if !tracer.has_udp() {
                    tare_command::say("UDP is missing: it needs Linux 6.3 or later");
                }
                Kind::Kernel(Box::new(tracer))
            })
        };
        Ok(Self { method, kind: kind.map_err(Failure::work)? })
    }

    pub fn method(&self) -> Method {
        self.method
    }

    pub fn read(&mut self) -> Result<Reading, Error> {
        match &mut self.kind {
            Kind::Kernel(tracer) => tracer.read(),
            Kind::Lists(poller) => poller.read(),
        }
    }

    pub fn read_now(&mut self) -> Result<Reading, Error> {
        match &mut self.kind {
            Kind::Kernel(tracer) => tracer.read_now(),
            Kind::Lists(poller) => poller.read(),
        }
    }

    pub fn cost(&self) -> Cost {
        match &self.kind {
            Kind::Kernel(tracer) => tracer.cost(),
            Kind::Lists(poller) => poller.cost(),
        }
    }

    pub fn events_fd(&self) -> Option<RawFd> {
        match &self.kind {
            Kind::Kernel(tracer) => tracer.events_fd().map(|fd| fd.as_raw_fd()),
            Kind::Lists(_) => None,
        }
    }

    pub fn take_events(&mut self) {
        if let Kind::Kernel(tracer) = &mut self.kind {
            tracer.take_events();
        }
    }
}
