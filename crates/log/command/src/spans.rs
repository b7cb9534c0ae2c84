// SPDX-License-Identifier: Apache-2.0
//! Puts beginnings and ends of spans together, thread by thread.

use crate::log::{Ended, Log, Row, What};
use crate::pairs::{Role, Roles};
use std::collections::HashMap;
use tare_log_file::Payload;

/// Spans of one thread that have begun and not ended: more are beginnings without ends, and
/// would take memory without end.
const DEEPEST: usize = 1 << 14;

/// A payload that outlives its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Number(i64),
    Bytes(Vec<u8>),
}

impl From<Payload<'_>> for Value {
    fn from(payload: Payload<'_>) -> Self {
        match payload {
            Payload::Number(number) => Self::Number(number),
            Payload::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }
}

impl Value {
    pub fn payload(&self) -> Payload<'_> {
        match self {
            Self::Number(number) => Payload::Number(*number),
            Self::Bytes(bytes) => Payload::Bytes(bytes),
        }
    }
}

/// A span that has begun.
#[derive(Clone, Debug)]
pub struct Open {
    /// Counts the spans of a file, from 1.
    pub id: u64,
    /// The span it began in, and the outermost of these, which may be itself.
    pub parent: Option<u64>,
    pub root: u64,
    /// Its place in [`Roles::names`].
    pub name: usize,
    pub time_ns: Option<i64>,
    pub ticks: u64,
    pub value: Value,
}

/// What a row means.
#[derive(Clone, Copy, Debug)]
pub enum Happening<'walk> {
    Begin(&'walk Open),
    /// The span took so many nanoseconds; `None` where the file has no times.
    End(&'walk Open, Option<i64>),
    /// Its end is not known: that of a span around it came first, or its own may be among
    /// events that were lost here.
    Cut(&'walk Open),
    /// It had not ended when the file did. The row is that of its beginning.
    Left(&'walk Open),
    /// Something else, within this span.
    Event(Option<&'walk Open>),
    /// An end without a beginning.
    Unbegun,
    Loss,
}

/// Spans that are open on a thread. Where a signal handler has interrupted an event, its own are
/// in another ring, and have a stack of their own.
type Stacks = HashMap<(usize, u32, u32), Stack>;

#[derive(Default)]
struct Stack {
    open: Vec<Open>,
    pid: u32,
    thread: String,
}

/// Calls `each` with every row of the file and what it means. A row that cuts spans is told once
/// for each of them, and then for itself.
pub fn walk<E>(
    log: &Log,
    roles: &Roles,
    mut each: impl FnMut(&Row<'_>, Happening<'_>) -> Result<(), E>,
) -> Result<(), Ended<E>> {
    let mut stacks = Stacks::new();
    let mut spans = 0;
    log.rows(|row| {
        let key = (row.process, row.ring, row.tid);
        let role = match row.what {
            What::Event { id, payload, .. } => Some((roles.get(row.process, id), payload)),
            What::Loss { .. } => None,
        };
        match role {
            // After a loss nothing says which beginning an end belongs to.
            None => {
                for open in stacks.remove(&key).unwrap_or_default().open.iter().rev() {
                    each(&row, Happening::Cut(open))?;
                }
                each(&row, Happening::Loss)
            }
            Some((None, _)) => {
                let within = stacks.get(&key).and_then(|stack| stack.open.last());
                each(&row, Happening::Event(within))
            }
            Some((Some(Role::Begin(name)), payload)) => {
                let stack = stacks.entry(key).or_default();
                if stack.open.is_empty() {
                    stack.pid = row.pid;
                    row.thread.clone_into(&mut stack.thread);
                }
                if stack.open.len() == DEEPEST {
                    while let Some(open) = stack.open.pop() {
                        each(&row, Happening::Cut(&open))?;
                    }
                }
                spans += 1;
                let around = stack.open.last();
                let open = Open {
                    id: spans,
                    parent: around.map(|around| around.id),
                    root: around.map_or(spans, |around| around.root),
                    name,
                    time_ns: row.time_ns,
                    ticks: row.ticks,
                    value: payload.into(),
                };
                each(&row, Happening::Begin(&open))?;
                stack.open.push(open);
                Ok(())
            }
            Some((Some(Role::End(name)), _)) => {
                let Some(stack) = stacks.get_mut(&key) else {
                    return each(&row, Happening::Unbegun);
                };
                let Some(place) = stack.open.iter().rposition(|open| open.name == name) else {
                    return each(&row, Happening::Unbegun);
                };
                while stack.open.len() > place + 1
                    && let Some(cut) = stack.open.pop()
                {
                    each(&row, Happening::Cut(&cut))?;
                }
                if let Some(open) = stack.open.pop() {
                    let duration = log.times().between(open.ticks, row.ticks);
                    each(&row, Happening::End(&open, duration))?;
                }
                if stack.open.is_empty() {
                    stacks.remove(&key);
                }
                Ok(())
            }
        }
    })?;
    left(stacks, roles, each).map_err(Ended::Enough)
}

fn left<E>(
    stacks: Stacks,
    roles: &Roles,
    mut each: impl FnMut(&Row<'_>, Happening<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut stacks: Vec<_> = stacks.into_iter().collect();
    stacks.sort_unstable_by_key(|(key, _)| *key);
    for ((process, ring, tid), stack) in &stacks {
        for open in stack.open.iter().rev() {
            let what = What::Event {
                id: 0,
                channel: &roles.names()[open.name],
                payload: open.value.payload(),
            };
            let row = Row {
                time_ns: open.time_ns,
                ticks: open.ticks,
                process: *process,
                ring: *ring,
                pid: stack.pid,
                tid: *tid,
                thread: &stack.thread,
                what,
            };
            each(&row, Happening::Left(open))?;
        }
    }
    Ok(())
}
