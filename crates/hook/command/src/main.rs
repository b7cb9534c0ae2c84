// SPDX-License-Identifier: Apache-2.0
fn main() -> std::process::ExitCode {
    tare_hook_command::main()
}
