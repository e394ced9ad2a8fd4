//! The files of statements, which are SQL: a block is a line `--- ` with its name, lines about it, and the statement.
//!
//! ```sql
//! --- goals of a team, with a caller's word
//! -- :team string "Ajax"
//! SELECT sum(goals) FROM matches WHERE team = :team;
//! ```
//!
//! | A line about it | |
//! |---|---|
//! | `-- :name type JSON` | a parameter: what it is declared to be, and the value that is given |
//! | `-- refused STATUS CODE [code]` | it is not answered but refused so; `code` is the source's own (SQLSTATE, `SQLITE_AUTH`) or the fault's |
//! | `-- answers {"column": value}` | a row of the answer, where the client of the tests cannot tell it: its SQLite has no mathematics, and a value may be one that no literal is |
//! | `-- mariadb: why` | it is not asked of a MySQL, which has no such thing or answers otherwise |

use regex::{Captures, Regex};
use serde_json::{Map, Value};

pub struct Block {
    pub name: &'static str,
    pub sql: &'static str,
    pub parameters: Vec<Parameter>,
    pub refused: Option<Refused>,
    pub answers: Vec<Map<String, Value>>,
    pub is_mariadbs: bool,
}

pub struct Parameter {
    pub name: &'static str,
    /// As it is declared: `integer`, `number`, `string`, `boolean`, `date`, `timestamp`.
    pub kind: &'static str,
    pub value: Value,
}

pub struct Refused {
    pub status: u16,
    pub code: &'static str,
    pub of_source: Option<&'static str>,
}

/// The blocks of a file. What stands before the first one is about the file.
pub fn read(file: &'static str) -> Vec<Block> {
    file.split("\n--- ").skip(1).map(Block::read).collect()
}

impl Block {
    fn read(text: &'static str) -> Block {
        let (name, mut rest) = text.split_once('\n').expect("a name and a statement");
        let mut block = Block {
            name,
            sql: "",
            parameters: Vec::new(),
            refused: None,
            answers: Vec::new(),
            is_mariadbs: false,
        };
        while let Some((line, behind)) = rest.split_once('\n')
            && block.takes(line)
        {
            rest = behind;
        }
        block.sql = rest.trim();
        assert!(!block.sql.is_empty(), "{name} has no statement");
        block
    }

    /// Whether a line is about the statement, and not its beginning.
    fn takes(&mut self, line: &'static str) -> bool {
        if let Some(parameter) = line.strip_prefix("-- :") {
            self.parameters.push(Parameter::read(parameter));
        } else if let Some(refused) = line.strip_prefix("-- refused ") {
            self.refused = Some(Refused::read(refused));
        } else if let Some(row) = line.strip_prefix("-- answers ") {
            let row = serde_json::from_str(row);
            self.answers
                .push(row.unwrap_or_else(|error| panic!("{line}: {error}")));
        } else if line.starts_with("-- mariadb: ") {
            self.is_mariadbs = true;
        } else {
            return false;
        }
        true
    }

    /// The statement with a literal for each parameter, as its seller would try it.
    pub fn filled(&self, literal: impl Fn(&Parameter) -> String) -> String {
        let names = Regex::new(r"(^|[^:\w]):([A-Za-z_]\w*)").expect("a pattern");
        let written = |found: &Captures<'_>| {
            let mut parameters = self.parameters.iter();
            match parameters.find(|parameter| parameter.name == &found[2]) {
                Some(parameter) => format!("{}{}", &found[1], literal(parameter)),
                None => found[0].to_owned(),
            }
        };
        names.replace_all(self.sql, written).into_owned()
    }

    /// What a caller gives.
    pub fn values(&self) -> Value {
        let parameters = self.parameters.iter();
        parameters
            .map(|parameter| (parameter.name.to_owned(), parameter.value.clone()))
            .collect::<Map<String, Value>>()
            .into()
    }
}

impl Parameter {
    fn read(line: &'static str) -> Parameter {
        let mut parts = line.splitn(3, ' ');
        let (Some(name), Some(kind), Some(value)) = (parts.next(), parts.next(), parts.next())
        else {
            panic!("{line} is no parameter");
        };
        let value = serde_json::from_str(value).unwrap_or_else(|error| panic!("{line}: {error}"));
        Parameter { name, kind, value }
    }
}

impl Refused {
    fn read(line: &'static str) -> Refused {
        let mut parts = line.split(' ');
        let (Some(status), Some(code)) = (parts.next(), parts.next()) else {
            panic!("{line} is no refusal");
        };
        Refused {
            status: status.parse().expect("a status"),
            code,
            of_source: parts.next(),
        }
    }
}
