//! What stands before a statement in its message: where tables are, in which zone clocks are, and the transaction that only reads. DuckDB parses all of a message before it runs any of
//! it, runs one statement after the other up to the first that fails, and answers the rows of the first that has some, which these have not.

use souk_sdk::texts::Proof;

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
    /// Connections have to be put to UTC. The server says this and what is next beside what it says of a statement that is not known.
    is_elsewhere: bool,
    /// Another engine's database is attached that may be written to; somebody's function has the name of one of DuckDB's own, or the server would not say. Both may
    /// change behind texts that are known, so that they are believed for a minute.
    has_foreign: bool,
    has_namesakes: bool,
    heard: Proof,
    /// When it was last asked for both, whatever has become of that.
    looked_at: Option<u64>,
}

impl Opening {
    pub fn of(settings: &Settings) -> Opening {
        Opening {
            uses: uses(settings),
            stays_used: settings.stays_used(),
            is_elsewhere: false,
            has_foreign: false,
            has_namesakes: false,
            heard: Proof::for_a_minute(),
            looked_at: None,
        }
    }

    /// Whether the server is to be asked now what decides if statements may be asked alone: the time, if it is. Of those that begin in one second it is one that
    /// asks; the others have their transactions.
    pub fn looks(&mut self, now: u64) -> Option<u64> {
        if self.heard.holds(now) || self.looked_at == Some(now) {
            return None;
        }
        self.looked_at = Some(now);
        self.looked_at
    }

    /// What the server has said of itself, and when it was asked for all of that, if it was.
    pub fn hears(&mut self, parsed: &Parsed, looked_at: Option<u64>) {
        self.is_elsewhere = parsed.is_elsewhere;
        self.has_foreign = parsed.has_foreign;
        if let Some(at) = looked_at {
            self.has_namesakes = parsed.has_namesakes;
            self.heard.give(at);
        }
    }

    /// It has not said it, when it was asked then: each statement has its transaction until it is asked again.
    pub fn hears_nothing(&mut self, looked_at: u64) {
        self.has_namesakes = true;
        self.heard.give(looked_at);
    }

    pub fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }

    /// Whether a statement that has passed may be asked alone at this time: what is done at another engine's database would stay where no transaction is taken back,
    /// and functions are DuckDB's own by their names.
    pub fn lets_alone(&self, now: u64) -> bool {
        self.heard.holds(now) && !self.has_foreign && !self.has_namesakes
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
