//! The statements that hosts write in the dialect `generic`, and no other: one table or a statement as a source, comparisons joined by
//! AND, an order, a limit with an offset (none where a row is asked for by its key).

use souk_guests::souk_sdk::Value;
use std::cmp::Ordering;

#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    Null,
    Int(i64),
    Float(f64),
    Decimal(String),
    Date(i32),
    Text(String),
}

enum Source {
    Table,
    Statement(Box<Statement>),
}

enum Condition {
    Never,
    Compares(String, String, Vec<Value>),
}

pub struct Statement {
    columns: Option<Vec<String>>,
    source: Source,
    conditions: Vec<Condition>,
    order: Vec<(String, bool)>,
    limit: Option<usize>,
    offset: usize,
}

struct Parser<'a> {
    tokens: Vec<String>,
    at: usize,
    values: std::slice::Iter<'a, Value>,
}

impl Statement {
    pub fn nothing() -> Statement {
        Statement {
            columns: None,
            source: Source::Table,
            conditions: vec![Condition::Never],
            order: Vec::new(),
            limit: None,
            offset: 0,
        }
    }

    pub fn parse(text: &str, values: &[Value]) -> Result<Statement, String> {
        let mut parser = Parser {
            tokens: tokens(text)?,
            at: 0,
            values: values.iter(),
        };
        let statement = parser.select()?;
        match parser.tokens.get(parser.at) {
            None => Ok(statement),
            Some(rest) => Err(format!("{rest} is too much")),
        }
    }

    pub fn ignore_order(&mut self) {
        self.order.clear();
    }

    pub fn ignore_filter(&mut self) {
        self.conditions
            .retain(|condition| matches!(condition, Condition::Never));
    }

    pub fn begin_earlier(&mut self) {
        self.offset = self.offset.saturating_sub(1);
    }

    /// Which columns, and the rows with all columns.
    pub fn run(
        &self,
        names: &[&str],
        table: Vec<Vec<Datum>>,
    ) -> Result<(Vec<usize>, Vec<Vec<Datum>>), String> {
        let (inner, mut rows) = match &self.source {
            Source::Table => ((0..names.len()).collect(), table),
            Source::Statement(inner) => inner.run(names, table)?,
        };
        let find = |name: &String| {
            let known = names.iter().position(|known| known == name);
            known
                .filter(|at| inner.contains(at))
                .ok_or_else(|| format!("there is no column {name}"))
        };
        for condition in &self.conditions {
            match condition {
                Condition::Never => rows.clear(),
                Condition::Compares(name, operator, values) => {
                    let at = find(name)?;
                    rows.retain(|row| values.iter().any(|value| holds(&row[at], operator, value)));
                }
            }
        }
        for (name, descending) in self.order.iter().rev() {
            let at = find(name)?;
            rows.sort_by(|left, right| {
                let order = compare(&left[at], &right[at]);
                if *descending { order.reverse() } else { order }
            });
        }
        let rows = rows.into_iter().skip(self.offset);
        let rows = rows.take(self.limit.unwrap_or(usize::MAX)).collect();
        let columns = match &self.columns {
            None => inner.clone(),
            Some(columns) => columns.iter().map(find).collect::<Result<_, _>>()?,
        };
        Ok((columns, rows))
    }
}

