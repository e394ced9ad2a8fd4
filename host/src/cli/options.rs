//! Every setting, declared once: its flag, its environment variable, its key in the TOML file and its help.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use ipnet::IpNet;
use serde::Deserialize;

use super::values::{LogFormat, PaymentProvider, network, networks};

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
        value_parser = network,
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
        value_parser = network,
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

    /// A worker with nothing else to do stays awake this long after a request has begun, asked its source something or ended: quicker answers where
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

    /// Connections to one company's sources over HTTP, kept ones included, and cancel requests [default: a quarter more than --company-calls, at least 640].
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
