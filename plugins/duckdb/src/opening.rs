//! What stands before a statement in its message: where tables are, in which zone clocks are, and the transaction that only reads. DuckDB parses all of a message before it runs any of
//! it, runs one statement after the other up to the first that fails, and answers the rows of the first that has some, which these have not.

use crate::idle::Left;
use crate::parsed::Parsed;
use crate::settings::Settings;

/// Begins a transaction in which DuckDB writes to no database.
const BEGIN: &str = "BEGIN TRANSACTION READ ONLY;\n";
/// Of a connection alone. Where a moment meets a clock without a zone, DuckDB reads that in the connection's zone.
const IN_UTC: &str = "SET TimeZone = 'UTC'; ";
/// Ends the one before it, on a connection that another statement has left in its transaction.
const LEAVE: &str = "ROLLBACK;\n";

pub struct Opening {
    /// What puts a connection to where tables are that a statement names without, and whether it stays there.
    uses: String,
    stays_used: bool,
    /// Connections have to be put to UTC. The server says this and the next beside what it says of a statement that is not known.
    is_elsewhere: bool,
    has_foreign: bool,
}

impl Opening {
    pub fn of(settings: &Settings) -> Opening {
        Opening {
            uses: uses(settings),
            stays_used: settings.stays_used(),
            is_elsewhere: false,
            has_foreign: false,
        }
    }

    /// What the server has said of itself.
    pub fn hears(&mut self, parsed: &Parsed) {
        self.is_elsewhere = parsed.is_elsewhere;
        self.has_foreign = parsed.has_foreign;
    }

    pub fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }

    /// Whether what was done at another engine's database would stay, where no transaction is taken back.
    pub fn has_foreign(&self) -> bool {
        self.has_foreign
    }

    /// On a new connection.
    pub fn first(&self, begins: bool) -> [&str; 3] {
        let zone = when(self.is_elsewhere, IN_UTC);
        [self.uses.as_str(), zone, when(begins, BEGIN)]
    }

    /// On one that another statement has left. What stays set is not set again.
    pub fn next(&self, left: &Left, begins: bool) -> [&str; 4] {
        [
            when(left.is_within, LEAVE),
            when(!self.stays_used, self.uses.as_str()),
            when(self.is_elsewhere && !left.is_in_utc, IN_UTC),
            when(begins, BEGIN),
        ]
    }
}

fn when(is_so: bool, text: &str) -> &str {
    if is_so { text } else { "" }
}

/// What puts a connection to where tables are.
fn uses(settings: &Settings) -> String {
    let Some((database, schema)) = &settings.database else {
        return String::new();
    };
    let names = [Some(database), schema.as_ref()].into_iter().flatten();
    let names: Vec<String> = names.map(|name| identifier(name)).collect();
    format!("USE {}; ", names.join("."))
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
