// SPDX-License-Identifier: Apache-2.0
//! Compiles `bpf/*.bpf.c`. The object is part of the program, so its users need no compiler.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const NEEDED: &str = "clang and the headers of libbpf (Debian: clang, libbpf-dev)";

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    let object = PathBuf::from(env::var_os("OUT_DIR").unwrap()).join("map.bpf.o");
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").unwrap();
    let define = match architecture.as_str() {
        "x86_64" => "-D__TARGET_ARCH_x86",
        "aarch64" => "-D__TARGET_ARCH_arm64",
        other => panic!("tare-map has no programs for {other}"),
    };
    let status = Command::new("clang")
        .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror", define])
        // Where Debian has <asm/types.h>.
        .arg(format!("-I/usr/include/{architecture}-linux-gnu"))
        .args(["-c", "bpf/map.bpf.c", "-o"])
        .arg(&object)
        .status();
    match status {
        Ok(status) if status.success() => strip(&object),
        Ok(_) => panic!("bpf/map.bpf.c was not compiled; it needs {NEEDED}"),
        Err(error) => panic!("clang: {error}; tare-map needs {NEEDED}"),
    }
}

/// Removes what only a debugger reads; without the tool the object is larger.
fn strip(object: &Path) {
    let _ = Command::new("llvm-strip").arg("-g").arg(object).status();
}
