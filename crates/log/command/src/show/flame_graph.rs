// SPDX-License-Identifier: Apache-2.0
//! A flame graph: how long each span took within each other, as one SVG without a script.

use super::call_tree::CallTree;
use crate::format;
use std::fmt::Write as _;
use std::io::{self, Write};

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: usize = 18;
const HEAD: usize = 44;
/// Narrower ones cannot be seen.
const NARROWEST: f64 = 0.2;
/// Of a letter in the font below.
const LETTER: f64 = 6.7;
/// Deeper ones are left out: who would scroll so far?
const DEEPEST: usize = 400;

/// Where there are more ways than `CallTree` distinguishes.
const CUT: &str = "; some spans have no box, because there are more call paths than this graph \
                   distinguishes";

struct Box {
    node: usize,
    depth: usize,
    x: f64,
    width: f64,
}

/// The root stands at the foot; siblings are in the order of their names, equal ones of two
/// pictures at the same position.
pub fn write(call_tree: &CallTree, title: &str, out: &mut impl Write) -> io::Result<()> {
    let widths = call_tree.widths();
    let boxes = layout(call_tree, &widths);
    let depth = boxes.iter().map(|frame| frame.depth).max().unwrap_or(0);
    let height = HEAD + (depth + 1) * ROW + MARGIN as usize;
    let whole = widths[0];
    write!(
        out,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="ui-monospace, 'DejaVu Sans Mono', monospace" font-size="11">
<style>rect.box {{ stroke: #fff; stroke-width: .5 }} g:hover > rect.box {{ stroke: #000; stroke-width: 1 }} text {{ fill: #1a1a1a }}</style>
<rect width="100%" height="100%" fill="#fff"/>
<text x="{MARGIN}" y="18" font-size="14" font-weight="bold">{}</text>
<text x="{MARGIN}" y="34">width: time in spans, {} in all threads; point at a box for its numbers{}</text>
"##,
        escaped(title),
        format::time(Some(whole)),
        if call_tree.is_cut { CUT } else { "" },
    )?;
    for frame in &boxes {
        let node = &call_tree.nodes[frame.node];
        let label = &call_tree.labels[node.label];
        let y = HEAD + (depth - frame.depth) * ROW;
        let title = box_title(call_tree, frame.node, widths[frame.node], whole);
        writeln!(
            out,
            r#"<g><title>{}</title><rect class="box" x="{:.2}" y="{y}" width="{:.2}" height="{}" rx="1" fill="{}"/>{}</g>"#,
            escaped(&title),
            frame.x,
            frame.width,
            ROW - 1,
            colour(label, frame.depth),
            text(label, frame, y),
        )?;
    }
    writeln!(out, "</svg>")
}

fn layout(call_tree: &CallTree, widths: &[f64]) -> Vec<Box> {
    let scale = (WIDTH - 2.0 * MARGIN) / widths[0].max(1.0);
    let mut boxes = Vec::new();
    let mut waiting = vec![(0, 0, MARGIN)];
    while let Some((node, depth, x)) = waiting.pop() {
        let width = widths[node] * scale;
        if width < NARROWEST || depth > DEEPEST {
            continue;
        }
        boxes.push(Box { node, depth, x, width });
        let mut children = call_tree.nodes[node].children.clone();
        children.sort_by_key(|child| &call_tree.labels[call_tree.nodes[*child].label]);
        let mut at = x;
        for child in children {
            waiting.push((child, depth + 1, at));
            at += widths[child] * scale;
        }
    }
    boxes
}

/// The tooltip of a box.
fn box_title(call_tree: &CallTree, index: usize, width: f64, whole: f64) -> String {
    let node = &call_tree.nodes[index];
    let share = 100.0 * width / whole.max(1.0);
    let time = format::time(Some(width));
    let mut title = format!("{}: {time}, {share:.1} %", call_tree.labels[node.label]);
    if node.count > 0 {
        let mean = format::time(Some(node.total / node.count as f64));
        let _ = write!(title, ", {} times {mean}", node.count);
    }
    title
}

fn text(label: &str, frame: &Box, y: usize) -> String {
    let letters = ((frame.width - 6.0) / LETTER).max(0.0) as usize;
    let all = label.chars().count();
    let shown: String = if all <= letters {
        label.to_owned()
    } else if letters >= 3 {
        label.chars().take(letters - 1).chain(['…']).collect()
    } else {
        return String::new();
    };
    format!(r#"<text x="{:.2}" y="{}">{}</text>"#, frame.x + 3.0, y + 12, escaped(&shown))
}

/// A warm colour by the name, so that a span has the same wherever it is; grey for what is none.
fn colour(label: &str, depth: usize) -> String {
    if depth < 2 {
        return "hsl(210 12% 86%)".to_owned();
    }
    let hash = label.bytes().fold(5381u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(byte));
    format!("hsl({} {}% {}%)", 8 + hash % 44, 72 + hash / 44 % 20, 68 + hash / 880 % 10)
}

fn escaped(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        // No XML has them.
        _ if letter.is_control() => "\u{fffd}".to_owned(),
        _ => letter.to_string(),
    });
    letters.collect()
}
