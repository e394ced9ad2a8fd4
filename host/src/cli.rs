//! The command line. Every setting is declared once, here: its flag, its environment variable, its
//! key in the TOML file and its help. What they mean together is decided in `settings.rs`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use ipnet::IpNet;
use serde::{Deserialize, Deserializer};

use crate::commands;

const AFTER_HELP: &str = "\
A setting given as a flag wins over its environment variable, which wins over the file named by --config,
which wins over the default. The file holds the same names with underscores:

    listen = \"0.0.0.0:8080\"
    database_url = \"postgres://souk@db/souk\"
    allow_network = [\"10.1.0.0/16\"]

An unknown key in the file is an error. Logs go to standard error: text on a terminal, JSON otherwise.";

#[derive(Parser)]
#[command(
    name = "souk",
    version,
    about = "An analytics marketplace: sellers connect databases and APIs, buyers call the results over REST.",
    after_help = AFTER_HELP,
    max_term_width = 110
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run the marketplace.
    ///
    /// The first start on an empty store creates the platform company and its role 5 key, which is shown once: in
    /// the ready file, or on standard output without one. SIGTERM and SIGINT finish what is in flight, then stop.
    #[command(after_help = AFTER_HELP)]
    Serve(Options),
    /// Run a marketplace with a seller, a buyer, assets, an endpoint and a sample seller API in it.
    ///
    /// Prints the keys and a few curl lines that work when pasted. A later start on the same data directory goes on
    /// where the last one stopped, with the same keys.
    #[command(after_help = AFTER_HELP)]
    Demo(Options),
    #[command(flatten)]
    Operate(commands::Command),
    /// Write connectors: check, try and test them, without a host.
    #[command(subcommand)]
    Connector(crate::commands::connector::Connector),
    /// Compile one connector, as a child of the sandbox.
    #[command(hide = true)]
    Compile,
}

