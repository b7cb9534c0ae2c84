// SPDX-License-Identifier: Apache-2.0
//! Loads the programs, attaches them, finds what is there already, and reads edges.

use crate::direction::confirm;
use crate::edge::{
    Completeness, Cost, Direction, Edge, Events, Method, Protocol, Reading, Role, Rtt, Runs,
};
use crate::kernel::{self, Iterator};
use crate::layout::{self, EdgeCounts, EdgeKey, ErrorKey, LOSSES, ProgramKey, ProgramName, errors};
use crate::names::{Cgroups, Services};
use crate::outside::{Stream, Totals};
use crate::{Error, errno};
use aya::maps::{Array, HashMap as BpfHashMap, Map, PerCpuArray, RingBuf};
use aya::programs::{BtfTracePoint, CgroupAttachMode, CgroupSockAddr, Iter};
use aya::sys::{Stats, enable_stats};
use aya::{Btf, Ebpf, EbpfLoader};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/map.bpf.o"));

/// Reading the counters of open connections takes at most this part of a core.
const SHARE_OF_A_CORE: u32 = 200;

/// Flows of one interval that there is at least room for.
const FLOWS: u32 = 262_144;

/// Size of the ring buffer where no events are sent.
const UNUSED_BYTES: u32 = 64 << 10;

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// How to trace.
#[derive(Clone, Debug)]
pub struct Options {
    /// Not [`Method::Poll`], which [`crate::Poller`] has.
    pub method: Method,
    /// Only for [`Method::Stream`].
    pub events: Events,
    /// Bytes for events on their way to [`Method::Stream`]: a power of two.
    pub buffer: u32,
    /// Edges that there is room for; the rest is folded into one edge `other`.
    pub max_edges: u32,
    /// Count run time and number of runs of the BPF programs: all of the machine, while it lasts.
    pub statistics: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            method: Method::Bundle,
            events: Events::Setup,
            buffer: 16 << 20,
            max_edges: 32_768,
            statistics: false,
        }
    }
}

/// BPF programs that are attached, until it is dropped.
pub struct Tracer {
    method: Method,
    events: Events,
    kernel: Ebpf,
    /// What was counted outside of the kernel.
    totals: Totals,
    stream: Option<Stream>,
    uses_second: bool,
    drain: Iterator,
    /// When open connections may be read again.
    next_drain: Instant,
    services: Services,
    cgroups: Cgroups,
    names: HashMap<ProgramKey, String>,
    /// The kernel counts while it is open.
    _statistics: Option<OwnedFd>,
}

impl Tracer {
    /// Needs root (or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN), and a kernel with BTF (6.3 or later).
    pub fn start(options: &Options) -> Result<Self, Error> {
        if let Some(reason) = missing_rights() {
            return Err(Error(reason.to_owned()));
        }
        let is_aggregate = options.method == Method::Aggregate;
        let is_stream = options.method == Method::Stream;
        let btf = Btf::from_sys_fs().map_err(|error| failed("/sys/kernel/btf/vmlinux", &error))?;
        let statistics = options
            .statistics
            .then(|| enable_stats(Stats::RunTime))
            .transpose()
            .map_err(|error| failed("statistics of BPF programs", &error))?;
        let streaming: u32 = match options.events {
            _ if !is_stream => 0,
            Events::Setup => 1,
            Events::All => 2,
        };
        let flows = options.max_edges.saturating_add(1).max(FLOWS);
        let mut kernel = EbpfLoader::new()
            .btf(Some(&btf))
            .override_global("per_flow", &u8::from(is_aggregate), true)
            .override_global("streaming", &streaming, true)
            .map_max_entries(
                "edges",
                if is_aggregate { flows } else { options.max_edges.saturating_add(1) },
            )
            .map_max_entries("second_edges", if is_aggregate { flows } else { 1 })
            .map_max_entries("events", if is_stream { options.buffer } else { UNUSED_BYTES })
            .load(OBJECT)
            .map_err(|error| failed("BPF maps were not created", &error))?;
        for name in ["edges", "second_edges"] {
            add_other(&mut kernel, name)?;
        }
        let stream = is_stream
            .then(|| {
                let map = kernel.take_map("events");
                let map = map.ok_or_else(|| Error::new("events", "not in the object"))?;
                let ring = RingBuf::try_from(map).map_err(|error| failed("events", &error))?;
                Ok(Stream::new(ring))
            })
            .transpose()?;
        let drain = {
            load_iterator(&mut kernel, &btf, "drain", "bpf_sk_storage_map")?;
            let connections = map_fd(&kernel, "connections")?;
            let program = program_fd(&kernel, "drain")?;
            Iterator::new(program, Some(connections))
                .map_err(|error| Error::new("the iterator of connections", error))?
        };
        let mut tracer = Self {
            method: options.method,
            events: options.events,
            totals: Totals::new(options.max_edges),
            stream,
            uses_second: false,
            drain,
            next_drain: Instant::now(),
            services: Services::read(),
            cgroups: Cgroups::new(),
            names: HashMap::new(),
            _statistics: statistics,
            kernel,
        };
        tracer.attach(&btf)?;
        for name in ["find_listeners", "find_connections"] {
            tracer.find(&btf, name)?;
        }
        Ok(tracer)
    }

