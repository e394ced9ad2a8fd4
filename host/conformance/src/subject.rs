//! The component under test in a sandbox of its own, and the sources that it is opened for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Map, Value as Json, json};
use souk_outbound::{EgressPolicy, TlsMode};
use souk_sandbox::{
    Compiler, ConnectorInfo, EngineInfo, Fault, Grant, Limits, LoadError, Need, Options, Output,
    PoolLimits, Query, Request, Sandbox, Scope, Source, Value,
};

use crate::doors::Doors;
use crate::profile::{Place, Profile, ProfileError};
use crate::scripted;

/// One component needs few.
const SESSIONS: u32 = 64;
/// How long a source may take to open. Bad ones take all of it, so it is shorter than a host's.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// What one answer may hold, unless a check says less.
pub(crate) const ROWS_MAX: u32 = 100_000;
pub(crate) const BYTES_MAX: u64 = 64 << 20;
/// How long an honest answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long sessions may take to be done with what they have at their source.
const WIND_UP: Duration = Duration::from_secs(2);

/// What keeps the suite from beginning.
#[derive(Debug, thiserror::Error)]
pub enum KitError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(
        "this is a publisher: the kit is for connectors (`souk connector check` looks at both)"
    )]
    Publisher,
    #[error("the connector has no engine \"{asked}\": it has {known}")]
    NoEngine { asked: String, known: String },
    #[error("the kit's own server cannot start: {0}")]
    Server(#[from] std::io::Error),
    #[error("the connector needs {need}, and {what}")]
    WrongPlace { need: &'static str, what: String },
}

/// A component, staged and active, with what is known of its source.
pub struct Subject {
    pub info: ConnectorInfo,
    pub engine: EngineInfo,
    pub profile: Profile,
    /// The source, or the kit's own server in its place.
    pub place: Option<Place>,
    pub(crate) sandbox: Sandbox,
    /// Where the source lies by itself.
    pub(crate) doors: Option<Doors>,
    next: AtomicU64,
    _server: Option<scripted::Server>,
}

/// A sandbox for one component on its author's machine: it may dial any address, since the author names it.
pub fn options(cache_dir: &Path, compiler: Compiler) -> Options {
    let mut options = Options::new(cache_dir, EgressPolicy::unrestricted(), compiler);
    options.limits.sessions_total = SESSIONS;
    options.limits.open_timeout = OPEN_TIMEOUT;
    options.limits.connect_timeout = OPEN_TIMEOUT;
    options
}

/// What a component says of itself, connector or publisher, as a host sees it that loads it.
pub async fn describe(wasm: impl Into<Bytes>, options: Options) -> Result<ConnectorInfo, KitError> {
    let sandbox = Sandbox::new(options)?;
    let info = sandbox.load(wasm, Scope::Platform).await?;
    sandbox.shut_down(Instant::now()).await;
    Ok(info)
}

impl Subject {
    /// Loads and activates a component as a host does, and starts the server that the profile scripts.
    pub async fn load(
        wasm: impl Into<Bytes>,
        options: Options,
        profile: Profile,
    ) -> Result<Subject, KitError> {
        let sandbox = Sandbox::new(options)?;
        let info = sandbox.load(wasm, Scope::Platform).await?;
        let info = sandbox
            .activate(&Scope::Platform, &info.name, &info.version)
            .await?;
        let known = info.engine_ids.join(", ");
        let slug = match &profile.engine {
            Some(asked) => asked.clone(),
            None => info.engine_ids.first().cloned().unwrap_or_default(),
        };
        if slug.contains(':') {
            return Err(KitError::Publisher);
        }
        let engine = sandbox
            .engine("", &slug)
            .ok_or(KitError::NoEngine { asked: slug, known })?;
        let (place, server) = match (&profile.place, engine.need) {
            (Some(place), _) => (Some(place.clone()), None),
            (None, Need::Http) if !profile.answers.is_empty() => {
                let server = scripted::Server::http(&profile.answers).await?;
                let base_url = format!("http://{}", server.address);
                let place = Place::Http {
                    base_url,
                    ca_pem: None,
                };
                (Some(place), Some(server))
            }
            (None, Need::Tcp) if !profile.lines.is_empty() => {
                let server = scripted::Server::lines(&profile.lines).await?;
                let place = Place::Tcp {
                    host: server.address.ip().to_string(),
                    port: server.address.port(),
                    tls: TlsMode::Disable,
                    ca_pem: None,
                };
                (Some(place), Some(server))
            }
            (None, _) => (None, None),
        };
        let subject = Subject {
            info,
            engine,
            profile,
            place,
            sandbox,
            doors: None,
            next: AtomicU64::new(0),
            _server: server,
        };
        if let Some(place) = &subject.place {
            subject.fits(place)?;
        }
        Ok(subject)
    }

    /// Names doors of the source's, through which it spoils its answers itself (`wire.spoilt`): within TLS nobody else can.
    pub fn with_doors(self, doors: Doors) -> Subject {
        Subject {
            doors: Some(doors),
            ..self
        }
    }

    fn fits(&self, place: &Place) -> Result<(), KitError> {
        let (need, how) = match self.engine.need {
            Need::Tcp => ("tcp", "address = \"HOST:PORT\""),
            Need::Http => ("http", "base_url = \"http://…\""),
            Need::Directory => ("a directory", "file = \"PATH\""),
        };
        let fits = matches!(
            (place, self.engine.need),
            (Place::Tcp { .. }, Need::Tcp)
                | (Place::Http { .. }, Need::Http)
                | (Place::File(_), Need::Directory)
        );
        match (fits, place) {
            (true, Place::File(path)) if !path.is_file() => Err(KitError::WrongPlace {
                need,
                what: format!("there is no file {}", path.display()),
            }),
            (true, _) => Ok(()),
            (false, _) => Err(KitError::WrongPlace {
                need,
                what: format!("the source is another: give {how}"),
            }),
        }
    }

    /// All engines of the component.
    pub fn engines(&self) -> Vec<EngineInfo> {
        self.sandbox.engines("")
    }

    /// Whether the kit's own server stands in for a source.
    pub(crate) fn is_scripted(&self) -> bool {
        self._server.is_some()
    }

    /// The members that the connector's schema names; `None` where it names none, and is told everything.
    pub fn named(&self) -> Option<Map<String, Json>> {
        let schema: Json = serde_json::from_str(&self.engine.settings_schema).unwrap_or_default();
        schema.get("properties").and_then(Json::as_object).cloned()
    }

    /// What is told of the connection: the settings that were given and where the source is, both as far as the connector's schema names
    /// them.
    pub fn settings(&self, place: &Place) -> Map<String, Json> {
        let connection = match place {
            Place::Tcp {
                host, port, tls, ..
            } => {
                let mode = match tls {
                    TlsMode::Disable => "disable",
                    TlsMode::Require => "require",
                    TlsMode::VerifyCa => "verify-ca",
                    TlsMode::VerifyFull => "verify-full",
                };
                json!({"host": host, "port": port, "ssl_mode": mode})
            }
            Place::Http { base_url, .. } => json!({"base_url": base_url}),
            Place::File(path) => {
                json!({"database": path.file_name().unwrap_or_default().to_string_lossy()})
            }
        };
        let mut settings = connection.as_object().cloned().unwrap_or_default();
        settings.extend(self.profile.settings.clone());
        if let Some(named) = self.named() {
            settings.retain(|name, _| named.contains_key(name));
        }
        settings
    }

    /// A source of its own for each check, so that none stands in another's sessions, pace or pauses.
    pub fn source(&self, place: &Place) -> Arc<Source> {
        self.source_with(place, &self.settings(place), PoolLimits::default())
    }

    pub(crate) fn source_with(
        &self,
        place: &Place,
        settings: &Map<String, Json>,
        limits: PoolLimits,
    ) -> Arc<Source> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let key = self.profile.settings.get("api_key").and_then(Json::as_str);
        let is_named = self
            .named()
            .is_none_or(|named| named.contains_key("api_key"));
        let attach = key.filter(|_| !is_named);
        let mut attach: Vec<(String, String)> = attach
            .map(|key| ("X-API-Key".to_owned(), key.to_owned()))
            .into_iter()
            .collect();
        let mut told = settings.clone();
        // As a host does, which sends some members itself.
        for (member, property) in self.named().unwrap_or_default() {
            let text = |name: &str| property.get(name).and_then(Json::as_str);
            if let Some(header) = text("x-souk-header")
                && let Some(Json::String(value)) = told.get(&member).cloned()
            {
                told.remove(&member);
                let prefix = text("x-souk-header-prefix").unwrap_or_default();
                attach.push((header.to_owned(), format!("{prefix}{value}")));
            }
        }
        let grant = match place.clone() {
            Place::Tcp {
                host,
                port,
                tls,
                ca_pem,
            } => Grant::Tcp {
                host,
                port,
                tls,
                ca_pem,
            },
            Place::Http { base_url, ca_pem } => Grant::Http {
                base_url,
                attach,
                ca_pem,
            },
            Place::File(path) => Grant::Directory(directory(&path)),
        };
        Arc::new(Source {
            company: format!("kit-{number}"),
            connection: format!("kit-{number}"),
            revision: 1,
            engine: self.engine.slug.clone(),
            settings_json: Json::Object(told).to_string(),
            grant,
            limits,
        })
    }

    /// Asks with the patience of an honest question.
    pub async fn ask(&self, source: &Arc<Source>, request: Request) -> Result<Output, Fault> {
        self.ask_within(source, request, PATIENCE).await
    }

    pub async fn ask_within(
        &self,
        source: &Arc<Source>,
        request: Request,
        patience: Duration,
    ) -> Result<Output, Fault> {
        let deadline = Instant::now() + patience;
        self.sandbox.run(source, request, deadline).await
    }

    /// Sessions come to their end, as they do at a host.
    pub async fn close(self) {
        self.sandbox.shut_down(Instant::now() + WIND_UP).await;
    }
}

/// The directory that is granted for a file.
fn directory(path: &Path) -> PathBuf {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    parent.unwrap_or(Path::new(".")).to_owned()
}

pub(crate) fn limits() -> Limits {
    Limits::new(ROWS_MAX, BYTES_MAX)
}

/// A statement that reads.
pub(crate) fn query(text: &str, parameters: Vec<Value>) -> Request {
    query_within(text, parameters, limits())
}

pub(crate) fn query_within(text: &str, parameters: Vec<Value>, limits: Limits) -> Request {
    Request::Query(Query {
        text: text.into(),
        parameters,
        limits,
    })
}
