//! Which tests make which operation leave its lines in the audit log. Together they are all operations that change something: the edge's test
//! compares the lists with the router's.

/// By a host with connectors and sources.
pub const BY_HOSTS: &[&str] = &[
    "create_connection",
    "update_connection",
    "test_connection",
    "delete_connection",
    "create_asset",
    "update_asset",
    "publish_asset",
    "unpublish_asset",
    "delete_asset",
    "create_endpoint",
    "update_endpoint",
    "publish_endpoint",
    "unpublish_endpoint",
    "delete_endpoint",
    "upload_connector",
    "activate_connector",
    "rollback_connector",
    "deactivate_connector",
    "delete_connector_version",
    "upload_company_connector",
    "activate_company_connector",
    "rollback_company_connector",
    "deactivate_company_connector",
    "delete_company_connector_version",
    "create_integration",
    "update_integration",
    "test_integration",
    "delete_integration",
    "create_publication",
    "publish_post_to",
];

/// By the edge's test of payments, which has a payment provider.
pub const BY_PAYMENTS: &[&str] = &["receive_payment_event"];

/// By the edge's tests of signing in, which have an identity provider.
pub const BY_PROVIDERS: &[&str] = &["sign_in", "sign_in_to_company"];

/// They change nothing that lasts, or only count.
pub const NOTHING: &[&str] = &["test_unsaved_connection", "view_post", "view_company_post"];
