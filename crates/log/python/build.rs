// SPDX-License-Identifier: Apache-2.0
//! What the linker must know about an extension module.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-s");
}
