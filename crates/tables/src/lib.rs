// SPDX-License-Identifier: Apache-2.0
//! The data schemas of `tables/*.toml` and the Arrow stream writer.
