//! The host: store, sandbox, API and listener put together, and taken apart again in the right order.
//!
//! Wiring only: every decision is made in the crates that it wires. Start reading at [`Host::start`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use souk_api::{ApiState, SharedLimits};
use souk_app::Background;
use souk_app::files::objects::Objects;
use souk_app::files::{FILES, SharedFiles};
use souk_app::identity::IdentityProvider;
use souk_app::mail::Mailer;
use souk_app::payments::instant::Instant as InstantPayments;
use souk_app::payments::manual::Manual;
use souk_app::payments::stripe::Stripe;
use souk_app::payments::{Payments, Provider};
use souk_app::{App, Parts};
use souk_outbound::EgressPolicy;
use souk_outbound::spans::Recorder;
use souk_sandbox::{Compiler, Quota, Sandbox};
use souk_store::founding::{self, Founded};
use souk_store::teller::Teller;
use souk_store::{Db, OpenOptions, StoreError};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::PaymentProvider;
use crate::descriptors::{self, Room};
use crate::listener::{self, Paces, Server};
use crate::master_key;
use crate::metrics;
use crate::private;
use crate::ready::Platform;
use crate::settings::{Identity, Settings};
use crate::traces::Exporter;

/// Requests that were cut may still hold a connection of the store; the end does not wait for them.
const CLOSE_MAX: Duration = Duration::from_secs(5);
/// Runs that were cut fail at once; giving back what they held and telling their clients takes a few statements.
const CUT_MAX: Duration = Duration::from_secs(3);

pub struct Host {
    pub base_url: String,
    pub endpoint_base_url: String,
    /// Of the platform company, when this start made it.
    pub platform: Option<Platform>,
    server: Server,
    api: ApiState,
    webhooks: Background,
    mails: Background,
    alerts: Background,
    publications: Background,
    files: Option<Background>,
    exporter: Option<Exporter>,
    signals: Signals,
    settings: Settings,
}

