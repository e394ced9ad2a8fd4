use super::shape::{Given, PostOut};
use super::{check_assets, find, refuse};
use crate::refusals::{CONFLICT, SLUG_TAKEN, USER_NOT_FOUND, VALIDATION_ERROR};
use crate::texts::PostTag;
use crate::{ApiState, Body, Caller, Created, Operation, Patch, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::fields::FieldErrors;
use souk_domain::ids::{PostId, UserId};
use souk_domain::posts::{slug_of, slug_with};
use souk_domain::roles::{Permission, Role};
use souk_store::posts::{self, Saved, Written};
use souk_store::users;
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post("create_post", "/companies/{company_id}/posts")
    .about("Posts", "Write a post")
    .notes(
        "A draft, which only the company sees until it is published. Without a `slug` it is made of the title. Slugs are unique over all \
         companies. A company has at most 1,000 posts.",
    )
    .needs(Role::DataScientist, Permission::Write)
    .refuses(&[SLUG_TAKEN, CONFLICT, USER_NOT_FOUND]);

#[derive(Deserialize, ToSchema)]
pub struct PostIn {
    #[schema(min_length = 1, max_length = 200)]
    title: String,
    #[schema(
        min_length = 1,
        max_length = 63,
        pattern = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
    )]
    slug: Option<String>,
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 1000)]
    summary: Patch<String>,
    #[schema(min_length = 1, max_length = 50000)]
    body_markdown: String,
    /// `https://`
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 2000, pattern = "^https://")]
    cover_image_url: Patch<String>,
    /// At most 20, of at most 50 characters.
    #[serde(default)]
    #[schema(value_type = Option<Vec<PostTag>>, max_items = 20)]
    tags: Patch<Vec<String>>,
    /// At most 20: the company's own, or on sale.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>, max_items = 20)]
    asset_ids: Patch<Vec<String>>,
    /// Default: the key's user.
    user_id: Option<String>,
}

/// Writes a post.
pub async fn create_post(
    State(api): State<ApiState>,
    caller: Caller,
    Body(body): Body<PostIn>,
) -> Result<Created<PostOut>, Problem> {
    let (id, mut wrong) = (PostId::generate(), FieldErrors::default());
    let user = match &body.user_id {
        Some(user) => UserId::parse(user).map_err(|error| error.to_string()),
        None => caller
            .user()
            .cloned()
            .ok_or_else(|| "is required: this key is no user's".to_owned()),
    };
    if let Err(message) = &user {
        wrong.add("user_id", "invalid", message.as_str());
    }
    let given_slug = body.slug.is_some();
    let mut written = Written {
        title: String::new(),
        slug: slug_of(&body.title),
        summary: String::new(),
        body_markdown: String::new(),
        cover_image_url: None,
        tags: Vec::new(),
        asset_ids: Vec::new(),
    };
    if written.slug.is_empty() {
        written.slug = slug_with("", id.as_str());
    }
    let given = Given {
        title: Some(body.title),
        slug: body.slug,
        summary: body.summary,
        body_markdown: Some(body.body_markdown),
        cover_image_url: body.cover_image_url,
        tags: body.tags,
        asset_ids: body.asset_ids,
    };
    given.over(&mut written, &mut wrong);
    let user = match (user, wrong.is_empty()) {
        (Ok(user), true) => user,
        _ => return Err(Problem::fields(VALIDATION_ERROR, wrong.into_vec())),
    };
    let (company, now) = (caller.company(), caller.now());
    api.db()
        .write(async |write| {
            if users::get(write, company, &user).await?.is_none() {
                return Err(Problem::not_found("user", user.as_str()));
            }
            check_assets(write, &caller, &written.asset_ids).await?;
            let mut saved = posts::insert(write, &id, company, &user, &written, now).await?;
            if saved == Saved::SlugTaken && !given_slug {
                written.slug = slug_with(&written.slug, id.as_str());
                saved = posts::insert(write, &id, company, &user, &written, now).await?;
            }
            refuse(saved, &written.slug)?;
            let post = find(write, &caller, &id).await?;
            Ok(Created {
                location: format!("/companies/{company}/posts/{id}"),
                data: PostOut::own(post),
            })
        })
        .await
}