/// Settings as given in one place; absent means: ask the next place.
#[derive(Args, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Read further settings from this TOML file.
    #[arg(long, env = "SOUK_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Address to accept requests on; port 0 picks a free one [default: 127.0.0.1:8080].
    #[arg(long, env = "SOUK_LISTEN", value_name = "ADDR")]
    pub listen: Option<SocketAddr>,

    /// Directory of everything that is kept: the embedded store, the master key, companies' files, compiled
    /// connectors [default: souk-data for serve, souk-demo for demo].
    #[arg(long, env = "SOUK_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// The store: `sqlite:FILE` for one host, `postgres://…` for any number of hosts that share it
    /// [default: sqlite:souk.db in the data directory].
    #[arg(
        long,
        env = "SOUK_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub database_url: Option<String>,

    /// 32 bytes in hex or base64 that seal sellers' credentials. Prefer the environment variable: other users of
    /// the machine can read a command line [default: a file with mode 0600 in the data directory, made on the first
    /// start]. Hosts that share a store must share this key.
    #[arg(
        long,
        env = "SOUK_MASTER_KEY",
        value_name = "KEY",
        hide_env_values = true
    )]
    pub master_key: Option<String>,

    /// Master keys of the past, which open what they sealed but seal nothing anew. Repeatable.
    #[arg(
        long,
        env = "SOUK_MASTER_KEY_OLD",
        value_name = "KEY",
        value_delimiter = ',',
        hide_env_values = true
    )]
    pub master_key_old: Vec<String>,

    /// Write the addresses (and keys that were just made) to this file once requests are accepted, in one rename.
    #[arg(long, env = "SOUK_READY_FILE", value_name = "FILE")]
    pub ready_file: Option<PathBuf>,

    /// The object store by which hosts share companies' files, of any server that speaks S3:
    /// s3://bucket/prefix?endpoint=https://minio.internal:9000&region=us-east-1&sslrootcert=FILE. Without an endpoint it is Amazon's. All hosts of a
    /// store get the same [default: files lie in the data directory of the host that took the upload].
    #[arg(
        long,
        env = "SOUK_FILES_URL",
        value_name = "URL",
        help_heading = "Files"
    )]
    pub files_url: Option<String>,

    /// In whose name it is asked [default: as the machine says to Amazon's own tools: AWS_ACCESS_KEY_ID, a web identity, the role of the instance].
    #[arg(
        long,
        env = "SOUK_FILES_ACCESS_KEY_ID",
        value_name = "ID",
        help_heading = "Files"
    )]
    pub files_access_key_id: Option<String>,

    /// The secret that goes with it. Prefer the environment variable.
    #[arg(
        long,
        env = "SOUK_FILES_SECRET_ACCESS_KEY",
        value_name = "SECRET",
        hide_env_values = true,
        help_heading = "Files"
    )]
    pub files_secret_access_key: Option<String>,

    /// MiB of this host's disk for copies of files that lie in the object store, at least 1024, the largest file [default: 16384].
    #[arg(
        long,
        env = "SOUK_FILES_CACHE_MIB",
        value_name = "MIB",
        help_heading = "Files"
    )]
    pub files_cache_mib: Option<u64>,

    /// Load connectors from this directory too and watch it for new ones.
    #[arg(
        long,
        env = "SOUK_CONNECTOR_DIR",
        value_name = "DIR",
        help_heading = "Connectors"
    )]
    pub connector_dir: Option<PathBuf>,

    /// Let connectors and webhooks reach this network although it is not public: `10.1.0.0/16`, `192.0.2.7/32`. Repeatable.
    #[arg(
        long,
        env = "SOUK_ALLOW_NETWORK",
        value_name = "CIDR",
        value_delimiter = ',',
        help_heading = "Connectors"
    )]
    #[serde(deserialize_with = "networks")]
    pub allow_network: Vec<IpNet>,

    /// How clients reach this host, when that is not the listening address: `https://api.example.com`.
    #[arg(
        long,
        env = "SOUK_BASE_URL",
        value_name = "URL",
        help_heading = "Addresses"
    )]
    pub base_url: Option<String>,

    /// Where sellers' endpoints are fetched [default: the base URL]. With `https://data.example.com`, the subdomain
    /// names the seller: `https://acme.data.example.com/endpoints/v1/league-goals`.
    #[arg(
        long,
        env = "SOUK_ENDPOINT_BASE_URL",
        value_name = "URL",
        help_heading = "Addresses"
    )]
    pub endpoint_base_url: Option<String>,

    /// Believe X-Forwarded-For and X-Forwarded-Host of proxies in this network. Repeatable.
    #[arg(
        long,
        env = "SOUK_TRUST_PROXY",
        value_name = "CIDR",
        value_delimiter = ',',
        help_heading = "Addresses"
    )]
    #[serde(deserialize_with = "networks")]
    pub trust_proxy: Vec<IpNet>,

    /// Who collects the money when companies buy credits: bank transfers that platform staff settles (manual), Stripe
    /// Checkout (stripe), or, in the demo only, nobody (instant) [default: manual for serve, instant for demo].
    #[arg(
        long,
        env = "SOUK_PAYMENT_PROVIDER",
        value_name = "PROVIDER",
        value_enum,
        help_heading = "Payments"
    )]
    pub payment_provider: Option<PaymentProvider>,

    /// The secret key of the Stripe account, `sk_…`. Prefer the environment variable.
    #[arg(
        long,
        env = "SOUK_STRIPE_SECRET_KEY",
        value_name = "KEY",
        hide_env_values = true,
        help_heading = "Payments"
    )]
    pub stripe_secret_key: Option<String>,

    /// The signing secret, `whsec_…`, of the Stripe webhook that points to /webhooks/payments/stripe. Prefer the
    /// environment variable.
    #[arg(
        long,
        env = "SOUK_STRIPE_WEBHOOK_SECRET",
        value_name = "SECRET",
        hide_env_values = true,
        help_heading = "Payments"
    )]
    pub stripe_webhook_secret: Option<String>,

    /// Where Stripe's API is, for tests against a stand-in on this machine [default: https://api.stripe.com].
    #[arg(
        long,
        env = "SOUK_STRIPE_BASE_URL",
        value_name = "URL",
        help_heading = "Payments"
    )]
    pub stripe_base_url: Option<String>,

    /// What sellers earn by a call becomes payable when the call is this old [default: 604800, seven days]. Looked at as often, but
    /// at least hourly.
    #[arg(
        long,
        env = "SOUK_PAYABLE_AFTER_SECONDS",
        value_name = "SECONDS",
        help_heading = "Payments"
    )]
    pub payable_after_seconds: Option<u64>,

    /// The client id of this service at the identity provider. With it people sign in there: POST /users/google-oauth.
    #[arg(
        long,
        env = "SOUK_OIDC_CLIENT_ID",
        value_name = "ID",
        help_heading = "Signing in"
    )]
    pub oidc_client_id: Option<String>,

    /// The client secret that goes with it. Prefer the file.
    #[arg(
        long,
        env = "SOUK_OIDC_CLIENT_SECRET",
        value_name = "SECRET",
        hide_env_values = true,
        help_heading = "Signing in"
    )]
    pub oidc_client_secret: Option<String>,

    /// A file with the client secret and nothing else.
    #[arg(
        long,
        env = "SOUK_OIDC_CLIENT_SECRET_FILE",
        value_name = "FILE",
        conflicts_with = "oidc_client_secret",
        help_heading = "Signing in"
    )]
    pub oidc_client_secret_file: Option<PathBuf>,

    /// The identity provider, by any issuer that speaks OpenID Connect [default: https://accounts.google.com].
    #[arg(
        long,
        env = "SOUK_OIDC_ISSUER",
        value_name = "URL",
        help_heading = "Signing in"
    )]
    pub oidc_issuer: Option<String>,

    /// As which the provider is shown: `auth_provider` of users. It must not change [default: google for Google, else oidc].
    #[arg(
        long,
        env = "SOUK_OIDC_NAME",
        value_name = "NAME",
        help_heading = "Signing in"
    )]
    pub oidc_name: Option<String>,

    /// The relay that takes invitations by mail: smtps://user:password@relay:465, or smtp://user:password@relay:587?tls=required.
    /// Without it whoever invites passes the link on. Prefer the environment variable.
    #[arg(
        long,
        env = "SOUK_SMTP_URL",
        value_name = "URL",
        hide_env_values = true,
        help_heading = "Signing in"
    )]
    pub smtp_url: Option<String>,

    /// From whom they come: `Souk <souk@example.org>`, or the address alone.
    #[arg(
        long,
        env = "SOUK_MAIL_FROM",
        value_name = "ADDRESS",
        help_heading = "Signing in"
    )]
    pub mail_from: Option<String>,

    /// Redis or Valkey, on which hosts count rate limits together: redis://:password@redis.internal:6379/0, or rediss:// with TLS, whose
    /// authority is a public one or that of `?sslrootcert=FILE`. Without it, and while it does not answer, each host counts for itself.
    /// Prefer the environment variable.
    #[arg(
        long,
        env = "SOUK_REDIS_URL",
        value_name = "URL",
        hide_env_values = true,
        help_heading = "Bounds"
    )]
    pub redis_url: Option<String>,

    /// Threads that serve requests [default: one per core].
    #[arg(long, env = "SOUK_WORKERS", value_name = "N", help_heading = "Bounds")]
    pub workers: Option<usize>,

    /// A worker with nothing else to do stays awake this long after a request has begun or ended: quicker answers where
    /// sources and clients are near, for processor time that would be idle [default: 100; 0, never, on one core].
    #[arg(
        long,
        env = "SOUK_BUSY_POLL_US",
        value_name = "MICROSECONDS",
        help_heading = "Bounds"
    )]
    pub busy_poll_us: Option<u64>,

    /// Client connections open at once; more are answered 503 [default: 10000].
    #[arg(
        long,
        env = "SOUK_CONNECTIONS_MAX",
        value_name = "N",
        help_heading = "Bounds"
    )]
    pub connections_max: Option<usize>,

    /// Client connections of one address (IPv6: of one /64 network) open at once; more are answered 429. Addresses in
    /// --trust-proxy may have all [default: a quarter of --connections-max, at least 64].
    #[arg(
        long,
        env = "SOUK_CONNECTIONS_PER_ADDRESS_MAX",
        value_name = "N",
        help_heading = "Bounds"
    )]
    pub connections_per_address_max: Option<usize>,

    /// MiB of answers that one company's clients may leave unread before it gets no new ones [default: 256].
    #[arg(
        long,
        env = "SOUK_COMPANY_UNREAD_MIB",
        value_name = "MIB",
        help_heading = "Bounds"
    )]
    pub company_unread_mib: Option<u64>,

    /// MiB of memory that uploads under way may take, all together [default: 512].
    #[arg(
        long,
        env = "SOUK_UPLOADS_MIB",
        value_name = "MIB",
        help_heading = "Bounds"
    )]
    pub uploads_mib: Option<u64>,

    /// MiB of memory that the uploads of one company may take; one alone always may [default: 80].
    #[arg(
        long,
        env = "SOUK_COMPANY_UPLOADS_MIB",
        value_name = "MIB",
        help_heading = "Bounds"
    )]
    pub company_uploads_mib: Option<u64>,

    /// MiB of disk that one company's files may take together [default: 16384].
    #[arg(
        long,
        env = "SOUK_COMPANY_FILES_MIB",
        value_name = "MIB",
        help_heading = "Bounds"
    )]
    pub company_files_mib: Option<u64>,

    /// A client connection without a complete request head for this long is closed [default: 75].
    #[arg(
        long,
        env = "SOUK_IDLE_SECONDS",
        value_name = "SECONDS",
        help_heading = "Bounds"
    )]
    pub idle_seconds: Option<u64>,

    /// At SIGTERM, requests in flight get this long to finish [default: 20].
    #[arg(
        long,
        env = "SOUK_DRAIN_SECONDS",
        value_name = "SECONDS",
        help_heading = "Bounds"
    )]
    pub drain_seconds: Option<u64>,

    /// At SIGTERM, clients are served as before for this long while /readyz says 503, so that balancers send them elsewhere before the listener
    /// closes [default: 0].
    #[arg(
        long,
        env = "SOUK_DRAIN_DELAY_SECONDS",
        value_name = "SECONDS",
        help_heading = "Bounds"
    )]
    pub drain_delay_seconds: Option<u64>,

    /// Requests an hour that one address may make without a valid key [default: 6000].
    #[arg(
        long,
        env = "SOUK_IP_RATE_LIMIT",
        value_name = "N",
        help_heading = "Bounds"
    )]
    pub ip_rate_limit: Option<u32>,

    /// MiB that the answers kept for a company's Idempotency-Keys may take in the store, for 24 hours each; then requests with
    /// a key are refused with 429 [default: 128].
    #[arg(
        long,
        env = "SOUK_COMPANY_KEPT_ANSWERS_MIB",
        value_name = "MIB",
        help_heading = "Bounds"
    )]
    pub company_kept_answers_mib: Option<u32>,

    /// Sessions that the sources of one company may have open together [default: 64].
    #[arg(
        long,
        env = "SOUK_COMPANY_SESSIONS",
        value_name = "N",
        help_heading = "Bounds"
    )]
    pub company_sessions: Option<u32>,

    /// Requests in flight at once to one company's sources, waiting ones included, and of one company's keys [default: 512].
    #[arg(
        long,
        env = "SOUK_COMPANY_CALLS",
        value_name = "N",
        help_heading = "Bounds"
    )]
    pub company_calls: Option<u32>,

    /// Connections to one company's seller APIs, beyond one for each session [default: 256].
    #[arg(
        long,
        env = "SOUK_COMPANY_SOCKETS",
        value_name = "N",
        help_heading = "Bounds"
    )]
    pub company_sockets: Option<u32>,

    /// Memory of one company's connectors, in MiB [default: 2048].
    #[arg(
        long,
        env = "SOUK_COMPANY_MEMORY_MIB",
        value_name = "MIB",
        help_heading = "Bounds"
    )]
    pub company_memory_mib: Option<u32>,

    /// Seconds of each minute that one company's connectors may compute [default: 60 for each core].
    #[arg(
        long,
        env = "SOUK_COMPANY_PROCESSOR_SECONDS",
        value_name = "SECONDS",
        help_heading = "Bounds"
    )]
    pub company_processor_seconds: Option<u32>,

    /// Memory of all connectors together, in MiB [default: 8192].
    #[arg(
        long,
        env = "SOUK_GUEST_MEMORY_MIB",
        value_name = "MIB",
        help_heading = "Bounds"
    )]
    pub guest_memory_mib: Option<u32>,

    /// Data connections that a company may have [default: 100].
    #[arg(
        long,
        env = "SOUK_COMPANY_CONNECTIONS",
        value_name = "N",
        help_heading = "Bounds"
    )]
    pub company_connections: Option<u32>,

    /// What a company's uploaded connectors may have together, in MiB [default: 256].
    #[arg(
        long,
        env = "SOUK_COMPANY_CONNECTOR_MIB",
        value_name = "MIB",
        help_heading = "Bounds"
    )]
    pub company_connector_mib: Option<u32>,

    /// Versions of uploaded connectors that a company may keep [default: 20].
    #[arg(
        long,
        env = "SOUK_COMPANY_CONNECTOR_VERSIONS",
        value_name = "N",
        help_heading = "Bounds"
    )]
    pub company_connector_versions: Option<u32>,

    /// Seconds of each hour that compiling one company's uploads may take on this host [default: 600].
    #[arg(
        long,
        env = "SOUK_COMPANY_COMPILE_SECONDS",
        value_name = "SECONDS",
        help_heading = "Bounds"
    )]
    pub company_compile_seconds: Option<u32>,

    /// Deliveries to one company's webhooks in flight at once [default: 8].
    #[arg(
        long,
        env = "SOUK_COMPANY_DELIVERIES",
        value_name = "N",
        help_heading = "Bounds"
    )]
    pub company_deliveries: Option<u32>,

    /// Alerts that a company may have [default: 1000].
    #[arg(
        long,
        env = "SOUK_COMPANY_ALERTS",
        value_name = "N",
        help_heading = "Bounds"
    )]
    pub company_alerts: Option<u32>,

    /// Evaluations of one company's alerts in flight at once [default: 16].
    #[arg(
        long,
        env = "SOUK_COMPANY_EVALUATIONS",
        value_name = "N",
        help_heading = "Bounds"
    )]
    pub company_evaluations: Option<u32>,

    /// Attempts to publish one company's posts in flight at once [default: 4].
    #[arg(
        long,
        env = "SOUK_COMPANY_PUBLICATIONS",
        value_name = "N",
        help_heading = "Bounds"
    )]
    pub company_publications: Option<u32>,

    /// Serve Prometheus metrics at /metrics on this address, without a key [default: not at all].
    #[arg(
        long,
        env = "SOUK_METRICS_LISTEN",
        value_name = "ADDR",
        help_heading = "Logs and metrics"
    )]
    pub metrics_listen: Option<SocketAddr>,

    /// Send spans of calls to this collector, by OTLP over HTTP: http://127.0.0.1:4318 [default: none are made].
    #[arg(
        long,
        env = "SOUK_OTLP_URL",
        value_name = "URL",
        help_heading = "Logs and metrics"
    )]
    pub otlp_url: Option<String>,

    /// Of how many calls in a hundred, fractions too. Of calls that come through --trust-proxy with a `traceparent`, that says which
    /// [default: 10].
    #[arg(
        long,
        env = "SOUK_OTLP_SAMPLE_PERCENT",
        value_name = "PERCENT",
        help_heading = "Logs and metrics"
    )]
    pub otlp_sample_percent: Option<f64>,

    /// What is logged, as a tracing filter: `info`, `warn,souk_sandbox=debug` [default: info].
    #[arg(
        long,
        env = "SOUK_LOG",
        value_name = "FILTER",
        help_heading = "Logs and metrics"
    )]
    pub log: Option<String>,

    /// How logs look [default: auto, text on a terminal and JSON otherwise].
    #[arg(
        long,
        env = "SOUK_LOG_FORMAT",
        value_name = "FORMAT",
        value_enum,
        help_heading = "Logs and metrics"
    )]
    pub log_format: Option<LogFormat>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum PaymentProvider {
    Manual,
    Stripe,
    Instant,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Auto,
    Text,
    Json,
}

