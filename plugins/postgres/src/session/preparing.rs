//! What becomes of a statement that the server has prepared, or could not: the types of its columns are looked up where they are the database's own, and
//! what waits for it is asked.

use super::pooled::is_ancient;
use super::{Known, Session};
use crate::errors::ServerError;
use crate::job::{Job, Lookup, Prepare};
use crate::protocol::{self, malformed};
use crate::statements::{Ask, Description, TURNED_AWAY_MAX};
use crate::types::{self, Reading};
use crate::typing::Typing;
use souk_sdk::{Error, Step, Value};

/// Types of the database's own that a session remembers; past it they are looked up again.
const TYPES_MAX: usize = 1_024;

/// Name of the type, and whether it is an array of an enumeration, which we read in binary.
const LOOKUP: &str = "SELECT t.oid::text, pg_catalog.format_type(t.oid, NULL), \
     COALESCE(t.typcategory = 'A' AND e.typtype = 'e', false)::text \
     FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem WHERE t.oid = ANY ($1::oid[])";

/// The same of a server that knows neither enumerations nor arrays of parameters.
const LOOKUP_ANCIENT: &str = "SELECT t.oid::int8::text, pg_catalog.format_type(t.oid, NULL), 'false'::text \
     FROM pg_catalog.pg_type t WHERE t.oid IN ($1)";

impl Session {
    pub(super) fn prepare_ended(&mut self, job: Prepare, step: &mut Step) -> Result<(), Error> {
        if let Some(error) = job.error {
            if error.may_be_a_cancel() && self.strays > 0 {
                // A cancel that was meant for another job.
                self.strays -= 1;
                self.prepare_again(job.number, self.is_pooled(), step);
            } else if error.is_aborted() && self.statements.are_turned_away(job.number) {
                self.prepare_again(job.number, false, step);
            } else {
                self.retype_or_refuse(job.number, *error, step);
            }
            return Ok(());
        }
        if job.description.columns.is_empty() {
            let error = Error::source_failed("no_result", "the statement returns no columns");
            self.refuse_asks(job.number, error, step);
            return Ok(());
        }
        let lookup = Lookup {
            number: job.number,
            description: job.description,
            turned_away: 0,
            error: None,
        };
        self.look_up(lookup, step)
    }

    /// Runs what waits for a statement, as soon as the types of its columns are known.
    fn look_up(&mut self, job: Lookup, step: &mut Step) -> Result<(), Error> {
        let own = job.description.columns.iter().map(|c| c.type_oid);
        let unknown: Vec<u32> = own
            .filter(|&oid| types::native(oid, -1).is_none() && !self.types.contains_key(&oid))
            .collect();
        if unknown.is_empty() {
            self.run_prepared(job.number, job.description, step);
            return Ok(());
        }
        let lookup = Job::Lookup(job);
        if is_ancient(&self.server_version) {
            let list = unknown.iter().map(u32::to_string).collect::<Vec<_>>();
            let text = LOOKUP_ANCIENT.replace("$1", &list.join(","));
            return self.run_own(("types", &text), &[], &[], lookup, step);
        }
        let (types, oids) = (
            [types::oid::FIRST_OWN],
            [Value::Json(format!("{unknown:?}"))],
        );
        self.run_own(("types", LOOKUP), &types, &oids, lookup, step)
    }

    pub(super) fn looked_up(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut reader = protocol::Reader(body);
        reader.u16()?;
        let mut field = || -> Result<String, Error> {
            Ok(String::from_utf8_lossy(reader.value()?.unwrap_or_default()).into_owned())
        };
        let (oid, name, enumerations) = (
            field()?.parse().map_err(|_| malformed())?,
            field()?,
            field()? == "true",
        );
        if self.types.len() >= TYPES_MAX {
            self.types.clear();
        }
        self.types.insert(
            oid,
            Known {
                name,
                reading: enumerations.then_some(Reading::Array),
            },
        );
        Ok(())
    }

    pub(super) fn lookup_ended(&mut self, mut job: Lookup, step: &mut Step) -> Result<(), Error> {
        let error = job.error.take();
        if let Some(error) = &error
            && job.turned_away < TURNED_AWAY_MAX
            && self.is_of_others(error)
        {
            job.turned_away += 1;
            return self.look_up(job, step);
        }
        match error {
            // Without the names the values are still right: text.
            Some(error) if !error.is_cancelled() && !error.is_aborted() => {
                self.refuse_asks(job.number, error.blame(false, false), step);
            }
            _ => self.run_prepared(job.number, job.description, step),
        }
        Ok(())
    }

    /// Whether an error says nothing of the job that has met it: the transaction before it had failed, or a cancel that was meant for another job has
    /// found it.
    pub(super) fn is_of_others(&mut self, error: &ServerError) -> bool {
        let is_stray = error.may_be_a_cancel() && self.strays > 0;
        self.strays -= u32::from(is_stray);
        is_stray || error.is_aborted()
    }

    fn run_prepared(&mut self, number: u64, mut description: Description, step: &mut Step) {
        for column in &mut description.columns {
            if let Some(known) = self.types.get(&column.type_oid).cloned() {
                (column.native, column.reading) = (known.name, known.reading);
            }
            if is_ancient(&self.server_version) {
                column.reading = column.reading.map(Reading::of_ancient);
            }
        }
        let Some((statement, asks)) = self.statements.prepared(number, description) else {
            return;
        };
        for ask in asks {
            // Where a type has to be told, all of them are prepared anew.
            self.ask(&statement.text.clone(), ask, step);
        }
    }

    /// The server could not prepare a statement: where it wants to be told types, was told one that it has no use for, or was wrong about one, it is
    /// asked again.
    #[cold]
    fn retype_or_refuse(&mut self, number: u64, error: ServerError, step: &mut Step) {
        let Some((text, asks)) = self.statements.take_back(number) else {
            return;
        };
        let unknown = error.untyped();
        let another = |ask: &Ask| Typing::after(&ask.typing, unknown.as_ref(), &ask.parameters);
        let typing = asks.first().and_then(another);
        let Some(typing) = typing else {
            let error = error.blame(false, false);
            asks.into_iter()
                .for_each(|ask| step.failed(ask.id, error.clone()));
            return;
        };
        for ask in asks {
            let typing = Some(typing.clone());
            self.ask(&text, Ask { typing, ..ask }, step);
        }
    }

    /// `counts`: it is not done a second time.
    fn prepare_again(&mut self, number: u64, counts: bool, step: &mut Step) {
        if let Some((text, asks)) = self.statements.take_back(number) {
            for mut ask in asks {
                ask.retried |= counts;
                self.ask(&text, ask, step);
            }
        }
    }

    fn refuse_asks(&mut self, number: u64, error: Error, step: &mut Step) {
        for ask in self
            .statements
            .take_back(number)
            .map(|(_, asks)| asks)
            .unwrap_or_default()
        {
            step.failed(ask.id, error.clone());
        }
    }
}
