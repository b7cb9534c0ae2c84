// SPDX-License-Identifier: Apache-2.0
//! Requests of OTLP, in protobuf and JSON, never panic, and a span is a row or is rejected.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the program uses the rest of the module")]
#[path = "../../crates/spans/src/attributes.rs"]
mod attributes;
#[allow(dead_code, unused_imports, reason = "the program uses the rest of the module")]
#[path = "../../crates/spans/src/otlp/mod.rs"]
mod otlp;
#[allow(dead_code, reason = "the program uses the rest of the module")]
#[path = "../../crates/spans/src/rows.rs"]
mod rows;

/// A span takes at least this number of bytes: two IDs and two times.
const SMALLEST: usize = 46;

fuzz_target!(|bytes: &[u8]| {
    let mut names = rows::Names::default();
    let keys = attributes::Keys::new(&["tier".to_owned(), "a".to_owned()]).expect("they are few");
    let mut builder = rows::RowBuilder::new(&mut names, &keys);
    if otlp::read::protobuf(bytes, &mut builder).is_ok() {
        assert!(builder.rows.len() <= bytes.len() / SMALLEST);
        for row in &builder.rows {
            assert!(row.start_ns > 0 && row.duration_ns >= 0);
            assert!(row.start_ns.checked_add(row.duration_ns).is_some());
        }
    }
    let mut builder = rows::RowBuilder::new(&mut names, &keys);
    let _ = otlp::read::json(bytes, &mut builder);
});
