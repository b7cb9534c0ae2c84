// SPDX-License-Identifier: Apache-2.0
//! The BPF programs: loads and attaches them, and finds their maps.

use crate::edges::edge::{Events, Method};
use crate::layout::{EdgeCounts, EdgeKey};
use crate::loader::bpf_calls::Iterator;
use crate::loader::double_buffer::MapBuffer;
use crate::loader::options::{Options, map_size};
use crate::{Error, failed};
use aya::maps::{HashMap as BpfHashMap, Map};
use aya::programs::{BtfTracePoint, CgroupAttachMode, CgroupSockAddr, Iter, ProgramError};
use aya::{Btf, Ebpf, EbpfLoader};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::OnceLock;

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/map.bpf.o"));

/// Flows of one interval that there is at least room for.
const FLOWS: u32 = 262_144;

/// Size of the ring buffer where no events are sent.
const UNUSED_BYTES: u32 = 64 << 10;

/// Maps of the size that the options need; nothing is attached.
pub fn load(options: &Options, btf: &Btf) -> Result<Ebpf, Error> {
    let is_aggregate = options.method == Method::Aggregate;
    let is_stream = options.method == Method::Stream;
    let streaming: u32 = match options.events {
        _ if !is_stream => 0,
        Events::Setup => 1,
        Events::All => 2,
    };
    // One more, for what does not fit.
    let edges = map_size(options.max_edges).saturating_add(1);
    let edges = if is_aggregate { edges.max(FLOWS) } else { edges };
    let mut kernel = EbpfLoader::new()
        .btf(Some(btf))
        .override_global("per_flow", &u8::from(is_aggregate), true)
        .override_global("streaming", &streaming, true)
        .map_max_entries("edges", edges)
        .map_max_entries("second_edges", edges)
        .map_max_entries("open_by_edge", edges)
        .map_max_entries("events", if is_stream { options.buffer } else { UNUSED_BYTES })
        .load(OBJECT)
        .map_err(|error| failed("BPF maps were not created", &error))?;
    for buffer in [MapBuffer::First, MapBuffer::Second] {
        add_other(&mut kernel, buffer.edges())?;
    }
    Ok(kernel)
}

/// Programs that see every change of TCP, and every message of UDP. Returns those that are attached:
/// the kernel has the events of UDP since 6.3.
pub fn attach(
    kernel: &mut Ebpf,
    btf: &Btf,
    cgroups: Option<&Path>,
) -> Result<&'static [&'static str], Error> {
    for (name, event) in ALL[..TCP].iter().zip(["inet_sock_set_state", "tcp_destroy_sock"]) {
        if !attach_to_event(kernel, btf, name, event)? {
            return Err(Error::new(event, "the kernel has no such event"));
        }
    }
    // First, because a message whose peer was not recorded belongs to an edge with no peer.
    if let Some(root) = cgroups {
        attach_to_cgroups(kernel, root)?;
    }
    let has_udp = attach_to_event(kernel, btf, ALL[TCP], "sock_send_length")?
        && attach_to_event(kernel, btf, ALL[TCP + 1], "sock_recv_length")?;
    Ok(if has_udp { &ALL } else { &ALL[..TCP] })
}

const ALL: [&str; 4] = ["tcp_state", "tcp_end", "udp_sent", "udp_received"];

/// How many of them are for TCP: they come first.
pub const TCP: usize = 2;

/// False if the kernel does not have the event.
fn attach_to_event(
    kernel: &mut Ebpf,
    btf: &Btf,
    name: &'static str,
    event: &str,
) -> Result<bool, Error> {
    let program: &mut BtfTracePoint = kernel
        .program_mut(name)
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| Error::new(name, "not in the object"))?;
    match program.load(event, btf) {
        Err(ProgramError::Btf(_)) => Ok(false),
        loaded => loaded
            .and_then(|()| program.attach())
            .map(|_| true)
            .map_err(|error| failed(event, &error)),
    }
}

/// The peers of UDP sockets that are not connected.
fn attach_to_cgroups(kernel: &mut Ebpf, root: &Path) -> Result<(), Error> {
    // A link is always one of several; the mode is only for programs without a link.
    let root = File::open(root).map_err(|error| Error::new(root.display(), error))?;
    for name in ["send_to_ipv4", "send_to_ipv6", "receive_from_ipv4", "receive_from_ipv6"] {
        let program: &mut CgroupSockAddr = kernel
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
pub fn find(kernel: &Ebpf, name: &str) -> Result<(), Error> {
    Iterator::new(program_fd(kernel, name)?, None)
        .and_then(|iterator| iterator.run())
        .map_err(|error| Error::new(name, error))
}

/// Room for what does not fit into a map of edges.
pub fn add_other(kernel: &mut Ebpf, name: &str) -> Result<(), Error> {
    let map = kernel.map_mut(name).ok_or_else(|| Error::new(name, "not in the object"))?;
    let edges = BpfHashMap::<_, EdgeKey, EdgeCounts>::try_from(map);
    let mut edges = edges.map_err(|error| failed(name, &error))?;
    let inserted = edges.insert(EdgeKey::OTHER, EdgeCounts::EMPTY, 0);
    inserted.map_err(|error| failed(name, &error))
}

pub fn map_fd<'kernel>(kernel: &'kernel Ebpf, name: &str) -> Result<BorrowedFd<'kernel>, Error> {
    match kernel.map(name) {
        Some(Map::HashMap(map) | Map::SkStorage(map)) => Ok(map.fd().as_fd()),
        _ => Err(Error::new(name, "not in the object")),
    }
}

pub fn load_iterator(kernel: &mut Ebpf, btf: &Btf, name: &str, kind: &str) -> Result<(), Error> {
    iterator(kernel, name)?.load(kind, btf).map_err(|error| failed(name, &error))
}

/// Whether the kernel does not let this program iterate over the elements of a map, as some do; if it
/// does, the program is loaded.
pub fn refuses_iterator(
    kernel: &mut Ebpf,
    btf: &Btf,
    name: &str,
    kind: &str,
) -> Result<bool, Error> {
    match iterator(kernel, name)?.load(kind, btf) {
        Err(ProgramError::LoadError { io_error, .. })
            if io_error.raw_os_error() == Some(libc::EPERM) =>
        {
            Ok(true)
        }
        loaded => loaded.map(|()| false).map_err(|error| failed(name, &error)),
    }
}

fn iterator<'kernel>(kernel: &'kernel mut Ebpf, name: &str) -> Result<&'kernel mut Iter, Error> {
    kernel
        .program_mut(name)
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| Error::new(name, "not in the object"))
}

pub fn program_fd<'kernel>(
    kernel: &'kernel Ebpf,
    name: &str,
) -> Result<BorrowedFd<'kernel>, Error> {
    kernel
        .program(name)
        .and_then(|program| program.fd().ok())
        .map(|program| program.as_fd())
        .ok_or_else(|| Error::new(name, "not loaded"))
}

/// Why BPF programs cannot be loaded, if they cannot.
pub fn obstacle() -> Option<&'static str> {
    static FOUND: OnceLock<Option<&str>> = OnceLock::new();
    *FOUND.get_or_init(|| missing_rights().or_else(missing_btf))
}

fn missing_btf() -> Option<&'static str> {
    let exists = Path::new("/sys/kernel/btf/vmlinux").exists();
    let missing = "this kernel has no BTF (/sys/kernel/btf/vmlinux); CONFIG_DEBUG_INFO_BTF adds it";
    (!exists).then_some(missing)
}

fn missing_rights() -> Option<&'static str> {
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