impl Host {
    /// Returns once requests are accepted.
    pub async fn start(settings: Settings, egress: EgressPolicy) -> Result<Host> {
        private::prepare(&settings)?;
        // Early, so that a taken address is noticed before anything is touched.
        let listener = listener::bind(settings.listen)
            .with_context(|| format!("cannot listen on {}", settings.listen))?;
        let address = listener.local_addr()?;
        let room = descriptors::make_room(settings.connections_max, settings.quota.sockets);

        let db = Db::open(&OpenOptions::new(&settings.database_url))
            .await
            .with_context(|| {
                format!(
                    "the store {} cannot be opened",
                    without_password(&settings.database_url)
                )
            })?;
        // Before anything is sealed or opened.
        let sealer = master_key::sealer(&settings, &db).await?;
        let app = App::new(Parts {
            db: db.clone(),
            teller: Teller::open(&db)
                .await
                .context("the ledger cannot be read")?,
            sandbox: sandbox(&settings, &room, egress.clone())?,
            egress,
            sealer,
            shared_files: shared_files(&settings)?,
            files_dir: settings.data_dir.join(FILES),
            company_file_bytes_max: settings.company_file_bytes_max,
            payments: payments(&settings)?,
            identity: identity(&settings)?,
            mail: mailer(&settings)?,
            bounds: settings.company,
        });
        souk_app::connectors::start(&app, souk_plugins::bundle())
            .await
            .context("the connectors cannot start")?;
        souk_app::files::sweep(&app)
            .await
            .context("the companies' files cannot be swept")?;
        souk_app::backup::sweep(&app).await;
        let files = souk_app::files::start(&app)
            .await
            .context("the companies' files cannot be looked after")?;
        souk_app::earnings::start(&app, settings.payable_after);
        let webhooks = souk_app::webhooks::start(&app)
            .await
            .context("webhooks cannot be delivered")?;
        let alerts = souk_app::alerts::start(&app)
            .await
            .context("alerts cannot be evaluated")?;
        let mails = souk_app::alerts::mails::start(&app);
        let publications = souk_app::publications::start(&app)
            .await
            .context("posts cannot be published")?;
        if let Some(directory) = &settings.connector_dir {
            app.sandbox.watch_directory(directory).await;
        }
        souk_app::connectors::loaded_all(&app).await;
        souk_app::files::keep_swept(&app);

        let base_url = settings
            .base_url
            .clone()
            .unwrap_or_else(|| reached_at(address));
        let endpoint_base_url = settings
            .endpoint_base_url
            .clone()
            .unwrap_or_else(|| base_url.clone());
        let shared_limits = match &settings.redis_url {
            Some(url) => Some(SharedLimits::open(&url.0).context("--redis-url")?),
            None => None,
        };
        let (recorder, exporter) = match &settings.otlp {
            Some(otlp) => {
                let (recorder, ended) = Recorder::new(otlp.share);
                let exporter = Exporter::start(otlp.endpoint.clone(), recorder.clone(), ended)?;
                (Some(recorder), Some(exporter))
            }
            None => (None, None),
        };
        let api = souk_api::state(
            app.clone(),
            souk_api::Settings {
                base_url: base_url.clone(),
                endpoint_base_url: endpoint_base_url.clone(),
                address_rate_limit: settings.ip_rate_limit,
                shared_limits,
                kept_answer_bytes_max: settings.kept_answer_bytes_max,
                trust_proxy: settings.trust_proxy.clone(),
                company_reads_at_once: settings.workers.max(2),
                unread_bytes_max: settings.unread_bytes_max,
                company_calls_max: settings.quota.calls as u32,
                company_upload_bytes_max: settings.company_upload_bytes_max,
                upload_bytes_max: settings.upload_bytes_max,
                recorder,
            },
        );
        api.start().await?;
        // Until what others wait for is there: the ready file.
        api.withhold(Some("this host is starting"));
        // From here on a signal waits for `serve`, which stops in order.
        let signals = Signals::new()?;
        let connections_max = room.connections_max;
        if connections_max < settings.connections_max {
            tracing::warn!(
                connections_max,
                "fewer client connections than asked for: the limit of open files is low"
            );
        }
        if room.company_sockets < settings.quota.sockets {
            tracing::warn!(
                company_sockets = room.company_sockets,
                "fewer connections to the sources of one company than asked for: the limit of open files is low"
            );
        }
        let options = listener::Options {
            workers: settings.workers,
            connections_max,
            connections_per_address_max: settings
                .connections_per_address_max
                .unwrap_or_else(|| listener::share_of_one_address(connections_max)),
            proxies: settings.trust_proxy.clone(),
            descriptors_max: room.descriptors_max,
            refusing_max: room.refusing_max,
            paces: Paces::default(),
            idle: settings.idle,
            busy_poll: settings.busy_poll,
        };
        let refuse = {
            let api = api.clone();
            Arc::new(move |status, peer: SocketAddr| souk_api::unreadable(&api, status, peer.ip()))
        };
        let routed = api.clone();
        let router = move || souk_api::router(routed.apart());
        let server = Server::start(listener, &options, router, refuse)?;
        if let Some(address) = settings.metrics_listen {
            let address = metrics::start(address, api.clone(), server.connections()).await?;
            tracing::info!(%address, "serving metrics");
        }
        // Last: its key is known to this start alone, so nothing may fail behind it.
        let platform = found_platform(&db).await?;
        tracing::info!(address = %server.address(), %base_url, workers = settings.workers, "accepting requests");
        Ok(Host {
            base_url,
            endpoint_base_url,
            platform,
            server,
            api,
            webhooks,
            mails,
            alerts,
            publications,
            files,
            exporter,
            signals,
            settings,
        })
    }

