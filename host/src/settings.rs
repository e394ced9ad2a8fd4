//! Settings as the host uses them: complete, checked, with their defaults. What others do for the host is in `services`.

mod services;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use hyper::Uri;
use ipnet::IpNet;
use souk_app::CompanyBounds;
use souk_app::files::objects::ObjectsAt;
use souk_app::files::{COMPANY_BYTES_MAX, FILE_BYTES_MAX};
use souk_domain::payments::MATURE_AFTER;
use souk_outbound::spans::SHARE_OF;
use souk_sandbox::{Quota, SandboxLimits};

use crate::cli::{LogFormat, Options, PaymentProvider};
use crate::traces;
pub use services::{Identity, RedisUrl, Relay, StripeAccount};
use services::{identity, objects, stripe_account, web_address};

/// What differs between `serve` and `demo`.
pub struct Defaults {
    pub data_dir: &'static str,
    pub payment_provider: PaymentProvider,
}

pub const SERVE: Defaults = Defaults {
    data_dir: "souk-data",
    payment_provider: PaymentProvider::Manual,
};
pub const DEMO: Defaults = Defaults {
    data_dir: "souk-demo",
    payment_provider: PaymentProvider::Instant,
};

/// Where spans go, and of which calls.
#[derive(Debug)]
pub struct Otlp {
    pub endpoint: Uri,
    /// Of [`SHARE_OF`].
    pub share: u32,
}

#[derive(Debug)]
pub struct Settings {
    pub listen: SocketAddr,
    pub data_dir: PathBuf,
    pub database_url: String,
    pub master_key: Option<String>,
    pub master_key_old: Vec<String>,
    pub ready_file: Option<PathBuf>,
    /// Where the companies' files lie that hosts share.
    pub objects: Option<ObjectsAt>,
    pub files_cache_bytes_max: u64,
    pub connector_dir: Option<PathBuf>,
    pub allow_network: Vec<IpNet>,
    pub base_url: Option<String>,
    pub endpoint_base_url: Option<String>,
    pub trust_proxy: Vec<IpNet>,
    pub payment_provider: PaymentProvider,
    pub stripe: Option<StripeAccount>,
    pub payable_after: Duration,
    pub identity: Option<Identity>,
    pub relay: Option<Relay>,
    pub workers: usize,
    pub busy_poll: Duration,
    pub connections_max: usize,
    /// Of the connections that there turn out to be room for, a quarter unless the operator says otherwise.
    pub connections_per_address_max: Option<usize>,
    pub unread_bytes_max: u64,
    pub upload_bytes_max: u64,
    pub company_upload_bytes_max: u64,
    pub company_file_bytes_max: u64,
    pub idle: Duration,
    pub drain: Duration,
    /// Before the listener closes.
    pub drain_delay: Duration,
    pub ip_rate_limit: u32,
    pub redis_url: Option<RedisUrl>,
    /// Of a company.
    pub kept_answer_bytes_max: i64,
    pub company: CompanyBounds,
    /// What one company's connectors may use.
    pub quota: Quota,
    pub guest_memory_bytes: usize,
    pub metrics_listen: Option<SocketAddr>,
    pub otlp: Option<Otlp>,
    pub log: String,
    pub log_format: LogFormat,
}

const LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);
/// Each costs a descriptor and about 20 KiB.
const CONNECTIONS_MAX: usize = 10_000;
/// Sixteen of the largest pages: more than any company's clients have on the way at once unless they do not read.
const COMPANY_UNREAD_MIB: u64 = 256;
/// Six companies with as much as each may have, and eight of the largest connectors.
const UPLOADS_MIB: u64 = 512;
/// The largest connector, and eight files beside it.
const COMPANY_UPLOADS_MIB: u64 = 80;
/// As much as one company's files may have, of which a half can be in use at once; and the largest file at least.
const FILES_CACHE_MIB: u64 = COMPANY_BYTES_MAX >> 20;
const FILES_CACHE_MIB_MIN: u64 = FILE_BYTES_MAX >> 20;
/// 16 PiB: who asks for more has mistyped.
const MIB_MAX: u64 = 1 << 34;
/// Longer than the 60 s after which most clients and balancers drop a pooled connection themselves.
const IDLE_SECONDS: u64 = 75;
/// The longest execution (10 s by default) ends within it, and most supervisors kill after 30 s.
const DRAIN_SECONDS: u64 = 20;
/// A day: more is a typing error, and at some point more than a clock can show.
const IDLE_SECONDS_MAX: u64 = 86_400;
/// An hour: more is a typing error.
const DRAIN_SECONDS_MAX: u64 = 3_600;
const DRAIN_DELAY_SECONDS_MAX: u64 = 3_600;
const IP_RATE_LIMIT: u32 = 6000;
const SECOND: Duration = Duration::from_secs(1);
const COMPANY_KEPT_ANSWERS_MIB: u32 = (souk_store::idempotency::COMPANY_BYTES_MAX >> 20) as u32;
/// A tebibyte: more is a typing error.
const COMPANY_KEPT_ANSWERS_MIB_MAX: u32 = 1 << 20;
/// Enough to see where time goes; of a thousand calls a second it is a hundred, which a collector notices.
const OTLP_SAMPLE_PERCENT: f64 = 10.0;
/// A year: whoever waits longer for what was earned has mistyped.
const PAYABLE_AFTER_MAX: Duration = Duration::from_secs(366 * 86_400);
/// More threads than this is a typing error.
const WORKERS_MAX: usize = 1024;
/// A small query of a database nearby, with room: one that takes longer is not much slowed by being woken.
const BUSY_POLL: Duration = Duration::from_micros(100);
const BUSY_POLL_MAX: Duration = Duration::from_millis(1);
/// More than this is no bound but a typing error.
const COMPANY_BOUND_MAX: u32 = 1_000_000;

