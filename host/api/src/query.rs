//! Query strings as typed structs: a field is a parameter, its type says what it may be, its comment what it means. Unknown, repeated and
//! malformed parameters are all named in one 400.
//!
//! ```ignore
//! parameters! {
//!     pub struct Wanted {
//!         ..paging: Paging,
//!         /// Only keys in this state.
//!         status: Option<KeyState>,
//!         /// Keys that have ended, too.
//!         ended: bool = false,
//!     }
//! }
//! choices! { impl KeyState { Active = "active", Expired = "expired", Deactivated = "deactivated" } }
//! ```
//!
//! A handler takes `Query(wanted): Query<Wanted>`; the gate has read it before. Start reading at [`Reader`].

use crate::fields::Text;
use crate::problem::{FieldError, Problem};
use crate::refusals;
use axum::extract::Request;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use souk_domain::parameters::integer;
use souk_domain::time::{DAY, Timestamp};
use souk_store::Part;
use souk_store::lists::OFFSET_MAX;

/// More parameters than any operation has: a bound on the work below.
const PARAMETERS_MAX: usize = 100;

/// The query parameters of a request. What is absent is `None`, or what its type has for a default.
#[derive(Clone, Default)]
pub struct Query<T>(pub T);

/// A parameter, for the description.
pub struct Param {
    pub name: &'static str,
    pub about: String,
    pub schema: Value,
}

impl Param {
    /// Says in the schema and in words what holds when it is left out.
    pub fn with_default<T: Shown>(mut self, default: &T) -> Param {
        let value = default.shown();
        let text = match &value {
            Value::String(word) => word.clone(),
            other => other.to_string(),
        };
        self.about = format!("{} Default {text}.", self.about);
        self.schema["default"] = value;
        self
    }
}

/// What takes the values of parameters.
pub trait Values {
    /// `None`: it has no such parameter.
    fn put(&mut self, name: &str, text: &str) -> Option<Result<(), String>>;
    /// Takes what is not declared, and which of the declared ones came again, if the query is open.
    fn keep(&mut self, _: Vec<(String, String)>, _: Vec<&'static str>) {}
}

/// All parameters of an operation, or some that go together. Made by [`parameters!`].
pub trait Parameters: Values + Default + Clone + Send + Sync + 'static {
    /// Further parameters are handed to the handler (filters, parameters of an asset).
    const OPEN: bool = false;
    fn declare(into: &mut Vec<Param>);
}

/// What one parameter may be.
pub trait Parameter: Sized {
    fn schema() -> Value;
    /// Refuses with what it must be.
    fn read(text: &str) -> Result<Self, String>;
}

/// A parameter that can be what holds when it is left out: then sending it is the same as leaving it out, which generated clients make use of.
/// What depends upon another parameter is an `Option`, and told in words.
pub trait Shown: Parameter {
    /// As it stands in a query.
    fn shown(&self) -> Value;
}

/// Reads the query of one operation. What is not declared is refused, what breaks its type is refused: a handler sees valid values only.
pub struct Reader {
    pub params: Vec<Param>,
    pub open: bool,
    read: fn(&Reader, &mut Request) -> Result<(), Problem>,
}

impl Reader {
    pub fn of<T: Parameters>() -> Reader {
        let mut params = Vec::new();
        T::declare(&mut params);
        Reader {
            params,
            open: T::OPEN,
            read: |reader, request| {
                let mut query = Query(T::default());
                reader.fill(request.uri().query().unwrap_or_default(), &mut query.0)?;
                request.extensions_mut().insert(query);
                Ok(())
            },
        }
    }

    /// Puts the [`Query`] that a handler takes into the extensions of its request.
    pub fn read(&self, request: &mut Request) -> Result<(), Problem> {
        match request.uri().query().is_some_and(|text| !text.is_empty()) {
            true => (self.read)(self, request),
            false => Ok(()),
        }
    }

