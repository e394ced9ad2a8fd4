use crate::companies::shape::UserOut;
use crate::query::{choices, parameters};
use crate::{ApiState, Caller, Integer, List, Operation, Paging, Problem, Query, Text};
use axum::extract::State;
use souk_domain::roles::Role;
use souk_store::users::{self, UserFilter, UserStatus};

pub const OPERATION: Operation = Operation::get("list_users", "/companies/{company_id}/users")
    .about("Users", "List a company's users, oldest first");

choices! {
    impl UserStatus {
        Active = "active",
        Invited = "invited",
        Disabled = "disabled",
    }
}

parameters! {
    pub struct UsersQuery {
        ..paging: Paging,
        /// Only users in this state.
        status: Option<UserStatus>,
        /// Only users with exactly this role.
        role_id: Option<Integer<1, 5>>,
        /// Part of the name or of the email address, in any case.
        q: Option<Text<0, 255>>,
    }
}

/// Lists a company's users.
pub async fn list_users(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<UsersQuery>,
) -> Result<List<UserOut>, Problem> {
    let page = query.paging.page();
    let filter = UserFilter {
        status: query.status,
        role: query
            .role_id
            .and_then(|level| Role::from_level(level.get())),
        part: query.q.map(Text::into_string),
    };
    let mut read = api.db().read().await?;
    let listed = users::list(&mut read, caller.company(), &filter, page.part()).await?;
    Ok(List::of(page, listed, |user| UserOut::from(&user)))
}