    /// Readable when [`Tracer::take_events`] should be called; none if the method sends no events.
    pub fn events_fd(&self) -> Option<BorrowedFd<'_>> {
        self.stream.as_ref().map(Stream::fd)
    }

    /// Counts the events that have arrived.
    pub fn take_events(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.take(&mut self.totals);
        }
    }

    fn attach(&mut self, btf: &Btf) -> Result<(), Error> {
        for (name, event) in [
            ("tcp_state", "inet_sock_set_state"),
            ("udp_sent", "sock_send_length"),
            ("udp_received", "sock_recv_length"),
        ] {
            let program: &mut BtfTracePoint = self
                .kernel
                .program_mut(name)
                .and_then(|program| program.try_into().ok())
                .ok_or_else(|| Error::new(name, "not in the object"))?;
            program
                .load(event, btf)
                .and_then(|()| program.attach())
                .map_err(|error| failed(event, &error))?;
        }
        self.attach_to_cgroups()
    }

    /// The peers of UDP sockets that are not connected.
    fn attach_to_cgroups(&mut self) -> Result<(), Error> {
        let Some(root) = self.cgroups.root() else { return Ok(()) };
        // A link is always one of several; the mode is only for programs without a link.
        let root = File::open(root).map_err(|error| Error::new(root.display(), error))?;
        for name in ["send_to_ipv4", "send_to_ipv6", "receive_from_ipv4", "receive_from_ipv6"] {
            let program: &mut CgroupSockAddr = self
                .kernel
                .program_mut(name)
                .and_then(|program| program.try_into().ok())
                .ok_or_else(|| Error::new(name, "not in the object"))?;
            program
                .load()
                .and_then(|()| program.attach(&root, CgroupAttachMode::Single))
                .map_err(|error| failed(name, &error))?;
        }
        Ok(())
    }

    /// Runs an iterator over the open files of all processes once.
    fn find(&mut self, btf: &Btf, name: &str) -> Result<(), Error> {
        load_iterator(&mut self.kernel, btf, name, "task_file")?;
        Iterator::new(program_fd(&self.kernel, name)?, None)
            .and_then(|iterator| iterator.run())
            .map_err(|error| Error::new(name, error))
    }

    /// All edges since the start. Bytes of connections that are open are read at most so often that
    /// it takes 0.5 % of a core; [`Tracer::read_now`] always reads them.
    pub fn read(&mut self) -> Result<Reading, Error> {
        if Instant::now() >= self.next_drain {
            return self.read_now();
        }
        self.collect()
    }

    /// All edges since the start, with everything that was sent until now.
    pub fn read_now(&mut self) -> Result<Reading, Error> {
        if self.method == Method::Stream {
            return self.collect();
        }
        let begin = Instant::now();
        self.drain.run().map_err(|error| Error::new("open connections were not read", error))?;
        self.next_drain = begin + begin.elapsed() * SHARE_OF_A_CORE;
        self.collect()
    }

    /// Adds the flows since the last call to the totals: the kernel counts in the other map
    /// meanwhile.
    fn take_flows(&mut self) -> Result<(), Error> {
        let names = ["edges", "second_edges"];
        let full = names[usize::from(self.uses_second)];
        self.uses_second = !self.uses_second;
        let switch = self.kernel.map_mut("uses_second").and_then(|map| Array::try_from(map).ok());
        let mut switch: Array<_, u32> =
            switch.ok_or_else(|| Error::new("uses_second", "not in the object"))?;
        switch
            .set(0, u32::from(self.uses_second), 0)
            .map_err(|error| failed("uses_second", &error))?;
        kernel::wait_for_programs().map_err(|error| Error::new("membarrier", error))?;
        let empty = (EdgeKey::OTHER, EdgeCounts::EMPTY);
        let flows = kernel::take_elements(map_fd(&self.kernel, full)?, empty)
            .map_err(|error| Error::new("the map of flows", error))?;
        add_other(&mut self.kernel, full)?;
        for (key, counts) in flows {
            if !counts.is_empty() || counts.last_ns != 0 {
                self.totals.add(&EdgeKey { client_port: 0, ..key }, &counts);
            }
        }
        Ok(())
    }

    fn collect(&mut self) -> Result<Reading, Error> {
        let edges = match self.method {
            Method::Bundle | Method::Poll => {
                let empty = (EdgeKey::OTHER, EdgeCounts::EMPTY);
                kernel::elements(map_fd(&self.kernel, "edges")?, empty)
                    .map_err(|error| Error::new("the map of edges", error))?
            }
            Method::Aggregate => {
                self.take_flows()?;
                self.totals.edges()
            }
            Method::Stream => {
                self.take_events();
                self.totals.edges()
            }
        };
        let mut errors = HashMap::<EdgeKey, Vec<(u32, u32, u64)>>::new();
        let empty = ErrorKey { edge: EdgeKey::OTHER, kind: 0, number: 0 };
        let counted = kernel::elements(map_fd(&self.kernel, "errors")?, (empty, 0_u64))
            .map_err(|error| Error::new("the map of errors", error))?;
        for (key, count) in counted.into_iter().chain(self.totals.errors()) {
            errors.entry(key.edge).or_default().push((key.kind, key.number, count));
        }
        let clock = Clock::now();
        let mut found = Vec::with_capacity(edges.len());
        for (key, counts) in edges {
            let errors = errors.remove(&key).unwrap_or_default();
            if counts.is_empty() && errors.is_empty() {
                continue;
            }
            found.push(self.edge(&key, &counts, &errors, &clock));
        }
        confirm(&mut found);
        sort(&mut found);
        Ok(Reading { edges: found, completeness: self.completeness()? })
    }

    fn edge(
        &mut self,
        key: &EdgeKey,
        counts: &EdgeCounts,
        counted: &[(u32, u32, u64)],
        clock: &Clock,
    ) -> Edge {
        let of_kind = |kind: u32| -> BTreeMap<String, u64> {
            let of_kind = counted.iter().filter(|error| error.0 == kind);
            of_kind.map(|&(_, number, count)| (errno::name(number), count)).collect()
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
            program: self.program_name(key.program_key()),
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

    fn program_name(&mut self, key: ProgramKey) -> String {
        if key.inode == 0 {
            return String::new();
        }
        if let Some(name) = self.names.get(&key) {
            return name.clone();
        }
        let programs = self.kernel.map("programs").and_then(|map| BpfHashMap::try_from(map).ok());
        let name: Option<ProgramName> =
            programs.and_then(|programs: BpfHashMap<_, _, _>| programs.get(&key, 0).ok());
        let Some(name) = name else { return String::new() };
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let name = String::from_utf8_lossy(&name[..end]).into_owned();
        self.names.insert(key, name.clone());
        name
    }

    /// What tracing cost; run times only with [`Options::statistics`].
    pub fn cost(&self) -> Cost {
        let runs = self.kernel.programs().filter_map(|(name, program)| {
            let runs = kernel::program_runs(program.fd().ok()?.as_fd()).ok()?;
            Some((name.to_owned(), Runs { runs: runs.count, nanoseconds: runs.nanoseconds }))
        });
        Cost { cpu_seconds: process_seconds(), programs: runs.collect() }
    }

    fn completeness(&self) -> Result<Completeness, Error> {
        let counters = self.kernel.map("losses").and_then(|map| PerCpuArray::try_from(map).ok());
        let counters: PerCpuArray<_, u64> =
            counters.ok_or_else(|| Error::new("losses", "not in the object"))?;
        let mut losses = [0_u64; LOSSES];
        for (number, sum) in losses.iter_mut().enumerate() {
            let number = u32::try_from(number).expect("there are few");
            let values = counters.get(&number, 0).map_err(|error| failed("losses", &error))?;
            *sum = values.iter().sum();
        }
        let mut missed_events = 0;
        for name in ["tcp_state", "udp_sent", "udp_received"] {
            let runs = kernel::program_runs(program_fd(&self.kernel, name)?);
            missed_events += runs.map_err(|error| Error::new(name, error))?.missed;
        }
        let [mut folded, lost_updates, untracked_sockets, lost_events, lost_errors] = losses;
        folded += self.totals.folded;
        Ok(Completeness {
            folded,
            lost_updates,
            untracked_sockets,
            lost_events,
            lost_errors,
            missed_events,
        })
    }
}

/// Room for what does not fit into a map of edges.
fn add_other(kernel: &mut Ebpf, name: &str) -> Result<(), Error> {
    let map = kernel.map_mut(name).ok_or_else(|| Error::new(name, "not in the object"))?;
    let edges = BpfHashMap::<_, EdgeKey, EdgeCounts>::try_from(map);
    let mut edges = edges.map_err(|error| failed(name, &error))?;
    let inserted = edges.insert(EdgeKey::OTHER, EdgeCounts::EMPTY, 0);
    inserted.map_err(|error| failed(name, &error))
}

fn map_fd<'kernel>(kernel: &'kernel Ebpf, name: &str) -> Result<BorrowedFd<'kernel>, Error> {
    match kernel.map(name) {
        Some(Map::HashMap(map) | Map::SkStorage(map)) => Ok(map.fd().as_fd()),
        _ => Err(Error::new(name, "not in the object")),
    }
}

