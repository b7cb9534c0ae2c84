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

/// Whether something is lost unless it is read at every interval.
pub fn needs_intervals(method: Method) -> bool {
    matches!(method, Method::Aggregate | Method::Poll)
}

fn say_polling(reason: &dyn std::fmt::Display) {
    tare_command::say(format_args!("using --method poll, because {reason}"));
}

/// Whether the kernel refuses what it was asked for also without statistics.
fn refuses_programs(options: Options) -> bool {
    !options.statistics || Tracer::start(&Options { statistics: false, ..options }).is_err()
}

impl Source {
    pub fn start(arguments: &Arguments) -> Result<Self, Failure> {
        let method = method(arguments);
        if method == Method::Poll {
            if arguments.method.is_none()
                && let Some(reason) = obstacle()
            {
                say_polling(&reason);
            }
            return Self::poll(arguments);
        }
        let options = Options {
            method,
            events: arguments.events,
            buffer: arguments.buffer.next_power_of_two() << 20,
            max_edges: arguments.max_edges,
            statistics: arguments.tracer_stats,
        };
        match Tracer::start(&options) {
            Ok(tracer) => {
                if !tracer.has_udp() {
                    tare_command::say("UDP is missing: it needs Linux 6.3 or later");
                }
                Ok(Self { method, kind: Kind::Kernel(Box::new(tracer)) })
            }
            Err(reason) if arguments.method.is_none() && refuses_programs(options) => {
                say_polling(&reason);
                Self::poll(arguments)
            }
            Err(reason) => Err(Failure::work(reason)),
        }
    }

    fn poll(arguments: &Arguments) -> Result<Self, Failure> {
        let poller = Poller::start(arguments.max_edges).map_err(Failure::work)?;
        Ok(Self { method: Method::Poll, kind: Kind::Lists(Box::new(poller)) })
    }

    pub fn method(&self) -> Method {
        self.method
    }

    /// To be called about once a second.
    pub fn evict_idle_edges(&mut self) -> Result<(), Error> {
        match &mut self.kind {
            Kind::Kernel(tracer) => tracer.evict_idle_edges(),
            Kind::Lists(_) => Ok(()),
        }
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
