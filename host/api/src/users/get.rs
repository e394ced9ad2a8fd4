use super::find;
use crate::companies::shape::UserOut;
use crate::{ApiState, Caller, Data, Operation, Path, Problem};
use axum::extract::State;
use souk_domain::ids::{CompanyId, UserId};

pub const OPERATION: Operation =
    Operation::get("get_user", "/companies/{company_id}/users/{user_id}")
        .about("Users", "Get a user");

/// Gets a user.
pub async fn get_user(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, UserId)>,
) -> Result<Data<UserOut>, Problem> {
    let mut read = api.db().read().await?;
    let user = find(&mut read, &caller, &id).await?;
    Ok(Data((&user).into()))
}
