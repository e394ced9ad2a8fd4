//! What is wrong with a body: checks that bodies of both kinds share.

use crate::refusals::{SQL_NOT_READ_ONLY, VALIDATION_ERROR};
use crate::runs::not_found;
use crate::{ApiState, Caller, FieldError, Problem};
use serde_json::Value;
use souk_app::failure::Cause;
use souk_app::products::{DEFAULT_TIMEOUT_MS, Speaks, TIMEOUT_MS_MAX, speaks};
use souk_domain::ids::{ConnectionId, UserId};
use souk_domain::slugs;
use souk_domain::sql::SqlError;
use souk_store::{AnyConnection, Write, connections, users};

pub const NAME_CHARS_MAX: usize = 255;
pub const TEXT_CHARS_MAX: usize = 5_000;
pub const LABEL_CHARS_MAX: usize = 100;
/// A member of a definition that is JSON, as it is kept: pages of a hundred products are written, and thousands of products are in memory.
const JSON_BYTES_MAX: usize = 64 << 10;
const TIMEOUT_MS_MIN: i64 = 100;
const NO_CONNECTION: &str = "the company has no such connection";

/// What is wrong so far.
#[derive(Default)]
pub struct Errors(Vec<FieldError>);

impl Errors {
    pub fn add(&mut self, field: &str, code: &'static str, message: impl Into<String>) {
        self.0.push(FieldError::new(field, code, message));
    }

    pub fn take<T: Default>(&mut self, result: Result<T, Vec<FieldError>>) -> T {
        result.unwrap_or_else(|errors| {
            self.0.extend(errors);
            T::default()
        })
    }

    /// A text within bounds; `None` when it is absent.
    pub fn text(&mut self, field: &str, text: Option<String>, chars_max: usize) -> Option<String> {
        let text = text?;
        if text.chars().count() > chars_max || text.contains('\0') {
            self.add(
                field,
                "too_long",
                format!("must be a text of at most {chars_max} characters"),
            );
        }
        Some(text)
    }

    /// JSON within bounds, members that nobody knows included: they are kept too.
    pub fn json(&mut self, field: &str, json: Option<&Value>) {
        let bytes = json.map_or(0, |json| json.to_string().len());
        if bytes > JSON_BYTES_MAX {
            let message = format!("takes {bytes} bytes as JSON, and may take {JSON_BYTES_MAX}");
            self.add(field, "too_long", message);
        }
    }

    pub fn required(&mut self, field: &str, text: Option<String>, chars_max: usize) -> String {
        match self.text(field, text, chars_max) {
            Some(text) if !text.trim().is_empty() => text,
            _ => {
                self.add(field, "required", "is required");
                String::new()
            }
        }
    }

    pub fn sql(&mut self, error: &SqlError) -> Problem {
        let refusal = match error {
            SqlError::NotReadOnly(_) => SQL_NOT_READ_ONLY,
            _ => VALIDATION_ERROR,
        };
        self.add("sql_logic", "invalid", error.to_string());
        Problem::fields(refusal, std::mem::take(&mut self.0))
    }

    pub fn check(self) -> Result<(), Problem> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(Problem::fields(VALIDATION_ERROR, self.0)),
        }
    }
}

pub fn connection(errors: &mut Errors, id: Option<String>) -> Option<ConnectionId> {
    let Some(id) = id else {
        errors.add("connection_id", "required", "is required");
        return None;
    };
    match ConnectionId::parse(&id) {
        Ok(id) => Some(id),
        Err(error) => {
            errors.add("connection_id", "invalid", error.to_string());
            None
        }
    }
}

/// As given, or made from the name.
pub fn slug(errors: &mut Errors, given: Option<String>, name: &str, otherwise: &str) -> String {
    match given {
        Some(slug) => {
            if let Err(error) = slugs::check_slug(&slug) {
                errors.add("slug", "invalid", error.to_string());
            }
            slug
        }
        None => slugs::slug_from(name).unwrap_or_else(|| otherwise.to_owned()),
    }
}

pub fn timeout(errors: &mut Errors, given: Option<i64>) -> i64 {
    let timeout = given.unwrap_or(DEFAULT_TIMEOUT_MS);
    if !(TIMEOUT_MS_MIN..=TIMEOUT_MS_MAX).contains(&timeout) {
        errors.add(
            "timeout_ms",
            "out_of_range",
            format!("must be between {TIMEOUT_MS_MIN} and {TIMEOUT_MS_MAX}"),
        );
    }
    timeout
}

/// What the engine of a connection takes. `None`: the company has no such connection, which is noted.
pub async fn engine(
    errors: &mut Errors,
    api: &ApiState,
    caller: &Caller,
    connection: &ConnectionId,
) -> Result<Option<Speaks>, Problem> {
    let mut db = api.db().read().await?;
    match speaks(api.app(), &mut db, caller.company(), connection).await {
        Ok(speaks) => Ok(Some(speaks)),
        Err(Cause::NotFound) => {
            errors.add("connection_id", "unknown", NO_CONNECTION);
            Ok(None)
        }
        Err(error) => Err(not_found(error, "connection", connection.as_str())),
    }
}

/// Keeps the connection that a product is given to from being deleted until the transaction ends. It may have been since [`engine`] looked at it.
pub async fn keep_connection(
    write: &mut Write,
    caller: &Caller,
    connection: &ConnectionId,
) -> Result<(), Problem> {
    if connections::lock(write, caller.company(), connection).await? {
        return Ok(());
    }
    let gone = FieldError::new("connection_id", "unknown", NO_CONNECTION);
    Err(Problem::fields(VALIDATION_ERROR, vec![gone]))
}

/// The user that a new product belongs to: the body's, else the key's, else the company's first.
pub async fn user(
    db: &mut AnyConnection,
    caller: &Caller,
    given: Option<&str>,
) -> Result<UserId, Problem> {
    let unknown = || {
        Problem::fields(
            VALIDATION_ERROR,
            vec![FieldError::new(
                "user_id",
                "unknown",
                "the company has no such user",
            )],
        )
    };
    if let Some(given) = given {
        let id = UserId::parse(given).map_err(|_| unknown())?;
        return match users::get(db, caller.company(), &id).await? {
            Some(_) => Ok(id),
            None => Err(unknown()),
        };
    }
    if let (Some(user), true) = (caller.user(), caller.company() == caller.payer()) {
        return Ok(user.clone());
    }
    match users::first(db, caller.company()).await? {
        Some(user) => Ok(user),
        None => Err(Problem::invalid(
            "user_id",
            "is required: the company has no user yet",
        )),
    }
}
