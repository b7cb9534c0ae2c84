// SPDX-License-Identifier: Apache-2.0
//! What the linker must know about a library that goes into other people's programs.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // glibc below 2.34 has dlsym in libdl, which later ones still have as an empty file.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--no-as-needed,-l:libdl.so.2,--as-needed");
    // Threads of the program may stand in it at any time: it is never taken away.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete,-z,now,-soname,libtare_log.so.1");
}
