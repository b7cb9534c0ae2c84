// SPDX-License-Identifier: Apache-2.0
//! Numbers and tables as people read them.

use std::fmt::Write as _;

/// Nanoseconds in the unit that suits them.
pub fn time(nanoseconds: Option<f64>) -> String {
    match nanoseconds {
        None => "-".to_owned(),
        Some(time) if time < 1e3 => format!("{time:.0} ns"),
        Some(time) if time < 1e6 => format!("{:.1} µs", time / 1e3),
        Some(time) if time < 1e9 => format!("{:.2} ms", time / 1e6),
        Some(time) => format!("{:.2} s", time / 1e9),
    }
}

/// A count, or so many a second.
pub fn count(number: f64) -> String {
    match number {
        ..1e4 => format!("{number:.0}"),
        ..1e6 => format!("{:.1} k", number / 1e3),
        _ => format!("{:.2} M", number / 1e6),
    }
}

/// `1 thread`, `2 threads`.
pub fn counted(number: usize, singular: &str, plural: &str) -> String {
    format!("{number} {}", if number == 1 { singular } else { plural })
}

/// A name that others have given: it cannot steer the terminal, or change how what follows reads.
pub fn plain(name: &str) -> String {
    let steers = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}')
            || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut text = String::new();
    for letter in name.chars() {
        if steers(letter) {
            text.extend(letter.escape_default());
        } else {
            text.push(letter);
        }
    }
    text
}

/// The first column to the left, numbers to the right. Cells are made plain.
pub fn align(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<_>> =
        rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(text, "{cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_unit_that_suits_them() {
        let times = [None, Some(999.0), Some(1_000.0), Some(1.5e6), Some(2.25e9)].map(time);
        assert_eq!(times, ["-", "999 ns", "1.0 µs", "1.50 ms", "2.25 s"]);
        assert_eq!([0.0, 9_999.0, 10_000.0, 1e7].map(count), ["0", "9999", "10.0 k", "10.00 M"]);
    }

    #[test]
    fn names_do_not_steer_the_terminal() {
        let hostile = "größe \\ \x1b[2J\n\u{9b}\u{202e}\u{2066}\u{200f}\u{61c}";
        let shown = r"größe \ \u{1b}[2J\n\u{9b}\u{202e}\u{2066}\u{200f}\u{61c}";
        assert_eq!(plain(hostile), shown);
        assert_eq!(align(&[vec![hostile.to_owned()]]), format!("{shown}\n"));
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["span", "p50"], ["µs", "1.0 µs"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(align(&rows), "span     p50\nµs    1.0 µs\n");
    }
}
