// SPDX-License-Identifier: Apache-2.0
//! Puts beginnings and ends of spans together, thread by thread.

pub mod patterns;
pub mod roles;

use super::log::{Ended, Log, Row, What};
use super::owned_payload::OwnedPayload;
use roles::{Role, Roles};
use std::collections::HashMap;
use tare_command::say;
use tare_log_segment::layout::MOST_RINGS;
use tare_log_segment::record::is_virtual;

/// Spans of one thread that have begun and not ended: more are beginnings without ends, and
/// would take memory without end.
const DEEPEST: usize = 1 << 14;

/// Bytes of spans of all threads that have begun and not ended. A file of some hundred kilobytes can
/// begin millions of them.
const MOST_HELD: usize = 1 << 28;

/// Where a span began: no other does, of any file. Ticks may be long, so that several begin at
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id {
    pub process: usize,
    pub ring: u32,
    pub ticks: u64,
    pub nth: u32,
}

/// A span that has begun.
#[derive(Clone, Debug)]
pub struct Open {
    pub id: Id,
    /// The span it began in, and the outermost of these, which may be itself.
    pub parent: Option<Id>,
    pub root: Id,
    /// Its index in [`Roles::names`].
    pub name: usize,
    pub time_ns: Option<i64>,
    pub value: OwnedPayload,
}

impl Open {
    /// Its part of `MOST_HELD`, with a stack, which may have no other.
    fn bytes(&self) -> usize {
        size_of::<Self>() + size_of::<Stack>() + self.value.bytes()
    }
}

