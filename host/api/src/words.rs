//! Texts of which only some words are possible, as the document tells them: `#[schema(value_type = StatusWord)]`.
//!
//! A list that the domain or the store keeps is theirs; the others stand here, and the tests hold every answer against them.

use souk_domain::{alerts, connections, products, publications, webhooks};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

macro_rules! words {
    ($($(#[doc = $about:literal])* $name:ident: $words:expr;)+) => {
        $($(#[doc = $about])*
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let about: &[&str] = &[$($about),*];
                let about = about.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .description((!about.is_empty()).then_some(about))
                    .enum_values(Some($words.iter().copied()))
                    .into()
            }
        }

        impl ToSchema for $name {})+
    };
}

words! {
    /// Whose fault it was.
    Blamed: ["connector", "source", "caller", "host"];
    /// Why a run was charged, or why not.
    ExecutionBilling: ["charged", "owner", "preview", "test", "empty", "not_modified", "free", "failed"];
    ExecutionStatus: ["succeeded", "failed"];
    /// What a failed run was answered with: each has its code.
    FailureClass: souk_app::failure::Class::ALL.map(souk_app::failure::Class::as_str);
    FilterOperator: ["eq", "gt", "gte", "lt", "lte", "in", "like"];
    /// Who did it: a key, a user who was signed in, or nobody of ours, such as a payment provider.
    ActorType: ["key", "user", "none"];
    /// How webhooks were told of it.
    AlertDelivery: ["none", "pending", "delivered", "failed", "partial"];
    AlertEventState: alerts::State::ALL.map(alerts::State::as_str);
    AlertOperator: alerts::Operator::ALL.map(alerts::Operator::as_str);
    /// The state of an alert: `unknown` until it has been evaluated, `error` when it could not be, `paused` while it is not active.
    AlertState: ["unknown", "ok", "triggered", "error", "paused"];
    /// Endpoint keys are made under their endpoint.
    AnalyticsKeyType: ["analytics"];
    AssetType: products::AssetType::WORDS;
    AuditChange: ["created", "changed", "deleted"];
    /// What one call is: an asset is billed by executions, an endpoint by requests.
    BillingUnit: ["execution", "request"];
    /// What is booked, the movements that no statement shows included.
    BookedType: [
        "top_up", "grant", "charge", "refund", "maturity", "payout", "payout_paid", "payout_return", "adjustment",
    ];
    CallableRoute: ["data", "preview", "execute", "test", "url"];
    ChartFormat: ["vega-lite"];
    /// The mark of a chart; without it, the columns decide.
    ChartMark: souk_app::definition::MARKS;
    ColumnType: [
        "boolean", "int64", "float64", "decimal", "text", "bytes", "date", "time", "timestamp",
        "local_timestamp", "json",
    ];
    CompanyStatus: ["active", "suspended"];
    /// What the last test of this version found.
    ConnectionStatus: ["unverified", "active", "failed"];
    ConnectorNeed: ["tcp", "http", "directory"];
    ConnectorScope: ["platform", "company"];
    ConnectorStatus: ["staged", "active", "canary", "draining", "retired", "rejected"];
    CredentialType: ["PASSWORD", "API_KEY", "SERVICE_ACCOUNT", "NONE"];
    DeliveryStatus: ["pending", "delivered", "failed"];
    Direction: ["asc", "desc"];
    /// Why a webhook is not active: on request, because its receiver answered 410, or because nothing could be delivered for 5 days.
    DisabledReason: ["request", "gone", "failing"];
    EventType: webhooks::EventType::ALL.map(webhooks::EventType::as_str);
    FiguresPeriod: ["day", "week", "month", "quarter"];
    FindingKind: [
        "account_balance", "account_held", "transaction_amount", "orphan_entry", "unknown_account", "charge_without_run",
        "run_without_charge", "refused_charge",
    ];
    ForecastField: ["value", "lower", "upper"];
    Frequency: ["minute", "hour", "day", "week", "month", "quarter", "year"];
    HealthStatus: ["ok"];
    /// What the last test of it as it is now found.
    IntegrationStatus: ["untested", "active", "failed"];
    KeySource: ["seller", "marketplace"];
    KeyStatus: ["active", "expired", "deactivated"];
    KeyType: ["analytics", "endpoint"];
    /// `fault`: the host says how the connector broke.
    LogStream: ["stdout", "stderr", "fault"];
    Method: ["GET", "POST", "PUT", "PATCH", "DELETE"];
    ParameterType: ["integer", "number", "string", "boolean", "date", "timestamp"];
    PayoutMethodType: ["bank_account", "paypal", "stripe_connect"];
    /// The money of one that has failed or was cancelled is payable again.
    PayoutStatus: ["requested", "processing", "paid", "failed", "cancelled"];
    PayoutStep: ["processing", "paid", "failed", "cancelled"];
    Permission: ["read", "write"];
    /// `COMMAND`: not by a request, but by the operator on the machine itself.
    AuditMethod: ["POST", "PUT", "PATCH", "DELETE", "GET", "COMMAND"];
    /// How many requests a month a company may send.
    Plan: ["starter", "growth", "scale"];
    PostStatus: ["draft", "published"];
    PriceFactorName: ["same_category", "same_sport", "shared_words", "same_result_type"];
    PriceTarget: ["revenue", "volume"];
    ProductStatus: products::ProductStatus::WORDS;
    ProductType: products::ProductType::WORDS;
    /// What became of a post at an integration: `retrying` when an attempt failed and another one follows, `failed` when the platform refuses it
    /// (ask anew when what is wrong is mended), `given_up` when it was tried eight times or the integration was deleted.
    PublicationStatus: publications::State::ALL.map(publications::State::as_str);
    PurchaseStatus: ["active", "cancelled", "suspended"];
    ResultType: products::ResultType::WORDS;
    SslMode: connections::SslMode::ALL.map(connections::SslMode::as_str);
    StatisticsPeriod: ["24h", "7d", "30d", "90d", "custom"];
    TopUpStatus: ["pending", "settled", "failed"];
    TransactionStatus: ["posted"];
    TransactionType: ["top_up", "grant", "charge", "refund", "earning", "payout", "adjustment"];
    UserStatus: ["active", "invited", "disabled"];
    UserSwitch: ["active", "disabled"];
    Version: ["v1"];
}
