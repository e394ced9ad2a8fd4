//! Posts: what a company writes, keeps as a draft, and puts before everybody.

pub mod create;
pub mod delete;
pub mod get;
pub mod get_published;
pub mod list;
pub mod list_published;
pub mod publish;
pub mod shape;
pub mod summary;
pub mod unpublish;
pub mod update;
pub mod view;

use crate::refusals::{CONFLICT, SLUG_TAKEN};
use crate::{ApiState, Caller, Data, FieldError, Problem, Routes};
use shape::PostOut;
use souk_domain::ids::{AssetId, PostId};
use souk_domain::posts::POSTS_MAX;
use souk_domain::products::{Product, ProductStatus};
use souk_store::posts::{self, Post, Saved};
use souk_store::{AnyConnection, companies, products};

pub fn routes() -> Routes {
    Routes::new()
        .add(list::OPERATION, list::list_posts)
        .add(create::OPERATION, create::create_post)
        .add(summary::OPERATION, summary::post_summary)
        .add(get::OPERATION, get::get_post)
        .add(update::OPERATION, update::update_post)
        .add(delete::OPERATION, delete::delete_post)
        .add(publish::OPERATION, publish::publish_post)
        .add(unpublish::OPERATION, unpublish::unpublish_post)
        .add(view::OPERATION, view::view_post)
        .add(view::COMPANY_OPERATION, view::view_company_post)
        .add(
            list_published::OPERATION,
            list_published::list_published_posts,
        )
        .add(get_published::OPERATION, get_published::get_published_post)
}

/// One of the company's posts, or 404.
async fn find(db: &mut AnyConnection, caller: &Caller, id: &PostId) -> Result<Post, Problem> {
    posts::get(db, caller.company(), id)
        .await?
        .ok_or_else(|| not_found(id.as_str()))
}

async fn set_published(
    api: &ApiState,
    caller: &Caller,
    id: &PostId,
    is_published: bool,
) -> Result<Data<PostOut>, Problem> {
    api.db()
        .write(async |write| {
            companies::lock(write, caller.company()).await?;
            find(write, caller, id).await?;
            posts::set_published(write, id, is_published, caller.now()).await?;
            Ok(Data(PostOut::own(find(write, caller, id).await?)))
        })
        .await
}

fn not_found(id: &str) -> Problem {
    Problem::not_found("post", id)
}

/// Names the assets that a post of this company cannot be about: its own that are archived, and others' that are not on sale.
async fn check_assets(
    db: &mut AnyConnection,
    caller: &Caller,
    assets: &[AssetId],
) -> Result<(), Problem> {
    let mut errors = Vec::new();
    for (place, id) in assets.iter().enumerate() {
        let asset = Product::Asset(id.clone());
        let standing = products::status(db, &asset).await?;
        let is_own = standing.is_some_and(|(company, status)| {
            company == *caller.company() && status != ProductStatus::Archived
        });
        if !is_own && !products::is_on_sale(db, &asset).await? {
            let message = format!("there is no asset \"{id}\" that this key can see");
            errors.push(FieldError::new(
                format!("asset_ids[{place}]"),
                "unknown",
                message,
            ));
        }
    }
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Problem::fields(crate::refusals::VALIDATION_ERROR, errors)),
    }
}

/// What was not saved is refused.
fn refuse(saved: Saved, slug: &str) -> Result<(), Problem> {
    match saved {
        Saved::Done => Ok(()),
        Saved::SlugTaken => {
            let message = format!("another post has the slug \"{slug}\"; choose another");
            Err(Problem::of(SLUG_TAKEN, message))
        }
        Saved::TooMany => Err(Problem::of(
            CONFLICT,
            format!("a company has at most {POSTS_MAX} posts: delete one first"),
        )),
    }
}
