//! Posts as their company and their readers see them, and what may be said of one.

use crate::words;
use crate::{FieldError, Patch, Text};
use serde::Serialize;
use souk_domain::fields::FieldErrors;
use souk_domain::ids::{AssetId, CompanyId, PostId, UserId};
use souk_domain::posts::{
    ASSETS_MAX, BODY_CHARS_MAX, SUMMARY_CHARS_MAX, TAG_CHARS_MAX, TAGS_MAX, TITLE_CHARS_MAX,
    is_image_address, is_slug,
};
use souk_domain::time::Timestamp;
use souk_store::posts::{Post, Written};
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[schema(as = Post)]
pub struct PostOut {
    #[schema(value_type = String)]
    id: PostId,
    #[schema(value_type = String)]
    company_id: CompanyId,
    company_handle: String,
    company_name: String,
    /// Who wrote it; left out for readers.
    #[schema(value_type = String)]
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<UserId>,
    title: String,
    slug: String,
    summary: String,
    /// As it was written: whoever shows it as HTML makes sure that it is safe. Left out in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_markdown: Option<String>,
    cover_image_url: Option<String>,
    tags: Vec<String>,
    #[schema(value_type = Vec<String>)]
    asset_ids: Vec<AssetId>,
    #[schema(value_type = words::PostStatus)]
    status: &'static str,
    /// Readers, each counted once a day.
    #[schema(minimum = 0)]
    view_count: i64,
    #[schema(value_type = Option<String>, format = DateTime)]
    published_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

impl PostOut {
    /// For its company.
    pub fn own(post: Post) -> PostOut {
        PostOut {
            id: post.id,
            company_id: post.company_id,
            company_handle: post.company_handle,
            company_name: post.company_name,
            user_id: Some(post.user_id),
            title: post.written.title,
            slug: post.written.slug,
            summary: post.written.summary,
            body_markdown: Some(post.written.body_markdown),
            cover_image_url: post.written.cover_image_url,
            tags: post.written.tags,
            asset_ids: post.written.asset_ids,
            status: match post.published_at {
                Some(_) => "published",
                None => "draft",
            },
            view_count: post.view_count,
            published_at: post.published_at,
            created_at: post.created_at,
            updated_at: post.updated_at,
        }
    }

    /// For its readers.
    pub fn public(post: Post) -> PostOut {
        PostOut {
            user_id: None,
            ..PostOut::own(post)
        }
    }

    /// In a list.
    pub fn listed(self) -> PostOut {
        PostOut {
            body_markdown: None,
            ..self
        }
    }
}

/// What a body may say of a post. Absent: as it is.
#[derive(Default)]
pub struct Given {
    pub title: Option<String>,
    pub slug: Option<String>,
    pub summary: Patch<String>,
    pub body_markdown: Option<String>,
    pub cover_image_url: Patch<String>,
    pub tags: Patch<Vec<String>>,
    pub asset_ids: Patch<Vec<String>>,
}

impl Given {
    /// Lays it over what there is.
    pub fn over(self, written: &mut Written, wrong: &mut FieldErrors) {
        if let Some(text) = self.title {
            text_of::<1, TITLE_CHARS_MAX>("title", text, wrong, &mut written.title);
        }
        if let Some(slug) = self.slug {
            match is_slug(&slug) {
                true => written.slug = slug,
                false => wrong.add(
                    "slug",
                    "invalid",
                    "has 1 to 63 characters of a-z, 0-9 and -, and neither begins nor ends with -",
                ),
            }
        }
        match self.summary {
            Patch::Absent => {}
            Patch::Null => written.summary.clear(),
            Patch::Value(text) => {
                text_of::<0, SUMMARY_CHARS_MAX>("summary", text, wrong, &mut written.summary);
            }
        }
        if let Some(text) = self.body_markdown {
            let body = &mut written.body_markdown;
            text_of::<1, BODY_CHARS_MAX>("body_markdown", text, wrong, body);
        }
        match self.cover_image_url {
            Patch::Absent => {}
            Patch::Null => written.cover_image_url = None,
            Patch::Value(url) => match is_image_address(&url) {
                true => written.cover_image_url = Some(url),
                false => wrong.add(
                    "cover_image_url",
                    "invalid",
                    "must be an https:// address of at most 2000 characters",
                ),
            },
        }
        match self.tags {
            Patch::Absent => {}
            Patch::Null => written.tags = Vec::new(),
            Patch::Value(tags) => written.tags = tags_of(tags, wrong),
        }
        match self.asset_ids {
            Patch::Absent => {}
            Patch::Null => written.asset_ids = Vec::new(),
            Patch::Value(ids) => written.asset_ids = assets_of(&ids, wrong),
        }
    }
}

fn text_of<const MIN: usize, const MAX: usize>(
    field: &'static str,
    text: String,
    wrong: &mut FieldErrors,
    place: &mut String,
) {
    match Text::<MIN, MAX>::new(text) {
        Some(text) => *place = text.into_string(),
        None => {
            let message = format!("must be a text of {MIN} to {MAX} characters");
            wrong.push(FieldError::new(field, "invalid", message));
        }
    }
}

/// Each once, in the order in which they were given.
fn tags_of(given: Vec<String>, wrong: &mut FieldErrors) -> Vec<String> {
    if given.len() > TAGS_MAX {
        wrong.add(
            "tags",
            "invalid",
            format!("must be at most {TAGS_MAX} tags"),
        );
        return Vec::new();
    }
    let mut tags: Vec<String> = Vec::with_capacity(given.len());
    for (place, tag) in given.into_iter().enumerate() {
        match Text::<1, TAG_CHARS_MAX>::new(tag).map(Text::into_string) {
            Some(tag) if tags.contains(&tag) => {}
            Some(tag) => tags.push(tag),
            None => {
                let message = format!("must be a text of 1 to {TAG_CHARS_MAX} characters");
                wrong.add(format!("tags[{place}]"), "invalid", message);
            }
        }
    }
    tags
}

fn assets_of(given: &[String], wrong: &mut FieldErrors) -> Vec<AssetId> {
    if given.len() > ASSETS_MAX {
        let message = format!("must be at most {ASSETS_MAX} assets");
        wrong.add("asset_ids", "invalid", message);
        return Vec::new();
    }
    let mut ids = Vec::with_capacity(given.len());
    for (place, id) in given.iter().enumerate() {
        match AssetId::parse(id) {
            Ok(id) if ids.contains(&id) => {}
            Ok(id) => ids.push(id),
            Err(error) => {
                wrong.add(format!("asset_ids[{place}]"), "invalid", error.to_string());
            }
        }
    }
    ids
}
