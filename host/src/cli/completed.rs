//! Settings of one place, completed by those of the next.

use super::Options;

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
