//! Statements that only compute: `SELECT` of literals, casts (`'…'::TYPE`) and a few functions, with Snowflake's types and the values that it
//! tells of them.

use serde_json::Value;

use super::tables::Table;
use super::values::{Held, Kind, Typed, minutes_of, nanos_of, real, zoned};

/// The one row; `None` where the statement asks for more than literals.
pub fn row(text: &str, values: &[Typed]) -> Option<Table> {
    let mut reader = Reader {
        rest: text,
        values: values.iter(),
    };
    if !reader.takes_word("SELECT") {
        return None;
    }
    let mut table = Table {
        rows: vec![Vec::new()],
        ..Table::default()
    };
    loop {
        let begin = reader.rest.trim_start();
        let typed = reader.value()?;
        let name = match reader.takes_word("AS") {
            true => match reader.word() {
                name if name.starts_with('"') => name.trim_matches('"').to_owned(),
                name => name.to_uppercase(),
            },
            false => begin[..begin.len() - reader.rest.len()]
                .trim()
                .to_uppercase(),
        };
        table.columns.push((name, typed.kind));
        table.rows[0].push(typed.held);
        if !reader.takes(",") {
            break;
        }
    }
    reader.rest.trim().is_empty().then_some(table)
}

struct Reader<'a> {
    rest: &'a str,
    values: std::slice::Iter<'a, Typed>,
}

impl<'a> Reader<'a> {
    fn takes(&mut self, text: &str) -> bool {
        match self.rest.trim_start().strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// In any case, and no part of a longer word.
    fn takes_word(&mut self, word: &str) -> bool {
        let begin = self.rest;
        let found = self.word().eq_ignore_ascii_case(word);
        if !found {
            self.rest = begin;
        }
        found
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let is_part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '"');
        let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        self.rest = &rest[end..];
        &rest[..end]
    }

    /// A value, and what it is cast to.
    fn value(&mut self) -> Option<Typed> {
        let mut typed = self.plain()?;
        while self.takes("::") {
            let word = self.word();
            let kind = match self.takes("(") {
                true => {
                    let (numbers, rest) = self.rest.split_once(')')?;
                    self.rest = rest;
                    Kind::parse(&format!("{word}({numbers})"))?
                }
                false => Kind::parse(word)?,
            };
            typed = cast(typed, kind)?;
        }
        Some(typed)
    }

    fn plain(&mut self) -> Option<Typed> {
        if self.takes("?") {
            return self.values.next().cloned();
        }
        if self.takes("(") {
            let value = self.value()?;
            return self.takes(")").then_some(value);
        }
        if self.takes("'") {
            let text = self.text()?;
            return Some(typed(Kind::parse("varchar")?, Held::Text(text)));
        }
        if self.takes("$$") {
            let (text, rest) = self.rest.split_once("$$")?;
            self.rest = rest;
            return Some(typed(Kind::parse("varchar")?, Held::Text(text.to_owned())));
        }
        let begin = self.rest;
        match self.word().to_ascii_uppercase().as_str() {
            "TRUE" => return Some(typed(Kind::simple("boolean"), Held::Text("true".into()))),
            "FALSE" => return Some(typed(Kind::simple("boolean"), Held::Text("false".into()))),
            "NULL" => return Some(typed(Kind::parse("varchar")?, Held::Null)),
            "TO_BINARY" if self.takes("(") => {
                let Held::Text(text) = self.value()?.held else {
                    return None;
                };
                let held = Held::Text(text.to_uppercase());
                return self
                    .takes(")")
                    .then_some(typed(Kind::parse("binary")?, held));
            }
            "PARSE_JSON" if self.takes("(") => {
                let value = self.value()?;
                return self
                    .takes(")")
                    .then_some(typed(Kind::simple("variant"), value.held));
            }
            "TO_GEOGRAPHY" if self.takes("(") => {
                let value = self.value()?;
                return self
                    .takes(")")
                    .then_some(typed(Kind::simple("geography"), value.held));
            }
            "ARRAY_CONSTRUCT" if self.takes("(") => return self.array(),
            "OBJECT_CONSTRUCT" if self.takes("(") => return self.object(),
            _ => {}
        }
        self.rest = begin;
        self.number()
    }

