//! Statements that only compute: `SELECT CAST('1.50' AS decimal(10, 2)) AS v, @P1 AS w`. They have SQL Server's types, which SQLite has not.

use rusqlite::types::Value;

use super::Table;
use super::calls::Values;
use super::types::Kind;

/// The one row of a statement, if it is one of these.
pub fn row(text: &str, values: &Values) -> Option<Table> {
    let text = text.trim().trim_end_matches(';').trim_end();
    let (select, list) = text.split_at_checked(7)?;
    if !select.eq_ignore_ascii_case("SELECT ") {
        return None;
    }
    let mut table = Table::default();
    let mut row = Vec::new();
    for item in items(list)? {
        let lower = item.to_ascii_lowercase();
        let (expression, name) = match lower.rfind(" as ") {
            Some(at) if !item[at..].contains(')') => (
                &item[..at],
                item[at + 4..].trim_matches(['[', ']', '"']).to_owned(),
            ),
            _ => (item, String::new()),
        };
        let (kind, value) = expressed(expression.trim(), values)?;
        table.columns.push((name, kind));
        row.push(value);
    }
    table.rows.push(row);
    Some(table)
}

/// What stands between commas that are in nothing.
fn items(list: &str) -> Option<Vec<&str>> {
    let (mut depth, mut is_quoted, mut from) = (0_i32, false, 0);
    let mut items = Vec::new();
    for (at, char) in list.char_indices() {
        match char {
            '\'' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                items.push(list[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    items.push(list[from..].trim());
    (!is_quoted && depth == 0).then_some(items)
}

fn expressed(text: &str, values: &Values) -> Option<(Kind, Value)> {
    let of = |name: &str, numbers: &[u32]| Kind {
        name: name.to_owned(),
        numbers: numbers.to_vec(),
        is_max: false,
    };
    let lower = text.to_ascii_lowercase();
    if lower.starts_with("cast(") && text.ends_with(')') {
        let at = lower.rfind(" as ")?;
        let kind = Kind::parse(&text[at + 4..text.len() - 1])?;
        let (_, value) = expressed(text[5..at].trim(), values)?;
        return Some((kind, value));
    }
    if lower.starts_with("replicate(") {
        let (what, count) = text[10..text.len() - 1].rsplit_once(',')?;
        let (_, value) = expressed(what.trim(), values)?;
        let Value::Text(text) = value else {
            return None;
        };
        let kind = Kind {
            is_max: true,
            ..Kind::simple("nvarchar")
        };
        return Some((kind, Value::Text(text.repeat(count.trim().parse().ok()?))));
    }
    if let Some(bound) = values.get(text) {
        return Some((bound.kind.clone(), bound.value.clone()));
    }
    let quoted = text.strip_prefix(['N', 'n']).unwrap_or(text);
    if let Some(inner) = quoted
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''))
    {
        if inner.replace("''", "").contains('\'') {
            return None;
        }
        let inner = inner.replace("''", "'");
        let length = inner.encode_utf16().count().max(1) as u32;
        let name = if quoted.len() < text.len() {
            "nvarchar"
        } else {
            "varchar"
        };
        return Some((of(name, &[length]), Value::Text(inner)));
    }
    if lower == "null" {
        return Some((of("int", &[]), Value::Null));
    }
    if lower == "@@trancount" {
        return None;
    }
    if let Some(digits) = lower.strip_prefix("0x") {
        let bytes = hex::decode(digits).ok()?;
        return Some((
            of("varbinary", &[bytes.len().max(1) as u32]),
            Value::Blob(bytes),
        ));
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty()
        || !digits.starts_with(|first: char| first.is_ascii_digit() || first == '$')
    {
        return None;
    }
    if let Some(money) = digits.strip_prefix('$') {
        let sign = if text.starts_with('-') { "-" } else { "" };
        return money
            .parse::<f64>()
            .is_ok()
            .then(|| (of("money", &[]), Value::Text(format!("{sign}{money}"))));
    }
    if let Ok(number) = text.parse::<i64>() {
        return Some(match i32::try_from(number) {
            Ok(_) => (of("int", &[]), Value::Integer(number)),
            // A number that is no int is a decimal.
            Err(_) => (
                of("numeric", &[digits.len() as u32, 0]),
                Value::Text(text.to_owned()),
            ),
        });
    }
    if lower.contains('e') {
        return text
            .parse()
            .ok()
            .map(|number| (of("float", &[]), Value::Real(number)));
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = [whole, fraction]
        .iter()
        .all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    is_number.then(|| {
        let numbers = [(whole.len() + fraction.len()) as u32, fraction.len() as u32];
        (of("numeric", &numbers), Value::Text(text.to_owned()))
    })
}