    fn fill(&self, query: &str, values: &mut dyn Values) -> Result<(), Problem> {
        let mut errors = Vec::new();
        let mut seen: u128 = 0;
        let (mut rest, mut repeated) = (Vec::new(), Vec::new());
        for (place, (name, text)) in form_urlencoded::parse(query.as_bytes()).enumerate() {
            if place >= PARAMETERS_MAX {
                return Err(Problem::parameter(
                    name,
                    format!("more than {PARAMETERS_MAX} query parameters"),
                ));
            }
            // As this, bytes are read that are no text: something else would be looked for.
            let is_doubtful = [&name, &text].iter().any(|it| it.contains('\u{fffd}'));
            if is_doubtful && percent_decode_str(query).decode_utf8().is_err() {
                let message = "must be UTF-8, percent-encoded";
                errors.push(FieldError::new(name, "invalid", message));
                continue;
            }
            let declared = self.params.iter().position(|param| param.name == name);
            if let Some(place) = declared.filter(|place| seen & (1 << place) != 0) {
                match self.open {
                    true => repeated.push(self.params[place].name),
                    false => {
                        errors.push(FieldError::new(name, "repeated", "may be given only once"));
                    }
                }
                continue;
            }
            match declared.and_then(|place| Some((place, values.put(&name, &text)?))) {
                Some((place, Ok(()))) => seen |= 1 << place,
                Some((_, Err(message))) => errors.push(FieldError::new(name, "invalid", message)),
                None if self.open => rest.push((name.into_owned(), text.into_owned())),
                None => errors.push(FieldError::new(name, "unknown", self.unknown())),
            }
        }
        if !errors.is_empty() {
            return Err(Problem::fields(refusals::INVALID_PARAMETER, errors));
        }
        values.keep(rest, repeated);
        Ok(())
    }

    fn unknown(&self) -> String {
        if self.params.is_empty() {
            return "this operation takes no query parameters".to_owned();
        }
        let names: Vec<&str> = self.params.iter().map(|param| param.name).collect();
        let names = names.join(", ");
        format!("not a parameter of this operation, which takes {names}")
    }
}

/// Declares a struct of query parameters. A line that begins with `..` takes in a group of them. What stands behind `=` is what a parameter is
/// that was left out, for the handler and for the document.
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        $visible:vis struct $name:ident {
            $(..$group:ident: $Group:ty,)*
            $($(#[doc = $about:literal])+ $field:ident: $Type:ty $(= $default:expr)?,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone)]
        $visible struct $name {
            $($visible $group: $Group,)*
            $($(#[doc = $about])+ $visible $field: $Type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                $name {
                    $($group: Default::default(),)*
                    $($field: $crate::query::absent!($($default)?),)*
                }
            }
        }

        impl $crate::query::Values for $name {
            fn put(&mut self, name: &str, text: &str) -> Option<Result<(), String>> {
                $(if let Some(put) = $crate::query::Values::put(&mut self.$group, name, text) {
                    return Some(put);
                })*
                match name {
                    $(name if name == $crate::query::plain(stringify!($field)) => {
                        let read = <$Type as $crate::query::Parameter>::read(text);
                        Some(read.map(|value| self.$field = value))
                    })*
                    _ => None,
                }
            }
        }

        impl $crate::query::Parameters for $name {
            fn declare(into: &mut Vec<$crate::query::Param>) {
                $(<$Group as $crate::query::Parameters>::declare(into);)*
                $(into.push($crate::query::Param {
                    name: $crate::query::plain(stringify!($field)),
                    about: $crate::query::about(&[$($about),+]),
                    schema: <$Type as $crate::query::Parameter>::schema(),
                } $(.with_default::<$Type>(&$default))?);)*
            }
        }
    };
}
pub(crate) use parameters;

/// What a parameter is that was left out.
macro_rules! absent {
    () => {
        Default::default()
    };
    ($default:expr) => {
        $default
    };
}
pub(crate) use absent;

/// Names the values of an enum that is a parameter; without `impl` it makes the enum as well.
macro_rules! choices {
    (impl $name:ty { $($variant:ident = $text:literal),+ $(,)? }) => {
        impl $crate::query::Parameter for $name {
            fn schema() -> serde_json::Value {
                serde_json::json!({"type": "string", "enum": [$($text),+]})
            }

            fn read(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok(<$name>::$variant),)+
                    _ => Err(format!("must be one of {}", [$($text),+].join(", "))),
                }
            }
        }

        impl $crate::query::Shown for $name {
            fn shown(&self) -> serde_json::Value {
                match self {
                    $(<$name>::$variant => $text.into()),+
                }
            }
        }
    };
    ($visible:vis enum $name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        #[derive(Clone, Copy, PartialEq, Eq)]
        $visible enum $name {
            $($variant),+
        }

        impl $name {
            #[allow(dead_code)]
            $visible fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text),+
                }
            }
        }

        $crate::query::choices!(impl $name { $($variant = $text),+ });
    };
}
pub(crate) use choices;