    /// An element that is NULL is `undefined`.
    fn array(&mut self) -> Option<Typed> {
        let mut parts = Vec::new();
        while !self.takes(")") {
            parts.push(element(&self.value()?));
            self.takes(",");
        }
        let text = format!("[{}]", parts.join(","));
        Some(typed(Kind::simple("array"), Held::Text(text)))
    }

    /// Without members that are NULL.
    fn object(&mut self) -> Option<Typed> {
        let mut members = Vec::new();
        while !self.takes(")") {
            let name = element(&self.value()?);
            self.takes(",").then_some(())?;
            let value = self.value()?;
            if value.held != Held::Null {
                members.push(format!("{name}:{}", element(&value)));
            }
            self.takes(",");
        }
        let text = format!("{{{}}}", members.join(","));
        Some(typed(Kind::simple("object"), Held::Text(text)))
    }

    fn number(&mut self) -> Option<Typed> {
        let rest = self.rest.trim_start();
        let is_part = |char: char| char.is_ascii_digit() || matches!(char, '-' | '.' | 'e' | 'E');
        let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        let (digits, rest) = rest.split_at(end);
        self.rest = rest;
        if digits.contains(['e', 'E']) {
            let value = real(digits.parse().ok()?);
            return Some(typed(Kind::simple("real"), Held::Text(value)));
        }
        let scale = digits.split_once('.').map_or(0, |(_, part)| part.len());
        let count = digits.bytes().filter(u8::is_ascii_digit).count();
        if count == 0 || count > 38 {
            return None;
        }
        let kind = Kind::number(count.max(1) as u64, scale as u64);
        Some(typed(kind, Held::Text(digits.to_owned())))
    }

    /// The rest of a text, whose first quote was taken.
    fn text(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices().peekable();
        while let Some((at, char)) = chars.next() {
            match char {
                '\\' => text.push(match chars.next()?.1 {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                }),
                '\'' if chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                    chars.next();
                    text.push('\'');
                }
                '\'' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(text);
                }
                other => text.push(other),
            }
        }
        None
    }
}

fn typed(kind: Kind, held: Held) -> Typed {
    Typed { kind, held }
}

fn element(value: &Typed) -> String {
    match (&value.held, value.kind.name.as_str()) {
        (Held::Null, _) => "undefined".to_owned(),
        (Held::Text(text), "text") => Value::from(text.as_str()).to_string(),
        (Held::Text(text), _) => text.clone(),
        (other, _) => other.told(&Default::default()).to_string(),
    }
}

/// `None` where the value is none of the type.
fn cast(from: Typed, kind: Kind) -> Option<Typed> {
    let text = match from.held {
        Held::Null => return Some(typed(kind, Held::Null)),
        Held::Text(text) => text,
        held => return Some(typed(kind, held)),
    };
    let held = match kind.name.as_str() {
        "fixed" => {
            let scale = kind.scale.unwrap_or(0) as usize;
            let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
            let number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
            if !number(whole.trim_start_matches('-')) || !number(fraction) || fraction.len() > scale
            {
                return None;
            }
            match scale {
                0 => Held::Text(whole.to_owned()),
                scale => Held::Text(format!("{whole}.{fraction:0<scale$}")),
            }
        }
        "real" => Held::Text(real(text.parse().ok()?)),
        "boolean" => Held::Text(text.parse::<bool>().ok()?.to_string()),
        "date" => Held::Date(i64::try_from(nanos_of(&text)? / 86_400_000_000_000).ok()?),
        "time" => Held::Time(nanos_of(&text)?),
        "timestamp_ntz" => Held::Clock(nanos_of(&text)?),
        "timestamp_ltz" | "timestamp_tz" => {
            let (local, zone) = match text.rsplit_once(' ') {
                Some((local, zone)) if zone.starts_with(['+', '-']) => (local, minutes_of(zone)?),
                _ => (text.as_str(), 0),
            };
            match (zoned(nanos_of(local)?, zone), kind.name.as_str()) {
                (Held::Zoned(nanos, _), "timestamp_ltz") => Held::Moment(nanos),
                (held, _) => held,
            }
        }
        _ => Held::Text(text),
    };
    Some(typed(kind, held))
}