impl Parser<'_> {
    fn next(&mut self) -> Result<String, String> {
        let token = self.tokens.get(self.at).ok_or("the statement ends")?;
        self.at += 1;
        Ok(token.clone())
    }

    fn eat(&mut self, word: &str) -> bool {
        let is_it = self.tokens.get(self.at).is_some_and(|token| token == word);
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        match self.eat(word) {
            true => Ok(()),
            false => Err(format!(
                "{word} is missing at {:?}",
                self.tokens.get(self.at)
            )),
        }
    }

    /// `"name"` or `s."name"`.
    fn name(&mut self) -> Result<String, String> {
        let mut token = self.next()?;
        if token == "s" {
            self.expect(".")?;
            token = self.next()?;
        }
        token
            .strip_prefix('"')
            .map(str::to_owned)
            .ok_or(format!("{token} is no name"))
    }

    fn number(&mut self) -> Result<usize, String> {
        match self.eat("?") {
            true => match self.values.next() {
                Some(Value::Int64(value)) => Ok(*value as usize),
                other => Err(format!("{other:?} is no number of rows")),
            },
            false => self.next()?.parse().map_err(|_| "no number".to_owned()),
        }
    }

    fn bound(&mut self) -> Result<Value, String> {
        self.expect("?")?;
        self.values
            .next()
            .cloned()
            .ok_or("a value is missing".into())
    }

    fn select(&mut self) -> Result<Statement, String> {
        let mut statement = Statement::nothing();
        statement.conditions.clear();
        self.expect("SELECT")?;
        if !self.eat("*") {
            let mut columns = vec![self.name()?];
            while self.eat(",") {
                columns.push(self.name()?);
            }
            statement.columns = Some(columns);
        }
        self.expect("FROM")?;
        if self.eat("(") {
            statement.source = Source::Statement(Box::new(self.select()?));
            self.expect(")")?;
        } else {
            for (at, part) in ["main", "items"].into_iter().enumerate() {
                if at > 0 {
                    self.expect(".")?;
                }
                if self.name()? != part {
                    return Err("there is no such table".into());
                }
            }
        }
        self.expect("AS")?;
        self.expect("s")?;
        if self.eat("WHERE") {
            loop {
                let condition = self.condition()?;
                statement.conditions.push(condition);
                if !self.eat("AND") {
                    break;
                }
            }
        }
        if self.eat("ORDER") {
            self.expect("BY")?;
            loop {
                let name = self.name()?;
                let descending = self.eat("DESC");
                statement.order.push((name, descending));
                if !self.eat(",") {
                    break;
                }
            }
        }
        if self.eat("LIMIT") {
            statement.limit = Some(self.number()?);
            if self.eat("OFFSET") {
                statement.offset = self.number()?;
            }
        }
        Ok(statement)
    }

    fn condition(&mut self) -> Result<Condition, String> {
        if self.eat("1") {
            self.expect("=")?;
            self.expect("0")?;
            return Ok(Condition::Never);
        }
        let name = self.name()?;
        let operator = self.next()?;
        let mut values = Vec::new();
        if operator == "IN" {
            self.expect("(")?;
            values.push(self.bound()?);
            while self.eat(",") {
                values.push(self.bound()?);
            }
            self.expect(")")?;
            return Ok(Condition::Compares(name, "=".into(), values));
        }
        values.push(self.bound()?);
        if operator == "LIKE" {
            self.expect("ESCAPE")?;
            self.expect("'!'")?;
        }
        Ok(Condition::Compares(name, operator, values))
    }
}

/// Names keep their first quote, so that they are told from words.
fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => 1 + rest[1..].find('"').ok_or("a name does not end")?,
            '\'' => 2 + rest[1..].find('\'').ok_or("a text does not end")?,
            '<' | '>' if rest[1..].starts_with('=') => 2,
            letter if letter.is_ascii_alphanumeric() || letter == '_' => rest
                .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
                .unwrap_or(rest.len()),
            other => other.len_utf8(),
        };
        tokens.push(rest[..length].to_owned());
        let past = length + usize::from(first == '"');
        rest = rest[past..].trim_start();
    }
    Ok(tokens)
}

/// NULL comes first, as good a place as any.
fn compare(left: &Datum, right: &Datum) -> Ordering {
    match (left, right) {
        (Datum::Null, Datum::Null) => Ordering::Equal,
        (Datum::Null, _) => Ordering::Less,
        (_, Datum::Null) => Ordering::Greater,
        (Datum::Text(left), Datum::Text(right)) => left.cmp(right),
        (left, right) => number(left).total_cmp(&number(right)),
    }
}

fn number(datum: &Datum) -> f64 {
    match datum {
        Datum::Int(value) => *value as f64,
        Datum::Float(value) => *value,
        Datum::Decimal(digits) => digits.parse().unwrap_or(f64::NAN),
        Datum::Date(days) => f64::from(*days),
        _ => f64::NAN,
    }
}

fn holds(datum: &Datum, operator: &str, value: &Value) -> bool {
    let value = match value {
        Value::Int64(value) => Datum::Int(*value),
        Value::Float64(value) => Datum::Float(*value),
        Value::Decimal(digits) => Datum::Decimal(digits.clone()),
        Value::Date(days) => Datum::Date(*days),
        Value::Text(text) => Datum::Text(text.clone()),
        _ => return false,
    };
    if *datum == Datum::Null {
        return false;
    }
    if let ("LIKE", Datum::Text(text), Datum::Text(pattern)) = (operator, datum, &value) {
        let mut prefix = String::new();
        let mut letters = pattern.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '!' => prefix.extend(letters.next()),
                '%' => break,
                letter => prefix.push(letter),
            }
        }
        return text.starts_with(&prefix);
    }
    let order = compare(datum, &value);
    match operator {
        "=" => order == Ordering::Equal,
        ">" => order == Ordering::Greater,
        ">=" => order != Ordering::Less,
        "<" => order == Ordering::Less,
        "<=" => order != Ordering::Greater,
        _ => false,
    }
}