/// A field's name without what makes it no keyword.
pub fn plain(field: &'static str) -> &'static str {
    field.strip_prefix("r#").unwrap_or(field)
}

/// The lines of a comment as one text.
pub fn about(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    lines.join(" ")
}

impl Values for () {
    fn put(&mut self, _: &str, _: &str) -> Option<Result<(), String>> {
        None
    }
}

/// No parameters at all.
impl Parameters for () {
    fn declare(_: &mut Vec<Param>) {}
}

/// Declared parameters and whatever else was sent.
#[derive(Clone, Default)]
pub struct Open<T> {
    pub known: T,
    /// What came twice is there twice: whoever knows what it means refuses it beside what else is wrong.
    pub rest: Vec<(String, String)>,
    /// Declared parameters that came again.
    pub repeated: Vec<&'static str>,
}

impl<T: Parameters> Values for Open<T> {
    fn put(&mut self, name: &str, text: &str) -> Option<Result<(), String>> {
        self.known.put(name, text)
    }

    fn keep(&mut self, rest: Vec<(String, String)>, repeated: Vec<&'static str>) {
        (self.rest, self.repeated) = (rest, repeated);
    }
}

impl<T: Parameters> Parameters for Open<T> {
    const OPEN: bool = true;

    fn declare(into: &mut Vec<Param>) {
        T::declare(into);
    }
}

parameters! {
    /// The pages of management lists.
    pub struct Paging {
        /// Page number, from 1.
        page: Integer<1, PAGE_MAX> = Integer::of(1),
        /// Items per page.
        per_page: Integer<1, PER_PAGE_MAX> = Integer::of(PER_PAGE_DEFAULT),
    }
}

/// `page` and `per_page` of a list.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    pub page: i64,
    pub per_page: i64,
}

impl Page {
    pub fn part(&self) -> Part {
        Part::new(self.per_page, (self.page - 1) * self.per_page)
    }
}

pub const PAGE_MAX: i64 = 1_000;
pub const PER_PAGE_MAX: i64 = 100;
pub const PER_PAGE_DEFAULT: i64 = 50;
/// No page lies deeper than the store looks.
const _: () = assert!((PAGE_MAX - 1) * PER_PAGE_MAX <= OFFSET_MAX);

impl Paging {
    pub fn page(&self) -> Page {
        Page {
            page: self.page.get(),
            per_page: self.per_page.get(),
        }
    }
}

choices! {
    pub enum SortOrder {
        Ascending = "asc",
        Descending = "desc",
    }
}

impl<T: Parameter> Parameter for Option<T> {
    fn schema() -> Value {
        T::schema()
    }

    fn read(text: &str) -> Result<Self, String> {
        T::read(text).map(Some)
    }
}

/// A parameter that its handler judges beside what only it knows, so that whatever is wrong is told at once.
#[derive(Clone)]
pub struct Judged<T>(pub Result<T, String>);

