// SPDX-License-Identifier: Apache-2.0
//! Any text is rules that can be published, or is refused in one line that names its file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tare_hook_rules::Rules;
use tare_hook_segment::LONGEST;

fuzz_target!(|text: &str| {
    match Rules::parse("rules.toml", text) {
        Ok(rules) => {
            assert!(
                rules.keywords.iter().all(|keyword| (1..=LONGEST).contains(&keyword.text.len()))
            );
        }
        Err(failure) => {
            let line = failure.to_string();
            assert!(line.starts_with("rules.toml:") && !line.contains('\n'), "{line:?}");
        }
    }
});
