//! Integrations: where a company's posts are published besides. Credentials go in and never come out. How publishing goes: `souk_app::publications`.

pub mod create;
pub mod delete;
pub mod get;
pub mod list;
pub mod shape;
pub mod test;
pub mod update;

use crate::refusals::{CONFLICT, UNSAFE_URL, VALIDATION_ERROR};
use crate::{FieldError, Problem, Routes};
use souk_app::integrations::IntegrationError;
use souk_domain::integrations::INTEGRATIONS_MAX;

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_integrations)
        .add(create::OPERATION, create::create_integration)
        .add(test::OPERATION, test::test_integration)
        .add(get::OPERATION, get::get_integration)
        .add(update::OPERATION, update::update_integration)
        .add(delete::OPERATION, delete::delete_integration)
}

/// The refusal of an operation on the integration `id`.
fn refusal(id: &str) -> impl Fn(IntegrationError) -> Problem {
    move |error| match error {
        IntegrationError::NotFound => Problem::not_found("integration", id),
        IntegrationError::Invalid(errors) => Problem::fields(VALIDATION_ERROR, errors),
        IntegrationError::UnsafeAddress(message) => {
            let error = FieldError::new("config.base_url", "unsafe", message);
            Problem::fields(UNSAFE_URL, vec![error])
        }
        IntegrationError::UnknownAddress(message) => {
            let error = FieldError::new("config.base_url", "unknown", message);
            Problem::fields(VALIDATION_ERROR, vec![error])
        }
        IntegrationError::TooMany => Problem::of(
            CONFLICT,
            format!("a company has at most {INTEGRATIONS_MAX} integrations: delete one first"),
        ),
        error @ IntegrationError::Lost => Problem::of(CONFLICT, error.to_string()),
        error @ IntegrationError::NoPublisher(_) => Problem::invalid("platform", error.to_string()),
        IntegrationError::BrokenOff(error) => Problem::internal(error),
        IntegrationError::Store(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    async fn breaks() {
        panic!("a defect")
    }

    /// A defect of this service is told as one, and not as a store that is away, which would be tried again for ever.
    #[tokio::test]
    async fn a_panic_is_no_store_that_is_away() {
        let broken_off = tokio::spawn(breaks()).await.unwrap_err();
        let problem = refusal("int_1")(broken_off.into());
        assert_eq!(problem.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(problem.code(), "INTERNAL_ERROR");
    }
}