impl<T: Parameter> Parameter for Judged<T> {
    fn schema() -> Value {
        T::schema()
    }

    fn read(text: &str) -> Result<Self, String> {
        Ok(Judged(T::read(text)))
    }
}

impl<T: Shown> Shown for Judged<T> {
    fn shown(&self) -> Value {
        self.0.as_ref().map_or(Value::Null, T::shown)
    }
}

impl Parameter for bool {
    fn schema() -> Value {
        json!({"type": "boolean"})
    }

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("must be true or false".to_owned()),
        }
    }
}

impl Shown for bool {
    fn shown(&self) -> Value {
        (*self).into()
    }
}

/// An integer from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer<const MIN: i64, const MAX: i64>(i64);

impl<const MIN: i64, const MAX: i64> Integer<MIN, MAX> {
    /// One that the code itself chooses, and so within the bounds.
    pub const fn of(number: i64) -> Self {
        assert!(MIN <= number && number <= MAX);
        Integer(number)
    }

    pub fn get(self) -> i64 {
        self.0
    }
}

impl<const MIN: i64, const MAX: i64> Shown for Integer<MIN, MAX> {
    fn shown(&self) -> Value {
        self.0.into()
    }
}

impl<const MIN: i64, const MAX: i64> Parameter for Integer<MIN, MAX> {
    fn schema() -> Value {
        json!({"type": "integer", "minimum": MIN, "maximum": MAX})
    }

    fn read(text: &str) -> Result<Self, String> {
        match integer(text) {
            Some(number) if (MIN..=MAX).contains(&number) => Ok(Integer(number)),
            _ => Err(format!("must be an integer from {MIN} to {MAX}")),
        }
    }
}

/// No store keeps a NUL.
const NO_NUL: &str = r"^[^\u0000]*$";

impl<const MAX: usize> Parameter for Text<0, MAX> {
    fn schema() -> Value {
        json!({"type": "string", "maxLength": MAX, "pattern": NO_NUL})
    }

    fn read(text: &str) -> Result<Self, String> {
        match text.contains('\0') {
            true => Err("must be a text without U+0000".to_owned()),
            false => {
                Text::new(text).ok_or_else(|| format!("must be a text of at most {MAX} characters"))
            }
        }
    }
}

/// A date, meaning its midnight UTC, or an instant: from then on.
#[derive(Clone, Copy)]
pub struct Since(pub Timestamp);

/// A date, which is included, or an instant, which is not.
#[derive(Clone, Copy)]
pub struct Until(pub Timestamp);

/// A UTC date, as its midnight.
#[derive(Clone, Copy)]
pub struct Date(pub Timestamp);

impl Parameter for Since {
    fn schema() -> Value {
        date_or_instant()
    }

    fn read(text: &str) -> Result<Self, String> {
        date(text).map_or_else(|| instant(text), Ok).map(Since)
    }
}

impl Parameter for Until {
    fn schema() -> Value {
        date_or_instant()
    }

    fn read(text: &str) -> Result<Self, String> {
        date(text)
            .map_or_else(|| instant(text), |midnight| Ok(midnight.after(DAY)))
            .map(Until)
    }
}

impl Parameter for Date {
    fn schema() -> Value {
        json!({"type": "string", "format": "date"})
    }

    fn read(text: &str) -> Result<Self, String> {
        date(text)
            .map(Date)
            .ok_or_else(|| "must be a date such as 2026-01-31".to_owned())
    }
}

fn date_or_instant() -> Value {
    let pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2}))?$";
    json!({"type": "string", "pattern": pattern, "examples": ["2026-01-31", "2026-01-31T12:00:00Z"]})
}

/// Midnight UTC of a date.
fn date(text: &str) -> Option<Timestamp> {
    match text.len() == "2026-01-31".len() {
        true => Timestamp::parse(&format!("{text}T00:00:00Z")).ok(),
        false => None,
    }
}

fn instant(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
