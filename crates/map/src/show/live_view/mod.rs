// SPDX-License-Identifier: Apache-2.0
//! The live view on a terminal.

mod table;

use crate::show::output::text::bytes_of;
use crate::source::Source;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Row as TableRow, Table as TableWidget, TableState};
use std::time::{Duration, Instant};
use table::{COLUMNS, Column, Row, State, Table};
use tare_command::terminal::printable;
use tare_command::{Failure, ResultExt, Signals};
use tare_map::{Completeness, Method, Part, Protocol, Role};

const HELP: &str = "q quit  \u{2190}\u{2192} sort  r reverse  / search  \u{2191}\u{2193} scroll";

/// Keys and signals are looked at this often.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Until the user quits, or a signal.
pub fn run(source: &mut Source, signals: &Signals, interval: Duration) -> Result<(), Failure> {
    let mut terminal = ratatui::try_init().or_failed("the terminal")?;
    let result = watch(&mut terminal, source, signals, interval);
    ratatui::restore();
    result
}

fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    source: &mut Source,
    signals: &Signals,
    interval: Duration,
) -> Result<(), Failure> {
    let mut view = LiveView::new();
    view.is_polling = source.method() == Method::Poll;
    let mut due = Instant::now();
    loop {
        if due <= Instant::now() {
            let reading = source.read().map_err(Failure::work)?;
            view.completeness = reading.completeness;
            view.missing = reading.missing.iter().map(|missing| missing.part).collect();
            view.table.update(reading, Instant::now());
            due = Instant::now() + interval;
        }
        terminal.draw(|frame| view.draw(frame)).or_failed("the terminal")?;
        let end = due.min(Instant::now() + Duration::from_secs(1));
        loop {
            source.take_events();
            let rest = end.saturating_duration_since(Instant::now()).min(POLL_INTERVAL);
            let has_event = event::poll(rest).or_failed("the terminal")?;
            if signals.next().is_some() {
                return Ok(());
            }
            if has_event {
                let event = event::read().or_failed("the terminal")?;
                if matches!(event, Event::Key(key) if key.kind == KeyEventKind::Press && view.handle_key(key))
                {
                    return Ok(());
                }
                break;
            }
            if end <= Instant::now() {
                break;
            }
        }
    }
}

struct LiveView {
    table: Table,
    completeness: Completeness,
    missing: Vec<Part>,
    is_polling: bool,
    is_searching: bool,
    selection: TableState,
}

impl LiveView {
    fn new() -> Self {
        Self {
            table: Table::new(),
            completeness: Completeness::default(),
            missing: Vec::new(),
            is_polling: false,
            is_searching: false,
            selection: TableState::default().with_selected(Some(0)),
        }
    }

    /// Whether the user quits.
    fn handle_key(&mut self, key: KeyEvent) -> bool {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return true;
        }
        if self.is_searching {
            match key.code {
                KeyCode::Enter => self.is_searching = false,
                KeyCode::Esc => {
                    self.is_searching = false;
                    self.table.search.clear();
                }
                KeyCode::Backspace => {
                    self.table.search.pop();
                }
                KeyCode::Char(character) => self.table.search.push(character),
                _ => {}
            }
            return false;
        }
        match key.code {
            KeyCode::Char('q') => return true,
            KeyCode::Esc => self.table.search.clear(),
            KeyCode::Char('/') => self.is_searching = true,
            KeyCode::Char('r') => self.table.is_descending = !self.table.is_descending,
            KeyCode::Left => self.move_sorting(COLUMNS.len() - 1),
            KeyCode::Right => self.move_sorting(1),
            KeyCode::Up => self.selection.select_previous(),
            KeyCode::Down => self.selection.select_next(),
            KeyCode::PageUp => self.selection.scroll_up_by(20),
            KeyCode::PageDown => self.selection.scroll_down_by(20),
            KeyCode::Home => self.selection.select_first(),
            KeyCode::End => self.selection.select_last(),
            _ => {}
        }
        false
    }

    fn move_sorting(&mut self, by: usize) {
        let place = COLUMNS.iter().position(|column| *column == self.table.sorted_by).unwrap_or(0);
        self.table.sort_by(COLUMNS[(place + by) % COLUMNS.len()]);
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let rows = self.table.rows(Instant::now());
        let [top, middle, bottom] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
                .areas(frame.area());
        frame.render_widget(Line::raw(self.title(rows.len())), top);
        let header = COLUMNS.iter().map(|column| {
            let mark = match (*column == self.table.sorted_by, self.table.is_descending) {
                (false, _) => "",
                (true, true) => " \u{25bc}",
                (true, false) => " \u{25b2}",
            };
            Cell::from(format!("{}{mark}", name(*column)))
        });
        let widths = COLUMNS.iter().map(|column| match column {
            Column::Program | Column::Local => Constraint::Min(10),
            Column::Peer => Constraint::Min(13),
            Column::Service => Constraint::Min(9),
            Column::Active | Column::Failed => Constraint::Length(8),
            Column::Opened | Column::Sent | Column::Rtt => Constraint::Length(10),
            Column::Received => Constraint::Length(12),
        });
        let widget = TableWidget::new(rows.iter().map(row), widths)
            .header(TableRow::new(header).style(Style::new().add_modifier(Modifier::BOLD)))
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(widget, middle, &mut self.selection);
        let foot = if self.is_searching {
            format!("/{}_  Enter keeps, Esc clears", printable(&self.table.search, &[]))
        } else {
            HELP.to_owned()
        };
        frame.render_widget(Line::raw(foot), bottom);
    }

    fn title(&self, rows: usize) -> String {
        let mut title = format!("tare map: {rows} edges");
        if !self.table.search.is_empty() {
            title += &format!(" with {}", printable(&self.table.search, &[]));
        }
        if self.is_polling {
            title += " by polling";
        }
        let names = self.missing.iter().map(|part| part.name().replace('_', " "));
        let counts = serde_json::to_value(self.completeness).unwrap_or_default();
        let counts = counts.as_object().into_iter().flatten();
        let counts = counts.filter(|(_, count)| count.as_u64() != Some(0));
        let counts = counts.map(|(name, count)| format!("{} {count}", name.replace('_', " ")));
        let parts: Vec<_> = names.chain(counts).collect();
        if !parts.is_empty() {
            title += &format!("; not complete: {}", parts.join(", "));
        }
        title
    }
}

