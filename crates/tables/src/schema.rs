// SPDX-License-Identifier: Apache-2.0
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, Field, FieldRef, Schema};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::sync::LazyLock;

/// A table's schema has fewer bytes.
const MOST: u64 = 1 << 16;

/// One table of `tables/*.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    pub name: String,
    pub description: String,
    pub columns: Vec<Column>,
}

/// One column of a [`Table`]; times are nanoseconds since the Unix epoch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Type,
    pub unit: Option<String>,
    pub description: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    Bool,
    Int32,
    Int64,
    Float64,
    String,
    /// A string from a small set: a dictionary of int32 and utf8.
    Category,
}

pub static SAMPLES: LazyLock<Table> =
    LazyLock::new(|| parse(include_str!("../../../tables/samples.toml")));
pub static MACHINE: LazyLock<Table> =
    LazyLock::new(|| parse(include_str!("../../../tables/machine.toml")));
pub static EVENTS: LazyLock<Table> =
    LazyLock::new(|| parse(include_str!("../../../tables/events.toml")));
pub static COSTS: LazyLock<Table> =
    LazyLock::new(|| parse(include_str!("../../../tables/costs.toml")));
pub static EDGES: LazyLock<Table> =
    LazyLock::new(|| parse(include_str!("../../../tables/edges.toml")));

fn parse(declaration: &str) -> Table {
    toml::from_str(declaration).expect("the tables are part of the program and tested with it")
}

impl Table {
    /// The declarations of the columns named, in the order given.
    ///
    /// # Panics
    /// If the table has no such column: the names are constants of the program.
    pub fn select(&self, names: &[&str]) -> Vec<&Column> {
        names
            .iter()
            .map(|name| {
                self.columns
                    .iter()
                    .find(|column| column.name == *name)
                    .unwrap_or_else(|| panic!("the table {} has no column {name}", self.name))
            })
            .collect()
    }

    /// The Arrow schema of the columns named; every column may be null.
    pub fn schema(&self, names: &[&str]) -> Schema {
        let fields = self.select(names).into_iter();
        Schema::new(
            fields
                .map(|column| Field::new(&column.name, column.kind.arrow(), true))
                .collect::<Vec<_>>(),
        )
    }

    /// Whether the file is an Arrow IPC stream of columns of this table and no others.
    pub fn is_in(&self, file: File) -> bool {
        let read = StreamReader::try_new(file.take(MOST), None);
        let is_own = |field: &FieldRef| self.columns.iter().any(|own| own.name == *field.name());
        read.is_ok_and(|stream| stream.schema().fields().iter().all(is_own))
    }
}

impl Type {
    pub fn arrow(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Int32 => DataType::Int32,
            Self::Int64 => DataType::Int64,
            Self::Float64 => DataType::Float64,
            Self::String => DataType::Utf8,
            Self::Category => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float64 => "float64",
            Self::String => "string",
            Self::Category => "category",
        }
    }
}

/// What `COMMAND schema --json` prints: the columns that a program writes.
pub fn describe(written: &[(&Table, &[&str])]) -> Value {
    let tables: Vec<Value> = written
        .iter()
        .map(|(table, names)| {
            let columns: Vec<Value> = table
                .select(names)
                .iter()
                .map(|column| json!({"name": column.name, "type": column.kind.name()}))
                .collect();
            json!({"name": table.name, "columns": columns})
        })
        .collect();
    json!({ "tables": tables })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_read() {
        for (table, name) in [
            (&SAMPLES, "samples"),
            (&MACHINE, "machine"),
            (&EVENTS, "events"),
            (&COSTS, "costs"),
            (&EDGES, "edges"),
        ] {
            assert_eq!(table.name, name);
            assert!(table.columns.iter().all(|column| !column.description.is_empty()));
        }
    }

    #[test]
    fn a_description_names_columns_and_types() {
        let described = describe(&[(&SAMPLES, &["condition", "start_ns", "ok"])]);
        let expected = json!({"tables": [{"name": "samples", "columns": [
            {"name": "condition", "type": "category"},
            {"name": "start_ns", "type": "int64"},
            {"name": "ok", "type": "bool"},
        ]}]});
        assert_eq!(described, expected);
    }
}
