//! To which user of a company something new belongs.

use souk_domain::fields::FieldErrors;
use souk_domain::ids::{CompanyId, UserId};
use souk_store::{StoreError, users};

use crate::App;

/// The user that something new belongs to: one of the company, the caller's own when none is named. Platform staff may act in another company
/// under their own name.
pub(crate) async fn owner(
    app: &App,
    company: &CompanyId,
    given: Option<&str>,
    of_caller: Option<&UserId>,
    errors: &mut FieldErrors,
) -> Result<Option<UserId>, StoreError> {
    let user = match (given, of_caller) {
        (Some(id), _) => UserId::parse(id).map_err(|error| error.to_string()),
        (None, Some(user)) => Ok(user.clone()),
        (None, None) => Err("is required: this key belongs to no user".to_owned()),
    };
    let user = match user {
        Ok(user) => user,
        Err(message) => {
            errors.add("user_id", "invalid", message);
            return Ok(None);
        }
    };
    let is_known = of_caller == Some(&user)
        || users::get(&mut *app.db.read().await?, company, &user)
            .await?
            .is_some();
    if !is_known {
        let message = format!("the company has no user \"{user}\"");
        errors.add("user_id", "unknown", message);
    }
    Ok(is_known.then_some(user))
}
