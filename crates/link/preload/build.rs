// SPDX-License-Identifier: Apache-2.0
//! What the linker must know about a library that goes into other people's programs.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        // glibc below 2.34 has dlsym in libdl, which later ones still have as an empty file.
        "-Wl,--no-as-needed,-l:libdl.so.2,--as-needed",
        // A call before the constructor must not wait for the lazy binder.
        "-Wl,-z,now",
        // Functions of the program's threads may return into it after dlclose.
        "-Wl,-z,nodelete",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
