use super::shape::{Given, PostOut};
use super::{check_assets, find, refuse};
use crate::refusals::{INVALID_STATE, SLUG_TAKEN, VALIDATION_ERROR};
use crate::texts::PostTag;
use crate::{ApiState, Body, Caller, Data, Operation, Patch, Path, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::fields::FieldErrors;
use souk_domain::ids::{CompanyId, PostId};
use souk_domain::roles::{Permission, Role};
use souk_store::{companies, posts};
use utoipa::ToSchema;

pub const OPERATION: Operation =
    Operation::patch("update_post", "/companies/{company_id}/posts/{post_id}")
        .about("Posts", "Change a post")
        .notes("Readers of a published post see the change at once. Its `slug` stays as long as it is published: 409.")
        .needs(Role::DataScientist, Permission::Write)
        .refuses(&[SLUG_TAKEN, INVALID_STATE]);

#[derive(Deserialize, ToSchema)]
pub struct PostPatch {
    #[schema(min_length = 1, max_length = 200)]
    title: Option<String>,
    #[schema(
        min_length = 1,
        max_length = 63,
        pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
    )]
    slug: Option<String>,
    /// `null` clears it.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 1000)]
    summary: Patch<String>,
    #[schema(min_length = 1, max_length = 50000)]
    body_markdown: Option<String>,
    /// `null` clears it.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 2000, pattern = "^https://")]
    cover_image_url: Patch<String>,
    /// All of them; `null` clears them.
    #[serde(default)]
    #[schema(value_type = Option<Vec<PostTag>>, max_items = 20)]
    tags: Patch<Vec<String>>,
    /// All of them; `null` clears them.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>, max_items = 20)]
    asset_ids: Patch<Vec<String>>,
}

/// Changes a post.
pub async fn update_post(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, id)): Path<(CompanyId, PostId)>,
    Body(body): Body<PostPatch>,
) -> Result<Data<PostOut>, Problem> {
    let now = caller.now();
    let given = Given {
        title: body.title,
        slug: body.slug,
        summary: body.summary,
        body_markdown: body.body_markdown,
        cover_image_url: body.cover_image_url,
        tags: body.tags,
        asset_ids: body.asset_ids,
    };
    api.db()
        .write(async |write| {
            // What is read here is written again: of two changes at once one would undo the other.
            companies::lock(write, caller.company()).await?;
            let before = find(write, &caller, &id).await?;
            let (mut written, mut wrong) = (before.written.clone(), FieldErrors::default());
            given.over(&mut written, &mut wrong);
            if !wrong.is_empty() {
                return Err(Problem::fields(VALIDATION_ERROR, wrong.into_vec()));
            }
            if written.asset_ids != before.written.asset_ids {
                check_assets(write, &caller, &written.asset_ids).await?;
            }
            if written.slug != before.written.slug && before.published_at.is_some() {
                return Err(Problem::state(
                    "published",
                    "the slug of a published post cannot be changed: unpublish it first",
                ));
            }
            let saved = posts::update(write, &id, &written, now).await?;
            refuse(saved, &written.slug)?;
            Ok(Data(PostOut::own(find(write, &caller, &id).await?)))
        })
        .await
}
