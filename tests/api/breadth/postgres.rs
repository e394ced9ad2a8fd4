//! What PostgreSQL says to a client of its own: the text that the server writes, in which every digit is, made into what souk writes.

use std::iter::Peekable;
use std::str::Chars;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use souk_tests::PgCluster;
use tokio_postgres::types::{Kind, Type};
use tokio_postgres::{Client, SimpleQueryMessage};

use super::blocks::{Block, Parameter};
use super::spelling::{clock, day, moment};
use super::{Column, Row, Told};

pub const SCHEMA: &str = include_str!("postgres/schema.sql");
pub const ANSWERED: [&str; 4] = [
    include_str!("postgres/values.sql"),
    include_str!("postgres/functions.sql"),
    include_str!("postgres/queries.sql"),
    include_str!("postgres/parameters.sql"),
];
pub const REFUSED: &str = include_str!("postgres/refused.sql");

/// A client that reads only, on a clock in UTC, as souk's sessions are.
pub async fn client(cluster: &PgCluster, database: &str) -> Client {
    let client = cluster.client(database).await;
    let settings = "SET TIME ZONE 'UTC'; SET default_transaction_read_only = on";
    client.batch_execute(settings).await.expect("settings");
    client
}

/// What a statement that writes would change.
pub async fn state(client: &Client) -> String {
    let sql = "SELECT (SELECT md5(string_agg(s::text, ',' ORDER BY id)) FROM staff AS s) || (SELECT last_value || is_called::text FROM tickets)
        || (SELECT count(*) FROM pg_class) || (SELECT count(*) FROM pg_largeobject_metadata) || current_setting('default_transaction_read_only')";
    let row = client.query_one(sql, &[]).await.expect("the state");
    row.get(0)
}

/// What the statement answers, with the block's values written into it.
pub async fn told(client: &Client, block: &Block) -> Told {
    let sql = block.filled(literal);
    let statement = client.prepare(&sql).await;
    let statement = statement.unwrap_or_else(|error| panic!("{}: {error:?}", block.name));
    let columns = statement.columns();
    let messages = client.simple_query(&sql).await;
    let messages = messages.unwrap_or_else(|error| panic!("{}: {error:?}", block.name));
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let rows = rows.map(|row| {
        let cells = columns.iter().enumerate();
        cells
            .map(|(place, column)| row.get(place).map(|text| spelled(column.type_(), text)))
            .collect::<Row>()
    });
    Told {
        rows: rows.collect(),
        columns: columns
            .iter()
            .map(|column| told_column(column.name(), column.type_()))
            .collect(),
    }
}

fn told_column(name: &str, kind: &Type) -> Column {
    let is_float = [Type::FLOAT4, Type::FLOAT8].contains(kind);
    let is_number =
        is_float || [Type::INT2, Type::INT4, Type::INT8, Type::OID, Type::NUMERIC].contains(kind);
    let others = [
        Type::TEXT,
        Type::VARCHAR,
        Type::BPCHAR,
        Type::NAME,
        Type::DATE,
        Type::TIME,
        Type::TIMESTAMP,
        Type::TIMESTAMPTZ,
        Type::UUID,
    ];
    Column {
        name: name.to_owned(),
        is_number,
        is_float,
        sorts: is_number || others.contains(kind),
    }
}

/// A value as its seller would write it in psql.
fn literal(parameter: &Parameter) -> String {
    let kind = match parameter.kind {
        "integer" => "bigint",
        "number" => "numeric",
        "date" => "date",
        "timestamp" => "timestamptz",
        other => other,
    };
    match (&parameter.value, parameter.kind) {
        (Value::Null, "string") => "NULL".to_owned(),
        (Value::String(text), "string") => format!("'{}'", text.replace('\'', "''")),
        (Value::String(text), _) => format!("CAST('{text}' AS {kind})"),
        (Value::Number(number), "integer") => format!("({number})"),
        (value, _) => format!("CAST({value} AS {kind})"),
    }
}

/// A value as souk writes it.
fn spelled(kind: &Type, text: &str) -> String {
    match *kind {
        Type::BOOL => (text == "t").to_string(),
        Type::BYTEA => {
            let digits = text.strip_prefix("\\x").expect("bytes");
            STANDARD.encode(hex::decode(digits).expect("bytes"))
        }
        // In an array; elsewhere it is refused.
        _ if text.ends_with("infinity") => text.to_owned(),
        Type::DATE => day(text),
        Type::TIME => clock(text),
        Type::TIMESTAMP => moment(text),
        Type::TIMESTAMPTZ => format!("{}Z", moment(&text.replacen("+00", "", 1))),
        _ => match element_of(kind) {
            Some(element) => array(element, text),
            None => text.to_owned(),
        },
    }
}

/// The type of an array's elements, where the array leaves as JSON and not as the text that the server writes.
fn element_of(kind: &Type) -> Option<&Type> {
    let Kind::Array(element) = kind.kind() else {
        return None;
    };
    let known = [
        Type::BOOL,
        Type::BYTEA,
        Type::NAME,
        Type::INT2,
        Type::INT4,
        Type::INT8,
        Type::TEXT,
        Type::OID,
        Type::JSON,
        Type::JSONB,
        Type::FLOAT4,
        Type::FLOAT8,
        Type::BPCHAR,
        Type::VARCHAR,
        Type::DATE,
        Type::TIME,
        Type::TIMESTAMP,
        Type::TIMESTAMPTZ,
        Type::NUMERIC,
        Type::UUID,
    ];
    let is_known = known.contains(element) || matches!(element.kind(), Kind::Enum(_));
    is_known.then_some(element)
}

/// `{1,NULL,"a b"}` as JSON, nested as deep as its dimensions.
fn array(element: &Type, text: &str) -> String {
    // From where it is counted (`[0:2]={…}`) JSON does not say.
    let begin = text.find('{').expect("an array");
    let mut characters = text[begin..].chars().peekable();
    let mut json = String::new();
    while let Some(character) = characters.next() {
        match character {
            '{' => json.push('['),
            '}' => json.push(']'),
            ',' => json.push(','),
            '"' => json.push_str(&item(element, &quoted(&mut characters))),
            first => {
                let mut word = String::from(first);
                while let Some(next) = characters.next_if(|next| !matches!(next, ',' | '}')) {
                    word.push(next);
                }
                match word.as_str() {
                    "NULL" => json.push_str("null"),
                    word => json.push_str(&item(element, word)),
                }
            }
        }
    }
    json
}

/// What stands in quotes that are open.
fn quoted(characters: &mut Peekable<Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => text.extend(characters.next()),
            character => text.push(character),
        }
    }
    text
}

/// An element as JSON: a number or a document as it is, what JSON has no number for and everything else as a string.
fn item(kind: &Type, text: &str) -> String {
    let is_number = text.ends_with(|last: char| last.is_ascii_digit());
    match *kind {
        Type::INT2 | Type::INT4 | Type::INT8 | Type::OID | Type::JSON | Type::JSONB => {
            text.to_owned()
        }
        Type::BOOL => spelled(kind, text),
        Type::NUMERIC if is_number => text.to_owned(),
        // Shortest, which the server's are too.
        Type::FLOAT4 | Type::FLOAT8 if is_number => {
            let number: f64 = text.parse().expect("a number");
            Value::from(number).to_string()
        }
        _ => Value::from(spelled(kind, text)).to_string(),
    }
}