    /// Where requests are accepted.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Serves until SIGTERM or SIGINT, then finishes what is in flight. A second signal ends at once.
    pub async fn serve(mut self) -> Result<()> {
        self.api.withhold(None);
        self.signals.next().await;
        if !self.settings.drain_delay.is_zero() {
            self.api.withhold(Some("this host is about to stop"));
            let seconds = self.settings.drain_delay.as_secs();
            tracing::info!(
                seconds,
                "about to stop: /readyz says so, and everybody is served until then"
            );
            tokio::select! {
                () = tokio::time::sleep(self.settings.drain_delay) => {}
                () = self.signals.next() => tracing::info!("a second signal: not waiting any longer"),
            }
        }
        let seconds = self.settings.drain.as_secs();
        tracing::info!(seconds, "stopping: finishing the requests in flight");
        tokio::select! {
            () = stop(self.server, &self.api, [self.alerts, self.publications, self.mails, self.webhooks], self.files, self.exporter, self.settings.drain) => tracing::info!("stopped"),
            () = self.signals.next() => tracing::warn!("stopped by a second signal"),
        }
        Ok(())
    }
}

/// From the outside in: clients, evaluations of alerts, publications, connectors' sessions, mails, deliveries to webhooks, the store; the threads last, since what
/// they opened is closed through them.
async fn stop(
    server: Server,
    api: &ApiState,
    [alerts, publications, mails, webhooks]: [Background; 4],
    files: Option<Background>,
    exporter: Option<Exporter>,
    drain: Duration,
) {
    let app = api.app();
    let deadline = Instant::now() + drain;
    alerts.stop();
    publications.stop();
    let cut = server.drain(drain).await;
    if cut > 0 {
        tracing::warn!(
            connections = cut,
            "requests in flight were cut: they took longer than the drain allows"
        );
    }
    app.sandbox.shut_down(deadline).await;
    // Every run has ended by now, well or not. Only when all of them have booked it, or given back what they held, may the store close.
    let settled = async { tokio::join!(server.ended(), api.detached_ended()) };
    // What goes on without its client (a payment that is asked for, say) has as long as everybody else.
    let until = deadline.max(Instant::now() + CUT_MAX);
    if tokio::time::timeout_at(until.into(), settled)
        .await
        .is_err()
    {
        tracing::warn!("some clients were not told that their requests were cut");
    }
    alerts.shut_down(until).await;
    publications.shut_down(until).await;
    mails.shut_down(deadline).await;
    webhooks.shut_down(deadline).await;
    if let Some(files) = files {
        files.shut_down(deadline).await;
    }
    // Records of free runs are written behind the answers; the last of them are still on their way.
    if tokio::time::timeout(CLOSE_MAX, app.teller.flush())
        .await
        .is_err()
    {
        tracing::warn!("some records of free runs were not written");
    }
    if let Some(exporter) = exporter {
        exporter.shut_down(Instant::now() + CUT_MAX).await;
    }
    if tokio::time::timeout(CLOSE_MAX, app.db.close())
        .await
        .is_err()
    {
        tracing::warn!("the store is still in use; what was committed is safe");
    }
    server.stop();
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn payments(settings: &Settings) -> Result<Payments> {
    let stripe: Option<Arc<dyn Provider>> = match &settings.stripe {
        Some(account) => {
            let (secret, webhook) = (account.secret_key.clone(), account.webhook_secret.clone());
            let stripe = Stripe::new(&account.base_url, secret, webhook)
                .with_context(|| format!("--stripe-base-url {}", account.base_url))?;
            Some(Arc::new(stripe))
        }
        None => None,
    };
    match (settings.payment_provider, stripe) {
        (PaymentProvider::Stripe, Some(stripe)) => Ok(Payments::new(stripe)),
        (PaymentProvider::Stripe, None) => anyhow::bail!("Stripe's secrets are missing"),
        (provider, stripe) => {
            let payments = match provider {
                PaymentProvider::Instant => Payments::new(Arc::new(InstantPayments)),
                _ => Payments::new(Arc::new(Manual)),
            };
            Ok(match stripe {
                Some(stripe) => payments.also_listen(stripe),
                None => payments,
            })
        }
    }
}

fn shared_files(settings: &Settings) -> Result<Option<Arc<SharedFiles>>> {
    let Some(at) = &settings.objects else {
        return Ok(None);
    };
    let objects = Objects::new(at)
        .map_err(|error| anyhow::anyhow!("--files-url {at} cannot be used: {error}"))?;
    let bytes_max = settings.files_cache_bytes_max;
    Ok(Some(SharedFiles::new(
        objects,
        &settings.data_dir,
        bytes_max,
    )))
}

fn identity(settings: &Settings) -> Result<Option<IdentityProvider>> {
    let Some(Identity(config)) = &settings.identity else {
        return Ok(None);
    };
    let provider = IdentityProvider::new(config.clone())
        .with_context(|| format!("--oidc-issuer {}", config.issuer))?;
    Ok(Some(provider))
}

fn mailer(settings: &Settings) -> Result<Option<Mailer>> {
    let Some(relay) = &settings.relay else {
        return Ok(None);
    };
    let mailer = Mailer::new(&relay.url, &relay.from).context("--smtp-url or --mail-from")?;
    Ok(Some(mailer))
}

fn sandbox(settings: &Settings, room: &Room, egress: EgressPolicy) -> Result<Sandbox> {
    let compiler = Compiler::Child {
        program: std::env::current_exe().context("the path of this program is unknown")?,
        args: vec!["compile".to_owned()],
    };
    let mut options =
        souk_sandbox::Options::new(settings.data_dir.join("compiled"), egress, compiler);
    options.limits.quota = Quota {
        sockets: room.company_sockets,
        ..settings.quota
    };
    options.limits.guest_memory_bytes = settings.guest_memory_bytes;
    let sandbox = Sandbox::new(options).context("the sandbox cannot start");
    match descriptors::address_space() {
        // What it reserves is not memory: nothing of it is used until a connector does.
        Some(bytes) if sandbox.is_err() => sandbox.with_context(|| {
            format!(
                "the address space of this process is limited to {} MiB (ulimit -v, LimitAS), and connectors reserve far more of it than they use: \
                 lift that limit; MemoryMax, or a container's memory limit, bounds what is used",
                bytes >> 20
            )
        }),
        _ => sandbox,
    }
}

/// The platform company and its key, if this store has none yet. Its key is in memory only from here on:
/// whoever starts the host for the first time must keep it.
async fn found_platform(db: &Db) -> Result<Option<Platform>> {
    let founded = match found(db).await {
        // By another host that starts on the same store: the key is in its hands.
        Err(StoreError::Conflict) => found(db).await,
        founded => founded,
    };
    let founded = founded.context("the platform's company cannot be founded")?;
    Ok(founded.map(|founded| Platform {
        company_id: founded.company.id.to_string(),
        api_key: founded.secret.expose().to_owned(),
    }))
}

async fn found(db: &Db) -> Result<Option<Founded>, StoreError> {
    let now = SystemTime::now().into();
    db.write(async |write| founding::found_platform(write, now).await)
        .await
}

/// An address that a client on this machine can use.
fn reached_at(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

/// For messages: a password stands before the `@`, or among the parameters.
pub fn without_password(url: &str) -> String {
    let (address, _) = url.split_once('?').unwrap_or((url, ""));
    match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_url_is_one_that_can_be_called() {
        assert_eq!(
            reached_at("0.0.0.0:80".parse().unwrap()),
            "http://127.0.0.1:80"
        );
        assert_eq!(reached_at("[::]:80".parse().unwrap()), "http://[::1]:80");
        assert_eq!(
            reached_at("10.0.0.7:8080".parse().unwrap()),
            "http://10.0.0.7:8080"
        );
    }

    #[test]
    fn messages_show_no_password() {
        assert_eq!(
            without_password("postgres://u:p@ss@db/souk"),
            "postgres://…@db/souk"
        );
        assert_eq!(
            without_password("postgres://db/souk?user=u&password=p"),
            "postgres://db/souk"
        );
        assert_eq!(without_password("sqlite:a/b.db"), "sqlite:a/b.db");
    }
}
