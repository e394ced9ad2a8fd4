//! How a command shows what it found: a table for people, JSON for scripts. On standard output; what is only remarked goes to standard error.

use std::io::{ErrorKind, Write};

use anyhow::Result;
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

/// A title and the JSON pointer of what stands below it.
pub type Column = (&'static str, &'static str);

/// A row each, in `columns`; with `json` everything that the rows have.
pub fn list(json: bool, columns: &[Column], rows: &[Value]) -> Result<()> {
    if json {
        return print(&serde_json::to_string_pretty(rows)?);
    }
    let mut table = table();
    table.set_header(columns.iter().map(|(title, _)| *title));
    for row in rows {
        table.add_row(
            columns
                .iter()
                .map(|(_, pointer)| shown(row.pointer(pointer))),
        );
    }
    print(&lines(&table))
}

/// As [`list`], and says how many are not shown.
pub fn some(json: bool, columns: &[Column], (rows, total): &(Vec<Value>, usize)) -> Result<()> {
    list(json, columns, rows)?;
    let left = total.saturating_sub(rows.len());
    if left > 0 {
        eprintln!("{left} more are not shown; see --limit");
    }
    Ok(())
}

/// One thing, a line for each of its members that `columns` name.
pub fn one(json: bool, columns: &[Column], value: &Value) -> Result<()> {
    if json {
        return print(&serde_json::to_string_pretty(value)?);
    }
    let mut table = table();
    for (title, pointer) in columns {
        table.add_row([(*title).to_owned(), shown(value.pointer(pointer))]);
    }
    print(&lines(&table))
}

/// A sentence for people; scripts get `value`.
pub fn done(json: bool, sentence: &str, value: &Value) -> Result<()> {
    match json {
        true => print(&serde_json::to_string_pretty(value)?),
        false => print(sentence),
    }
}

fn table() -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// Without the blanks around it.
fn lines(table: &Table) -> String {
    let lines: Vec<String> = table
        .lines()
        .map(|line| {
            line.strip_prefix(' ')
                .unwrap_or(&line)
                .trim_end()
                .to_owned()
        })
        .collect();
    lines.join("\n")
}

/// In a cell: text as it is, nothing as a dash.
fn shown(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => {
            let items: Vec<String> = items.iter().map(|item| shown(Some(item))).collect();
            items.join(",")
        }
        Some(other) => other.to_string(),
    };
    plain(&text)
}

/// Text that somebody else wrote, without what would speak to the terminal.
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Whoever reads only the beginning (`souk keys list | head -1`) has had enough; that is no error.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What a user named himself cannot write to the operator's terminal.
    #[test]
    fn cells_hold_no_control_characters() {
        let text = |value| shown(Some(&value));
        assert_eq!(text(json!("a\u{1b}[2Jb\n")), "a [2Jb ");
        assert_eq!(text(json!(["read", "write"])), "read,write");
        assert_eq!(text(json!(null)), "-");
        assert_eq!(shown(None), "-");
        assert_eq!(text(json!(12)), "12");
    }
}