fn name(column: Column) -> &'static str {
    match column {
        Column::Program => "PROGRAM",
        Column::Local => "LOCAL",
        Column::Peer => "PEER",
        Column::Service => "SERVICE",
        Column::Active => "ACTIVE",
        Column::Opened => "OPENED/s",
        Column::Failed => "FAILED",
        Column::Sent => "SENT/s",
        Column::Received => "RECEIVED/s",
        Column::Rtt => "RTT",
    }
}

fn row(row: &Row) -> TableRow<'static> {
    let edge = &row.edge;
    let style = match row.state {
        State::New => Style::new().fg(Color::Green),
        State::Known => Style::new(),
        State::Gone => Style::new().fg(Color::Red),
        State::Idle => Style::new().fg(Color::DarkGray),
    };
    let program = if edge.program.is_empty() { "?" } else { &edge.program };
    let arrow = match edge.role {
        Role::Client => "->",
        Role::Server => "<-",
        Role::Other => "--",
    };
    let service = match &edge.service {
        Some(name) => format!("{} ({name})", edge.port),
        None => edge.port.to_string(),
    };
    let is_counted = edge.bytes_known || edge.protocol == Protocol::Udp;
    let cells = [
        // Other programs chose the name.
        printable(program, &[]).into_owned(),
        edge.local.to_string(),
        format!("{arrow} {}", edge.peer),
        service,
        if is_counted { edge.active.to_string() } else { "?".to_owned() },
        format!("{:.1}", row.opened_per_second),
        edge.failed.values().sum::<u64>().to_string(),
        bytes_of(edge, row.sent_per_second as u64),
        bytes_of(edge, row.received_per_second as u64),
        edge.rtt.map_or_else(String::new, |rtt| format!("{} us", rtt.sum_us / rtt.count)),
    ];
    TableRow::new(cells).style(style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::output::graph::tests::{edge, reading};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn screen(view: &mut LiveView) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(120, 6)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let cells: Vec<&str> = buffer.content().iter().map(|cell| cell.symbol()).collect();
        cells.chunks(120).map(|line| line.concat().trim_end().to_owned()).collect()
    }

    fn press(view: &mut LiveView, code: KeyCode) -> bool {
        view.handle_key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn view() -> LiveView {
        let mut view = LiveView::new();
        let edges = vec![
            edge(Role::Client, "curl\x1b[2J", "10.0.0.1", "10.0.0.2"),
            edge(Role::Server, "nginx", "10.0.0.2", "10.0.0.1"),
        ];
        view.table.update(reading(edges), Instant::now());
        view
    }

    #[test]
    fn screen_has_edges_without_control_characters() {
        let lines = screen(&mut view());
        assert_eq!(lines[0], "tare map: 2 edges");
        assert!(lines[1].starts_with("PROGRAM"));
        assert!(lines[1].contains("SENT/s \u{25bc}"));
        assert!(lines[2].starts_with("curl\\x1b"));
        assert!(lines[3].contains("<- 10.0.0.1"));
        assert!(lines[5].starts_with("q quit"));
    }

    #[test]
    fn keys_search_and_sort() {
        let mut view = view();
        for code in [KeyCode::Char('/'), KeyCode::Char('q'), KeyCode::Backspace] {
            assert!(!press(&mut view, code));
        }
        for character in "ngin".chars() {
            press(&mut view, KeyCode::Char(character));
        }
        let lines = screen(&mut view);
        assert_eq!(lines[0], "tare map: 1 edges with ngin");
        assert!(lines[5].starts_with("/ngin_"));
        press(&mut view, KeyCode::Enter);
        press(&mut view, KeyCode::Esc);
        press(&mut view, KeyCode::Right);
        assert_eq!(view.table.sorted_by, Column::Received);
        press(&mut view, KeyCode::Char('r'));
        assert!(screen(&mut view)[1].contains("RECEIVED/s \u{25b2}"));
        assert!(press(&mut view, KeyCode::Char('q')));
    }

    #[test]
    fn missing_parts_are_shown() {
        let mut view = view();
        view.completeness.lost_events = 3;
        view.missing = vec![Part::ShortConnections, Part::FailedConnects];
        let title = &screen(&mut view)[0];
        let missing = "; not complete: short connections, failed connects, lost events 3";
        assert_eq!(*title, format!("tare map: 2 edges{missing}"));
    }
}
