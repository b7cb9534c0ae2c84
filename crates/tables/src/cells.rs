// SPDX-License-Identifier: Apache-2.0
use crate::schema::Type;
use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, StringBuilder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, StringArray};
use std::collections::HashMap;
use std::sync::Arc;

/// One value of a row. An integer goes into int32 and int64 columns, text into
/// string and category columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'text> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'text str),
}

/// The values of one column that were not written yet.
pub(crate) enum Cells {
    Bool(BooleanBuilder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float64(Float64Builder),
    String(StringBuilder),
    Category(Categories),
}

impl Cells {
    pub fn new(kind: Type, capacity: usize) -> Self {
        match kind {
            Type::Bool => Self::Bool(BooleanBuilder::with_capacity(capacity)),
            Type::Int32 => Self::Int32(Int32Builder::with_capacity(capacity)),
            Type::Int64 => Self::Int64(Int64Builder::with_capacity(capacity)),
            Type::Float64 => Self::Float64(Float64Builder::with_capacity(capacity)),
            Type::String => Self::String(StringBuilder::new()),
            Type::Category => Self::Category(Categories::new(capacity)),
        }
    }

    /// Appends one value; false if it does not fit the column's type.
    pub fn push(&mut self, cell: Cell<'_>) -> bool {
        match (self, cell) {
            (Self::Bool(values), Cell::Null) => values.append_null(),
            (Self::Int32(values), Cell::Null) => values.append_null(),
            (Self::Int64(values), Cell::Null) => values.append_null(),
            (Self::Float64(values), Cell::Null) => values.append_null(),
            (Self::String(values), Cell::Null) => values.append_null(),
            (Self::Category(values), Cell::Null) => values.keys.append_null(),
            (Self::Bool(values), Cell::Bool(value)) => values.append_value(value),
            (Self::Int32(values), Cell::Int(value)) => match i32::try_from(value) {
                Ok(value) => values.append_value(value),
                Err(_) => return false,
            },
            (Self::Int64(values), Cell::Int(value)) => values.append_value(value),
            (Self::Float64(values), Cell::Float(value)) => values.append_value(value),
            (Self::String(values), Cell::Text(value)) => values.append_value(value),
            (Self::Category(values), Cell::Text(value)) => values.push(value),
            _ => return false,
        }
        true
    }

    pub fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Bool(values) => Arc::new(values.finish()),
            Self::Int32(values) => Arc::new(values.finish()),
            Self::Int64(values) => Arc::new(values.finish()),
            Self::Float64(values) => Arc::new(values.finish()),
            Self::String(values) => Arc::new(values.finish()),
            Self::Category(values) => Arc::new(values.finish()),
        }
    }
}

/// A dictionary column. The dictionary only grows, and its array is made anew only
/// when it grew: a batch without a new word carries no dictionary in the stream.
pub(crate) struct Categories {
    keys: Int32Builder,
    words: Vec<Arc<str>>,
    places: HashMap<Arc<str>, usize>,
    array: Arc<StringArray>,
    last: usize,
}

impl Categories {
    fn new(capacity: usize) -> Self {
        Self {
            keys: Int32Builder::with_capacity(capacity),
            words: Vec::new(),
            places: HashMap::new(),
            array: Arc::new(StringArray::from(Vec::<String>::new())),
            last: 0,
        }
    }

    fn push(&mut self, word: &str) {
        if self.words.get(self.last).is_none_or(|last| **last != *word) {
            self.last = self.places.get(word).copied().unwrap_or_else(|| {
                let new: Arc<str> = word.into();
                self.places.insert(new.clone(), self.words.len());
                self.words.push(new);
                self.words.len() - 1
            });
        }
        self.keys.append_value(i32::try_from(self.last).expect("a category is a small set"));
    }

    fn finish(&mut self) -> DictionaryArray<Int32Type> {
        if self.array_is_old() {
            self.array = Arc::new(StringArray::from_iter_values(&self.words));
        }
        DictionaryArray::new(self.keys.finish(), self.array.clone())
    }

    fn array_is_old(&self) -> bool {
        use arrow_array::Array;
        self.array.len() != self.words.len()
    }
}