impl Options {
    /// These settings, completed by those of `next`, which matters less.
    pub fn or(self, next: Options) -> Options {
        Options {
            config: self.config,
            listen: self.listen.or(next.listen),
            data_dir: self.data_dir.or(next.data_dir),
            database_url: self.database_url.or(next.database_url),
            master_key: self.master_key.or(next.master_key),
            master_key_old: given(self.master_key_old, next.master_key_old),
            ready_file: self.ready_file.or(next.ready_file),
            files_url: self.files_url.or(next.files_url),
            files_access_key_id: self.files_access_key_id.or(next.files_access_key_id),
            files_secret_access_key: self
                .files_secret_access_key
                .or(next.files_secret_access_key),
            files_cache_mib: self.files_cache_mib.or(next.files_cache_mib),
            connector_dir: self.connector_dir.or(next.connector_dir),
            allow_network: given(self.allow_network, next.allow_network),
            base_url: self.base_url.or(next.base_url),
            endpoint_base_url: self.endpoint_base_url.or(next.endpoint_base_url),
            trust_proxy: given(self.trust_proxy, next.trust_proxy),
            payment_provider: self.payment_provider.or(next.payment_provider),
            stripe_secret_key: self.stripe_secret_key.or(next.stripe_secret_key),
            stripe_webhook_secret: self.stripe_webhook_secret.or(next.stripe_webhook_secret),
            stripe_base_url: self.stripe_base_url.or(next.stripe_base_url),
            payable_after_seconds: self.payable_after_seconds.or(next.payable_after_seconds),
            oidc_client_id: self.oidc_client_id.or(next.oidc_client_id),
            oidc_client_secret: self.oidc_client_secret.or(next.oidc_client_secret),
            oidc_client_secret_file: self
                .oidc_client_secret_file
                .or(next.oidc_client_secret_file),
            oidc_issuer: self.oidc_issuer.or(next.oidc_issuer),
            oidc_name: self.oidc_name.or(next.oidc_name),
            smtp_url: self.smtp_url.or(next.smtp_url),
            mail_from: self.mail_from.or(next.mail_from),
            redis_url: self.redis_url.or(next.redis_url),
            workers: self.workers.or(next.workers),
            busy_poll_us: self.busy_poll_us.or(next.busy_poll_us),
            connections_max: self.connections_max.or(next.connections_max),
            connections_per_address_max: self
                .connections_per_address_max
                .or(next.connections_per_address_max),
            company_unread_mib: self.company_unread_mib.or(next.company_unread_mib),
            uploads_mib: self.uploads_mib.or(next.uploads_mib),
            company_uploads_mib: self.company_uploads_mib.or(next.company_uploads_mib),
            company_files_mib: self.company_files_mib.or(next.company_files_mib),
            idle_seconds: self.idle_seconds.or(next.idle_seconds),
            drain_seconds: self.drain_seconds.or(next.drain_seconds),
            drain_delay_seconds: self.drain_delay_seconds.or(next.drain_delay_seconds),
            ip_rate_limit: self.ip_rate_limit.or(next.ip_rate_limit),
            company_kept_answers_mib: self
                .company_kept_answers_mib
                .or(next.company_kept_answers_mib),
            company_sessions: self.company_sessions.or(next.company_sessions),
            company_calls: self.company_calls.or(next.company_calls),
            company_sockets: self.company_sockets.or(next.company_sockets),
            company_memory_mib: self.company_memory_mib.or(next.company_memory_mib),
            company_processor_seconds: self
                .company_processor_seconds
                .or(next.company_processor_seconds),
            guest_memory_mib: self.guest_memory_mib.or(next.guest_memory_mib),
            company_connections: self.company_connections.or(next.company_connections),
            company_connector_mib: self.company_connector_mib.or(next.company_connector_mib),
            company_connector_versions: self
                .company_connector_versions
                .or(next.company_connector_versions),
            company_compile_seconds: self
                .company_compile_seconds
                .or(next.company_compile_seconds),
            company_deliveries: self.company_deliveries.or(next.company_deliveries),
            company_alerts: self.company_alerts.or(next.company_alerts),
            company_evaluations: self.company_evaluations.or(next.company_evaluations),
            company_publications: self.company_publications.or(next.company_publications),
            metrics_listen: self.metrics_listen.or(next.metrics_listen),
            otlp_url: self.otlp_url.or(next.otlp_url),
            otlp_sample_percent: self.otlp_sample_percent.or(next.otlp_sample_percent),
            log: self.log.or(next.log),
            log_format: self.log_format.or(next.log_format),
        }
    }
}

