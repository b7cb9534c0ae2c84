// SPDX-License-Identifier: Apache-2.0
//! Edges for people from the numbers that the kernel counts.

use crate::clock::Clock;
use crate::edges::edge::{Direction, Edge, Events, Method, Protocol, Role, Rtt};
use crate::edges::names::{Cgroups, Services};
use crate::errno;
use crate::layout::{self, EdgeCounts, EdgeKey, ProgramKey, ProgramName, TCP, UDP, errors};
use aya::Ebpf;
use aya::maps::HashMap as BpfHashMap;
use std::collections::{BTreeMap, HashMap};

/// Names that were looked up, and what the method counts.
pub struct Resolver {
    method: Method,
    events: Events,
    services: Services,
    pub cgroups: Cgroups,
    programs: HashMap<ProgramKey, String>,
}

impl Resolver {
    pub fn new(method: Method, events: Events) -> Self {
        Self {
            method,
            events,
            services: Services::read(),
            cgroups: Cgroups::new(),
            programs: HashMap::new(),
        }
    }

    pub fn edge(
        &mut self,
        kernel: &Ebpf,
        key: &EdgeKey,
        counts: &EdgeCounts,
        counted: &[(u32, u32, u64)],
        clock: &Clock,
    ) -> Edge {
        let of_kind = |kind: u32| -> BTreeMap<String, u64> {
            let mut sums = BTreeMap::new();
            for &(_, number, count) in counted.iter().filter(|error| error.0 == kind) {
                *sums.entry(errno::name(number)).or_default() += count;
            }
            sums
        };
        Edge {
            role: match key.role {
                layout::ROLE_CLIENT => Role::Client,
                layout::ROLE_SERVER => Role::Server,
                _ => Role::Other,
            },
            protocol: match key.protocol {
                TCP => Protocol::Tcp,
                UDP => Protocol::Udp,
                _ => Protocol::Any,
            },
            program: self.program_name(kernel, key.program_key()),
            pid: (counts.pid != 0).then_some(counts.pid),
            local: layout::address(key.local),
            peer: layout::address(key.peer),
            port: key.port,
            service: self.services.name(key.port, key.protocol == UDP).cloned(),
            netns: key.netns,
            cgroup: self.cgroups.path(key.cgroup),
            direction: match counts.confidence {
                bits if bits & layout::OBSERVED != 0 => Direction::Observed,
                bits if bits & layout::LISTENER != 0 => Direction::Listener,
                _ => Direction::Guessed,
            },
            found: counts.found,
            opened: counts.opened,
            closed: counts.closed,
            active: (counts.found + counts.opened).saturating_sub(counts.closed),
            failed: of_kind(errors::FAILED_CONNECT),
            broken: of_kind(errors::BROKEN),
            send_errors: of_kind(errors::FAILED_SEND),
            receive_errors: of_kind(errors::FAILED_RECEIVE),
            bytes_known: self.method != Method::Stream
                || self.events == Events::All
                || key.protocol == UDP,
            linked: Some(false),
            bytes_sent: counts.bytes_sent,
            bytes_received: counts.bytes_received,
            packets_sent: counts.packets_sent,
            packets_received: counts.packets_received,
            retransmits: counts.retransmits,
            rtt: (counts.rtt_count != 0).then_some(Rtt {
                count: counts.rtt_count,
                sum_us: counts.rtt_sum_us,
                min_us: counts.rtt_min_us,
                max_us: counts.rtt_max_us,
            }),
            first_seen_ns: clock.since_epoch(counts.first_ns),
            last_seen_ns: clock.since_epoch(counts.last_ns),
        }
    }

    fn program_name(&mut self, kernel: &Ebpf, key: ProgramKey) -> String {
        if key.program == 0 {
            return String::new();
        }
        if let Some(name) = self.programs.get(&key) {
            return name.clone();
        }
        let programs = kernel.map("programs").and_then(|map| BpfHashMap::try_from(map).ok());
        let name: Option<ProgramName> =
            programs.and_then(|programs: BpfHashMap<_, _, _>| programs.get(&key, 0).ok());
        let Some(name) = name else { return String::new() };
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let name = String::from_utf8_lossy(&name[..end]).into_owned();
        self.programs.insert(key, name.clone());
        name
    }
}