impl Settings {
    /// Flags and environment first, then the file that they name, then `defaults`.
    pub fn resolve(given: Options, defaults: &Defaults) -> Result<Settings> {
        let file = match &given.config {
            Some(path) => {
                let text = std::fs::read_to_string(path).with_context(|| {
                    format!("the settings file {} cannot be read", path.display())
                })?;
                toml::from_str(&text)
                    .with_context(|| format!("the settings file {} is wrong", path.display()))?
            }
            None => Options::default(),
        };
        let options = given.or(file);

        let data_dir = options
            .data_dir
            .unwrap_or_else(|| PathBuf::from(defaults.data_dir));
        let database_url = options
            .database_url
            .unwrap_or_else(|| format!("sqlite:{}", data_dir.join("souk.db").display()));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = options.workers.unwrap_or(cores);
        ensure!(
            (1..=WORKERS_MAX).contains(&workers),
            "--workers must be 1 to {WORKERS_MAX}, not {workers}"
        );
        let busy_poll = match options.busy_poll_us {
            Some(given) => Duration::from_micros(given),
            // The source, if it is here, needs the only core.
            None if cores == 1 => Duration::ZERO,
            None => BUSY_POLL,
        };
        ensure!(
            busy_poll <= BUSY_POLL_MAX,
            "--busy-poll-us must be at most {}",
            BUSY_POLL_MAX.as_micros()
        );
        let connections_max = options.connections_max.unwrap_or(CONNECTIONS_MAX);
        ensure!(
            (1..=1_000_000).contains(&connections_max),
            "--connections-max must be 1 to 1000000, not {connections_max}"
        );
        ensure!(
            options.connections_per_address_max != Some(0),
            "--connections-per-address-max must be at least 1"
        );
        let objects = objects(
            options.files_url,
            options.files_access_key_id,
            options.files_secret_access_key,
        )?;
        let files_cache_mib = options.files_cache_mib.unwrap_or(FILES_CACHE_MIB);
        ensure!(
            files_cache_mib >= FILES_CACHE_MIB_MIN,
            "--files-cache-mib must be at least {FILES_CACHE_MIB_MIN}, the largest file, not {files_cache_mib}"
        );
        let idle_seconds = options.idle_seconds.unwrap_or(IDLE_SECONDS);
        ensure!(
            (1..=IDLE_SECONDS_MAX).contains(&idle_seconds),
            "--idle-seconds must be 1 to {IDLE_SECONDS_MAX}, not {idle_seconds}"
        );

        let drain_seconds = options.drain_seconds.unwrap_or(DRAIN_SECONDS);
        ensure!(
            drain_seconds <= DRAIN_SECONDS_MAX,
            "--drain-seconds must be at most {DRAIN_SECONDS_MAX}, not {drain_seconds}"
        );
        let drain_delay_seconds = options.drain_delay_seconds.unwrap_or(0);
        ensure!(
            drain_delay_seconds <= DRAIN_DELAY_SECONDS_MAX,
            "--drain-delay-seconds must be at most {DRAIN_DELAY_SECONDS_MAX}, not {drain_delay_seconds}"
        );

        let company_kept_answers_mib = options
            .company_kept_answers_mib
            .unwrap_or(COMPANY_KEPT_ANSWERS_MIB);
        ensure!(
            (1..=COMPANY_KEPT_ANSWERS_MIB_MAX).contains(&company_kept_answers_mib),
            "--company-kept-answers-mib must be 1 to {COMPANY_KEPT_ANSWERS_MIB_MAX}, not {company_kept_answers_mib}"
        );

        let payment_provider = options
            .payment_provider
            .unwrap_or(defaults.payment_provider);
        // Play money buys what sellers are paid for.
        ensure!(
            payment_provider != PaymentProvider::Instant
                || defaults.payment_provider == PaymentProvider::Instant,
            "--payment-provider instant is for `souk demo` only"
        );
        let stripe = stripe_account(
            options.stripe_secret_key,
            options.stripe_webhook_secret,
            options.stripe_base_url,
        )?;
        ensure!(
            payment_provider != PaymentProvider::Stripe || stripe.is_some(),
            "--payment-provider stripe needs --stripe-secret-key and --stripe-webhook-secret"
        );

        let identity = identity(
            options.oidc_client_id,
            options.oidc_client_secret,
            options.oidc_client_secret_file,
            options.oidc_issuer,
            options.oidc_name,
        )?;
        let relay = match (options.smtp_url, options.mail_from) {
            (Some(url), Some(from)) => Some(Relay { url, from }),
            (None, None) => None,
            _ => anyhow::bail!("--smtp-url and --mail-from go together"),
        };
        let payable_after = options
            .payable_after_seconds
            .map_or(MATURE_AFTER, Duration::from_secs);
        ensure!(
            (SECOND..=PAYABLE_AFTER_MAX).contains(&payable_after),
            "--payable-after-seconds must be 1 to {}",
            PAYABLE_AFTER_MAX.as_secs()
        );

        let percent = options.otlp_sample_percent.unwrap_or(OTLP_SAMPLE_PERCENT);
        ensure!(
            (0.0..=100.0).contains(&percent),
            "--otlp-sample-percent must be 0 to 100, not {percent}"
        );
        let share = (percent / 100.0 * f64::from(SHARE_OF)).round() as u32;
        let endpoint = options.otlp_url.as_deref().map(traces::endpoint);
        let otlp = endpoint
            .transpose()?
            .map(|endpoint| Otlp { endpoint, share });

        let shares = Quota::default();
        let bound = |flag, given, default: usize| {
            of_company(flag, given, default as u32).map(|bound| bound as usize)
        };
        let calls = bound("--company-calls", options.company_calls, shares.calls)?;
        // Whoever allows more requests allows the connections that they need.
        let sockets = Quota::sockets_for(calls).clamp(shares.sockets, COMPANY_BOUND_MAX as usize);
        let quota = Quota {
            sessions: bound(
                "--company-sessions",
                options.company_sessions,
                shares.sessions,
            )?,
            calls,
            sockets: bound("--company-sockets", options.company_sockets, sockets)?,
            memory_bytes: bound(
                "--company-memory-mib",
                options.company_memory_mib,
                shares.memory_bytes >> 20,
            )? << 20,
            processor: Duration::from_secs(u64::from(of_company(
                "--company-processor-seconds",
                options.company_processor_seconds,
                60 * u32::try_from(cores).unwrap_or(u32::MAX / 60),
            )?)),
        };
        let guest_memory_mib = bound(
            "--guest-memory-mib",
            options.guest_memory_mib,
            SandboxLimits::default().guest_memory_bytes >> 20,
        )?;
        let company = CompanyBounds {
            connections: of_company(
                "--company-connections",
                options.company_connections,
                CompanyBounds::CONNECTIONS,
            )?,
            connector_mib: of_company(
                "--company-connector-mib",
                options.company_connector_mib,
                CompanyBounds::CONNECTOR_MIB,
            )?,
            connector_versions: of_company(
                "--company-connector-versions",
                options.company_connector_versions,
                CompanyBounds::CONNECTOR_VERSIONS,
            )?,
            compile_seconds: of_company(
                "--company-compile-seconds",
                options.company_compile_seconds,
                CompanyBounds::COMPILE_SECONDS,
            )?,
            deliveries: of_company(
                "--company-deliveries",
                options.company_deliveries,
                CompanyBounds::DELIVERIES,
            )?,
            alerts: of_company(
                "--company-alerts",
                options.company_alerts,
                CompanyBounds::ALERTS,
            )?,
            evaluations: of_company(
                "--company-evaluations",
                options.company_evaluations,
                CompanyBounds::EVALUATIONS,
            )?,
            publications: of_company(
                "--company-publications",
                options.company_publications,
                CompanyBounds::PUBLICATIONS,
            )?,
        };

        Ok(Settings {
            listen: options.listen.unwrap_or(LISTEN),
            database_url,
            data_dir,
            master_key: options.master_key,
            master_key_old: options.master_key_old,
            ready_file: options.ready_file,
            objects,
            files_cache_bytes_max: mebibytes("--files-cache-mib", files_cache_mib)?,
            connector_dir: options.connector_dir,
            allow_network: options.allow_network,
            base_url: options
                .base_url
                .map(|url| web_address("--base-url", url))
                .transpose()?,
            endpoint_base_url: options
                .endpoint_base_url
                .map(|url| web_address("--endpoint-base-url", url))
                .transpose()?,
            trust_proxy: options.trust_proxy,
            payment_provider,
            stripe,
            payable_after,
            identity,
            relay,
            workers,
            busy_poll,
            connections_max,
            connections_per_address_max: options.connections_per_address_max,
            unread_bytes_max: mebibytes(
                "--company-unread-mib",
                options.company_unread_mib.unwrap_or(COMPANY_UNREAD_MIB),
            )?,
            upload_bytes_max: mebibytes(
                "--uploads-mib",
                options.uploads_mib.unwrap_or(UPLOADS_MIB),
            )?,
            company_upload_bytes_max: mebibytes(
                "--company-uploads-mib",
                options.company_uploads_mib.unwrap_or(COMPANY_UPLOADS_MIB),
            )?,
            company_file_bytes_max: mebibytes(
                "--company-files-mib",
                options.company_files_mib.unwrap_or(COMPANY_BYTES_MAX >> 20),
            )?,
            idle: Duration::from_secs(idle_seconds),
            drain: Duration::from_secs(drain_seconds),
            drain_delay: Duration::from_secs(drain_delay_seconds),
            company,
            quota,
            guest_memory_bytes: guest_memory_mib << 20,
            ip_rate_limit: options.ip_rate_limit.unwrap_or(IP_RATE_LIMIT),
            redis_url: options.redis_url.map(RedisUrl),
            kept_answer_bytes_max: i64::from(company_kept_answers_mib) << 20,
            metrics_listen: options.metrics_listen,
            otlp,
            log: options.log.unwrap_or_else(|| "info".to_owned()),
            log_format: options.log_format.unwrap_or(LogFormat::Auto),
        })
    }
}

/// A bound of what one company may use.
fn of_company(flag: &str, given: Option<u32>, default: u32) -> Result<u32> {
    let bound = given.unwrap_or(default);
    ensure!(
        (1..=COMPANY_BOUND_MAX).contains(&bound),
        "{flag} must be 1 to {COMPANY_BOUND_MAX}, not {bound}"
    );
    Ok(bound)
}

/// As bytes.
fn mebibytes(flag: &str, mib: u64) -> Result<u64> {
    ensure!(
        (1..=MIB_MAX).contains(&mib),
        "{flag} must be 1 to {MIB_MAX}, not {mib}"
    );
    Ok(mib << 20)
}

#[cfg(test)]
mod tests;