/// A list is replaced as a whole, never merged: otherwise a flag could not narrow what a file allows.
fn given<T>(first: Vec<T>, next: Vec<T>) -> Vec<T> {
    if first.is_empty() { next } else { first }
}

fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let parse = |text: &String| {
        text.parse().map_err(|_| {
            serde::de::Error::custom(format!("{text:?} is not a network like 10.1.0.0/16"))
        })
    };
    texts.iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_setting_has_an_environment_variable_of_its_own_name() {
        let command = Cli::command();
        let serve = command.find_subcommand("serve").unwrap();
        for argument in serve
            .get_arguments()
            .filter(|argument| argument.get_id() != "help")
        {
            let expected = format!("SOUK_{}", argument.get_id().as_str().to_uppercase());
            assert_eq!(argument.get_env().unwrap().to_str().unwrap(), expected);
        }
    }

    #[test]
    fn every_setting_is_a_key_of_the_file() {
        let file = "
            listen = '0.0.0.0:1'\n data_dir = 'd'\n database_url = 'sqlite:x'\n master_key = 'k'\n master_key_old = ['o']\n ready_file = 'r'
            connector_dir = 'c'\n allow_network = ['10.0.0.0/8']\n base_url = 'http://b'
            endpoint_base_url = 'http://e'\n trust_proxy = ['10.0.0.0/8']\n workers = 1\n connections_max = 2
            idle_seconds = 3\n drain_seconds = 4\n drain_delay_seconds = 5\n ip_rate_limit = 5\n metrics_listen = '127.0.0.1:1'\n log = 'warn'\n log_format = 'json'
            payment_provider = 'stripe'\n stripe_secret_key = 's'\n stripe_webhook_secret = 'w'\n stripe_base_url = 'http://s'
            payable_after_seconds = 6\n busy_poll_us = 7\n company_kept_answers_mib = 8
            company_connections = 8\n company_connector_mib = 9\n company_connector_versions = 10\n company_compile_seconds = 11
            company_deliveries = 12\n company_sessions = 13\n company_calls = 14\n company_sockets = 15\n company_memory_mib = 16
            company_processor_seconds = 17\n guest_memory_mib = 18
            connections_per_address_max = 8\n company_unread_mib = 9\n uploads_mib = 10\n company_uploads_mib = 11
            company_files_mib = 12
            files_url = 's3://f'\n files_access_key_id = 'i'\n files_secret_access_key = 's'\n files_cache_mib = 1024
            oidc_client_id = 'i'\n oidc_client_secret = 's'\n oidc_client_secret_file = 'f'\n oidc_issuer = 'https://i'\n oidc_name = 'n'
            redis_url = 'redis://r'\n smtp_url = 'smtps://r'\n mail_from = 'a@b'
            otlp_url = 'http://o'\n otlp_sample_percent = 0.5
            company_alerts = 1\n company_evaluations = 2\n company_publications = 3
        ";
        let options: Options = toml::from_str(file).unwrap();
        assert_eq!(options.workers, Some(1));
        let keys = file.split('=').count() - 1;
        let settings = Cli::command()
            .find_subcommand("serve")
            .unwrap()
            .get_arguments()
            .count();
        // All but --config, which cannot stand in the file that it names.
        assert_eq!(keys, settings - 1);
        assert!(toml::from_str::<Options>("lisen = '0.0.0.0:1'").is_err());
    }

    #[test]
    fn what_is_given_first_wins() {
        let flag = Options {
            workers: Some(1),
            ..Options::default()
        };
        let file = Options {
            workers: Some(2),
            drain_seconds: Some(3),
            ..Options::default()
        };
        let both = flag.or(file);
        assert_eq!((both.workers, both.drain_seconds), (Some(1), Some(3)));
    }
}