fn load_iterator(kernel: &mut Ebpf, btf: &Btf, name: &str, kind: &str) -> Result<(), Error> {
    let program: &mut Iter = kernel
        .program_mut(name)
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| Error::new(name, "not in the object"))?;
    program.load(kind, btf).map_err(|error| failed(name, &error))
}

fn program_fd<'kernel>(kernel: &'kernel Ebpf, name: &str) -> Result<BorrowedFd<'kernel>, Error> {
    kernel
        .program(name)
        .and_then(|program| program.fd().ok())
        .map(|program| program.as_fd())
        .ok_or_else(|| Error::new(name, "not loaded"))
}

/// The order of edges in every output.
pub(crate) fn sort(edges: &mut [Edge]) {
    edges.sort_by(|one, other| {
        (one.local, one.peer, one.port, one.role as u8, &one.program).cmp(&(
            other.local,
            other.peer,
            other.port,
            other.role as u8,
            &other.program,
        ))
    });
}

/// Why the kernel will refuse BPF programs, if it will.
pub fn missing_rights() -> Option<&'static str> {
    const CAP_NET_ADMIN: u32 = 12;
    const CAP_SYS_ADMIN: u32 = 21;
    const CAP_PERFMON: u32 = 38;
    const CAP_BPF: u32 = 39;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let has = u64::from_str_radix(line.trim(), 16).ok()?;
    let has = |capability: u32| has & (1 << capability) != 0;
    let suffices = has(CAP_SYS_ADMIN) || (has(CAP_BPF) && has(CAP_PERFMON) && has(CAP_NET_ADMIN));
    (!suffices).then_some("BPF programs need root, or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN")
}

/// An error of the loader with its causes, in one line and without the verifier's log.
fn failed(what: &str, error: &dyn std::error::Error) -> Error {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    Error::new(what, text.lines().next().unwrap_or_default())
}

/// CPU time of this process.
pub(crate) fn process_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid for the call, which cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Relates the kernel's monotonic clock to the time of day.
struct Clock {
    epoch_at_boot_ns: i64,
}

impl Clock {
    fn now() -> Self {
        let mut monotonic = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the structure is valid for the call, which cannot fail for this clock.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut monotonic) };
        let monotonic = Duration::new(monotonic.tv_sec as u64, monotonic.tv_nsec as u32);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { epoch_at_boot_ns: now.as_nanos() as i64 - monotonic.as_nanos() as i64 }
    }

    fn since_epoch(&self, monotonic_ns: u64) -> i64 {
        self.epoch_at_boot_ns + monotonic_ns as i64
    }
}
