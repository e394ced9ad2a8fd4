//! The command line. Every setting is declared once, in `options`; `completed` says which place wins. What they mean together is decided
//! in `settings.rs`.

mod completed;
mod options;
mod values;

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};

use crate::commands;
pub use options::Options;
pub use values::{LogFormat, PaymentProvider};

const AFTER_HELP: &str = "\
A setting given as a flag wins over its environment variable, which wins over the file named by --config,
which wins over the default. The file holds the same names with underscores:

    listen = \"0.0.0.0:8080\"
    database_url = \"postgres://souk@db/souk\"
    allow_network = [\"10.1.0.0/16\"]

An unknown key in the file is an error, an unknown variable SOUK_… a line in the log.
Logs go to standard error: text on a terminal, JSON otherwise.";

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

/// Of these names of variables those that are meant for this program and that nothing in it reads: misspelt, most likely.
pub fn unread_variables(given: impl Iterator<Item = (OsString, OsString)>) -> Vec<String> {
    let mut read = BTreeSet::new();
    note_variables(&Cli::command(), &mut read);
    let texts = given.filter_map(|(name, value)| {
        let value = value.to_string_lossy().into_owned();
        Some((name.into_string().ok()?, value))
    });
    let unread = texts.filter(|(name, value)| {
        name.starts_with("SOUK_") && !read.contains(name) && !is_service_link(name, value)
    });
    unread.map(|(name, _)| name).collect()
}

/// Kubernetes tells each container of the services beside it, of one that is called souk, or souk-service, too, as Docker's links did: `…_SERVICE_HOST`,
/// `…_SERVICE_PORT` and `…_SERVICE_PORT_HTTP` with a number, `…_PORT` with `tcp://…`, and `…_PORT_8080_TCP` with what may follow.
fn is_service_link(name: &str, value: &str) -> bool {
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    let of_service = name
        .split_once("_SERVICE_PORT")
        .is_some_and(|(_, rest)| (rest.is_empty() || rest.starts_with('_')) && is_port(value));
    let mut of_ports = name.split("_PORT_").skip(1).map(|rest| rest.split('_'));
    let of_port = of_ports.any(|mut words| {
        words.next().is_some_and(is_port) && matches!(words.next(), Some("TCP" | "UDP" | "SCTP"))
    });
    let of_address = name.ends_with("_PORT") && value.contains("://");
    name.ends_with("_SERVICE_HOST") || of_service || of_address || of_port
}

/// Those that a command and its own commands read.
fn note_variables(command: &clap::Command, read: &mut BTreeSet<String>) {
    for argument in command.get_arguments() {
        read.extend(
            argument
                .get_env()
                .and_then(|name| name.to_str().map(str::to_owned)),
        );
    }
    for command in command.get_subcommands() {
        note_variables(command, read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_misspelt_variable_is_found() {
        let given = [
            ("SOUK_DATABASE_URI", "postgres://db/souk"),
            ("SOUK_DATABASE_URL", "postgres://db/souk"),
            ("SOUK_API_KEY", "sk_service_x"),
            ("SOUK_PORT", "8080"),
            ("SOUK_LISTEN_PORT", "8080"),
            ("SOUK_SERVICE_NAME", "souk"),
            ("SOUK_SERVICE_PORTS", "8080"),
            ("SOUK_PORT_HTTP", "8080"),
            ("PATH", "/bin"),
        ];
        let told = [
            "SOUK_DATABASE_URI",
            "SOUK_PORT",
            "SOUK_LISTEN_PORT",
            "SOUK_SERVICE_NAME",
            "SOUK_SERVICE_PORTS",
            "SOUK_PORT_HTTP",
        ];
        let variables = given.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        assert_eq!(unread_variables(variables.into_iter()), told);
    }

    /// Services of Kubernetes that are called souk and souk-service, as each container beside them is told of them.
    #[test]
    fn what_kubernetes_tells_of_services_is_no_misspelt_variable() {
        let mut given = Vec::new();
        for service in ["SOUK", "SOUK_SERVICE"] {
            for (name, value) in [
                ("SERVICE_HOST", "10.0.0.11"),
                ("SERVICE_PORT", "8080"),
                ("SERVICE_PORT_HTTP", "8080"),
                ("PORT", "tcp://10.0.0.11:8080"),
                ("PORT_8080_TCP", "tcp://10.0.0.11:8080"),
                ("PORT_8080_TCP_PROTO", "tcp"),
                ("PORT_8080_TCP_PORT", "8080"),
                ("PORT_8080_TCP_ADDR", "10.0.0.11"),
                ("PORT_53_UDP", "udp://10.0.0.11:53"),
            ] {
                let name = format!("{service}_{name}");
                given.push((OsString::from(name), OsString::from(value)));
            }
        }
        let none: [String; 0] = [];
        assert_eq!(unread_variables(given.into_iter()), none);
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