/// What a row means.
#[derive(Clone, Copy, Debug)]
pub enum SpanEvent<'open> {
    Begin(&'open Open),
    /// The span took so many nanoseconds; `None` where the file has no times.
    End(&'open Open, Option<f64>),
    /// Its end is not known: that of a span around it came first, or its own may be among
    /// events that were lost here.
    Cut(&'open Open),
    /// It had not ended when the file did. The row is that of its beginning.
    Left(&'open Open),
    /// Something else, within this span.
    Event(Option<&'open Open>),
    /// An end without a beginning.
    Unbegun,
    Loss,
}

/// Spans that are open.
#[derive(Default)]
struct Stacks {
    /// By process, ring and thread: where a signal handler has interrupted an event, its own are
    /// in another ring, and have a stack of their own.
    own: HashMap<(usize, u32, u32), Stack>,
    /// Of virtual threads, by process and thread: they have one for all rings.
    carried: HashMap<usize, HashMap<u32, Stack>>,
    /// Bytes of all that are open.
    held: usize,
}

impl Stacks {
    fn get(&mut self, row: &Row<'_>) -> Option<&mut Stack> {
        match row.is_carried {
            true => self.carried.get_mut(&row.process)?.get_mut(&row.tid),
            false => self.own.get_mut(&own(row)),
        }
    }

    fn get_or_new(&mut self, row: &Row<'_>) -> &mut Stack {
        match row.is_carried {
            true => self.carried.entry(row.process).or_default().entry(row.tid).or_default(),
            false => self.own.entry(own(row)).or_default(),
        }
    }

    fn remove(&mut self, row: &Row<'_>) -> Option<Stack> {
        let removed = match row.is_carried {
            true => self.carried.get_mut(&row.process)?.remove(&row.tid),
            false => self.own.remove(&own(row)),
        };
        self.held -= removed.as_ref().map_or(0, Stack::bytes);
        removed
    }

    /// Those that end where events are missing, with their threads: one, or all virtual ones.
    fn missing(&mut self, row: &Row<'_>) -> Vec<(u32, Stack)> {
        if !row.is_carried {
            return self.remove(row).map(|stack| (row.tid, stack)).into_iter().collect();
        }
        let all = self.carried.remove(&row.process).unwrap_or_default();
        self.held -= all.values().map(Stack::bytes).sum::<usize>();
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_unstable_by_key(|(tid, _)| *tid);
        all
    }
}

/// What a program has written itself comes in the order of its times, whatever ring its thread
/// would have been in, but not in that of others.
fn own(row: &Row<'_>) -> (usize, u32, u32) {
    let is_written = row.ring as usize > MOST_RINGS;
    let ring = if is_written && is_virtual(row.tid) { u32::MAX } else { row.ring };
    (row.process, ring, row.tid)
}

#[derive(Default)]
struct Stack {
    open: Vec<Open>,
    /// How many of each name: who ends what never began is not looked for among all.
    names: HashMap<usize, usize>,
    pid: u32,
    thread: String,
}

impl Stack {
    fn bytes(&self) -> usize {
        self.open.iter().map(Open::bytes).sum()
    }

    fn push(&mut self, open: Open) {
        *self.names.entry(open.name).or_default() += 1;
        self.open.push(open);
    }

    fn pop(&mut self) -> Option<Open> {
        let open = self.open.pop()?;
        if let Some(count) = self.names.get_mut(&open.name) {
            *count -= 1;
        }
        Some(open)
    }

    /// Where the innermost of this name stands.
    fn index(&self, name: usize) -> Option<usize> {
        self.names.get(&name).filter(|count| **count > 0)?;
        self.open.iter().rposition(|open| open.name == name)
    }
}

/// Calls `each` with every row of the file and what it means. A row that cuts spans is passed once
/// for each of them, and then for itself.
pub fn for_each_span_event<E>(
    log: &Log,
    roles: &Roles,
    each: impl FnMut(&Row<'_>, SpanEvent<'_>) -> Result<(), E>,
) -> Result<(), Ended<E>> {
    for_each_within(MOST_HELD, log, roles, each)
}

fn for_each_within<E>(
    most_held: usize,
    log: &Log,
    roles: &Roles,
    mut each: impl FnMut(&Row<'_>, SpanEvent<'_>) -> Result<(), E>,
) -> Result<(), Ended<E>> {
    let mut stacks = Stacks::default();
    let mut without_room = 0u64;
    let mut last = HashMap::new();
    // By process: until when events of virtual threads are missing.
    let mut missing: HashMap<usize, u64> = HashMap::new();
    log.rows(|row| {
        let role = match row.what {
            What::Event { id, payload, .. } => Some((roles.get(row.process, id), payload)),
            What::Loss { .. } | What::Gap { .. } => None,
        };
        // What began meanwhile may have ended meanwhile.
        if row.is_carried
            && role.is_some()
            && let Some(until) = missing.get(&row.process)
            && let Some(stack) = stacks.get(&row)
            && stack.open.last().is_some_and(|open| open.id.ticks <= *until)
        {
            for open in stacks.remove(&row).unwrap_or_default().open.iter().rev() {
                each(&row, SpanEvent::Cut(open))?;
            }
        }
        match role {
            // Nothing says which beginning an end belongs to.
            None => {
                for (tid, stack) in stacks.missing(&row) {
                    let row = Row { tid, thread: &stack.thread, pid: stack.pid, ..row };
                    for open in stack.open.iter().rev() {
                        each(&row, SpanEvent::Cut(open))?;
                    }
                }
                match row.what {
                    What::Gap { last } if row.is_carried => {
                        missing.insert(row.process, last);
                        Ok(())
                    }
                    What::Gap { .. } => Ok(()),
                    _ => each(&row, SpanEvent::Loss),
                }
            }
            Some((None, _)) => {
                let within = stacks.get(&row).and_then(|stack| stack.open.last());
                each(&row, SpanEvent::Event(within))
            }
            Some((Some(Role::Begin(name)), payload)) => {
                let stack = stacks.get(&row);
                let is_deepest = stack.as_ref().is_some_and(|stack| stack.open.len() == DEEPEST);
                let mut around =
                    stack.and_then(|stack| stack.open.last()).map(|open| (open.id, open.root));
                if is_deepest {
                    around = None;
                    for open in stacks.remove(&row).unwrap_or_default().open.iter().rev() {
                        each(&row, SpanEvent::Cut(open))?;
                    }
                }
                let id = next(&mut last, &row);
                let open = Open {
                    id,
                    parent: around.map(|(parent, _)| parent),
                    root: around.map_or(id, |(_, root)| root),
                    name,
                    time_ns: row.time_ns,
                    value: payload.into(),
                };
                each(&row, SpanEvent::Begin(&open))?;
                let held = stacks.held + open.bytes();
                if held > most_held {
                    without_room += 1;
                    return each(&row, SpanEvent::Cut(&open));
                }
                stacks.held = held;
                let stack = stacks.get_or_new(&row);
                if stack.open.is_empty() {
                    stack.pid = row.pid;
                    row.thread.clone_into(&mut stack.thread);
                }
                stack.push(open);
                Ok(())
            }
            Some((Some(Role::End(name)), _)) => {
                let stack = stacks.get(&row);
                let Some((stack, index)) = stack.and_then(|stack| {
                    let index = stack.index(name)?;
                    Some((stack, index))
                }) else {
                    return each(&row, SpanEvent::Unbegun);
                };
                let mut freed = 0;
                while stack.open.len() > index + 1
                    && let Some(cut) = stack.pop()
                {
                    freed += cut.bytes();
                    each(&row, SpanEvent::Cut(&cut))?;
                }
                if let Some(open) = stack.pop() {
                    freed += open.bytes();
                    let duration = log.times(row.process).between(open.id.ticks, row.ticks);
                    each(&row, SpanEvent::End(&open, duration))?;
                }
                if stack.open.is_empty() {
                    stacks.remove(&row);
                }
                stacks.held -= freed;
                Ok(())
            }
        }
    })?;
    if without_room > 0 {
        say(format_args!(
            "{without_room} spans have no end, because more than {} MiB of spans were open at once",
            most_held >> 20
        ));
    }
    left(stacks, roles, each).map_err(Ended::Enough)
}

/// The span that begins with the row, after the `last` of each ring.
fn next(last: &mut HashMap<(usize, u32), Id>, row: &Row<'_>) -> Id {
    let Row { process, ring, ticks, .. } = *row;
    let before = last.get(&(process, ring)).filter(|id| id.ticks == ticks);
    let id = Id { process, ring, ticks, nth: before.map_or(0, |id| id.nth + 1) };
    last.insert((process, ring), id);
    id
}

fn left<E>(
    stacks: Stacks,
    roles: &Roles,
    mut each: impl FnMut(&Row<'_>, SpanEvent<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let own = stacks.own.into_iter().map(|((process, _, tid), stack)| (process, tid, stack));
    let carried = stacks
        .carried
        .into_iter()
        .flat_map(|(process, all)| all.into_iter().map(move |(tid, stack)| (process, tid, stack)));
    let all = own.map(|entry| (entry, false)).chain(carried.map(|entry| (entry, true)));
    let mut all: Vec<_> = all.collect();
    all.sort_unstable_by_key(|((process, tid, stack), _)| {
        (*process, stack.open.first().map(|open| open.id.ring), *tid)
    });
    for ((process, tid, stack), is_carried) in &all {
        for open in stack.open.iter().rev() {
            let what = What::Event {
                id: 0,
                channel: &roles.names()[open.name],
                payload: open.value.payload(),
            };
            let row = Row {
                time_ns: open.time_ns,
                ticks: open.id.ticks,
                process: *process,
                ring: open.id.ring,
                is_carried: *is_carried,
                pid: stack.pid,
                tid: *tid,
                thread: &stack.thread,
                what,
            };
            each(&row, SpanEvent::Left(open))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
