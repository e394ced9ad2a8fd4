//! Posts: what companies write to be read by anybody, and how often each was read.

use crate::db::Write;
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use crate::lists::{List, Listed, Part, Values};
use serde_json::json;
use souk_domain::ids::{AssetId, CompanyId, PostId, UserId};
use souk_domain::posts::{POSTS_MAX, READERS_MAX};
use souk_domain::time::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

/// Readers of a post that one transaction forgets: a commit of so many holds nobody up, and one of a day's hundred thousand would.
const FORGOTTEN_AT_ONCE: i64 = 500;

/// What somebody wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub title: String,
    pub slug: String,
    pub summary: String,
    pub body_markdown: String,
    pub cover_image_url: Option<String>,
    pub tags: Vec<String>,
    pub asset_ids: Vec<AssetId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    pub id: PostId,
    pub company_id: CompanyId,
    pub company_handle: String,
    pub company_name: String,
    pub user_id: UserId,
    pub written: Written,
    pub view_count: i64,
    /// Of one that is published.
    pub published_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What became of an insertion or a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    Done,
    /// Another post has the slug.
    SlugTaken,
    /// The company has as many as any may have.
    TooMany,
}

macro_rules! columns {
    () => {
        "p.id, p.company_id, c.handle, c.name AS company_name, p.user_id, p.title, p.slug, p.summary, p.body_markdown, p.cover_image_url,
         p.tags, p.asset_ids, p.view_count, p.published_at, p.created_at, p.updated_at"
    };
}

/// Lists leave the text out: a page of them would be megabytes.
macro_rules! listed_columns {
    () => {
        "p.id, p.company_id, c.handle, c.name AS company_name, p.user_id, p.title, p.slug, p.summary, '' AS body_markdown, p.cover_image_url,
         p.tags, p.asset_ids, p.view_count, p.published_at, p.created_at, p.updated_at"
    };
}

/// Adds a draft.
pub async fn insert(
    write: &mut Write,
    id: &PostId,
    company: &CompanyId,
    user: &UserId,
    written: &Written,
    now: Timestamp,
) -> Result<Saved, StoreError> {
    crate::companies::lock(write, company).await?;
    let count = sqlx::query("SELECT COUNT(*) AS total FROM posts WHERE company_id = $1")
        .bind(company.as_str())
        .fetch_one(&mut **write)
        .await?
        .number("total")?;
    if count >= POSTS_MAX {
        return Ok(Saved::TooMany);
    }
    let inserted = sqlx::query(
        "INSERT INTO posts (id, company_id, user_id, title, slug, summary, body_markdown, cover_image_url, tags, asset_ids, status,
                            view_count, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'draft', 0, $11, $11)
         ON CONFLICT (slug) DO NOTHING",
    )
    .bind(id.as_str())
    .bind(company.as_str())
    .bind(user.as_str())
    .bind(&written.title)
    .bind(&written.slug)
    .bind(&written.summary)
    .bind(&written.body_markdown)
    .bind(written.cover_image_url.as_deref())
    .bind(json!(written.tags).to_string())
    .bind(json!(written.asset_ids).to_string())
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    Ok(match inserted.rows_affected() {
        0 => Saved::SlugTaken,
        _ => Saved::Done,
    })
}

/// Writes what it says from now on.
pub async fn update(
    write: &mut Write,
    id: &PostId,
    written: &Written,
    now: Timestamp,
) -> Result<Saved, StoreError> {
    let updated = sqlx::query(
        "UPDATE posts
         SET title = $2, slug = $3, summary = $4, body_markdown = $5, cover_image_url = $6, tags = $7, asset_ids = $8, updated_at = $9
         WHERE id = $1
           AND NOT EXISTS (SELECT 1 FROM posts AS others WHERE others.slug = $3 AND others.id <> $1)",
    )
    .bind(id.as_str())
    .bind(&written.title)
    .bind(&written.slug)
    .bind(&written.summary)
    .bind(&written.body_markdown)
    .bind(written.cover_image_url.as_deref())
    .bind(json!(written.tags).to_string())
    .bind(json!(written.asset_ids).to_string())
    .bind(now.micros())
    .execute(&mut **write)
    .await;
    match updated {
        Ok(updated) if updated.rows_affected() == 1 => Ok(Saved::Done),
        Ok(_) => Ok(Saved::SlugTaken),
        Err(error) => Err(error.into()),
    }
}

/// Puts it before everybody, or takes it back. What is so already stays as it is.
pub async fn set_published(
    write: &mut Write,
    id: &PostId,
    is_published: bool,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (to, from) = match is_published {
        true => ("published", "draft"),
        false => ("draft", "published"),
    };
    sqlx::query(
        "UPDATE posts SET status = $2, published_at = $4, updated_at = $5 WHERE id = $1 AND status = $3",
    )
    .bind(id.as_str())
    .bind(to)
    .bind(from)
    .bind(is_published.then(|| now.micros()))
    .bind(now.micros())
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// What became of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    Done,
    /// Some of its readers are forgotten. The post is there until it is deleted again, after a commit.
    Begun,
    /// The company has none such.
    NoSuch,
}

/// Removes a post, and who has read it; of one with very many readers these first, some in each transaction.
pub async fn delete(
    write: &mut Write,
    company: &CompanyId,
    id: &PostId,
) -> Result<Deletion, StoreError> {
    let forgotten = sqlx::query(
        "DELETE FROM post_views
         WHERE (post_id, viewed_on, reader) IN (SELECT v.post_id, v.viewed_on, v.reader
                                                FROM posts p
                                                JOIN post_views v ON v.post_id = p.id
                                                WHERE p.id = $1 AND p.company_id = $2
                                                LIMIT $3)",
    )
    .bind(id.as_str())
    .bind(company.as_str())
    .bind(FORGOTTEN_AT_ONCE)
    .execute(&mut **write)
    .await?;
    if forgotten.rows_affected() >= FORGOTTEN_AT_ONCE as u64 {
        return Ok(Deletion::Begun);
    }
    let deleted = sqlx::query("DELETE FROM posts WHERE id = $1 AND company_id = $2")
        .bind(id.as_str())
        .bind(company.as_str())
        .execute(&mut **write)
        .await?;
    if deleted.rows_affected() == 0 {
        return Ok(Deletion::NoSuch);
    }
    // On a store that hosts share somebody may have read it meanwhile; from here on nobody does.
    forget_readers(write, id, i64::MAX).await?;
    crate::publications::delete_of(write, id).await?;
    Ok(Deletion::Done)
}

/// Forgets who has read a post on days before one, some at once.
async fn forget_readers(write: &mut Write, id: &PostId, before: i64) -> Result<(), StoreError> {
    sqlx::query(
        "DELETE FROM post_views
         WHERE (post_id, viewed_on, reader) IN (SELECT post_id, viewed_on, reader
                                                FROM post_views
                                                WHERE post_id = $1 AND viewed_on < $2
                                                LIMIT $3)",
    )
    .bind(id.as_str())
    .bind(before)
    .bind(FORGOTTEN_AT_ONCE)
    .execute(&mut **write)
    .await?;
    Ok(())
}

pub async fn get(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &PostId,
) -> Result<Option<Post>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM posts p JOIN companies c ON c.id = p.company_id WHERE p.id = $1 AND p.company_id = $2"
    ))
    .bind(id.as_str())
    .bind(company.as_str())
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

/// A post that anybody may read, by its id or its slug.
pub async fn get_published(
    db: &mut AnyConnection,
    id_or_slug: &str,
) -> Result<Option<Post>, StoreError> {
    let row = sqlx::query(concat!(
        "SELECT ",
        columns!(),
        " FROM posts p JOIN companies c ON c.id = p.company_id
         WHERE (p.id = $1 OR p.slug = $1) AND p.status = 'published' AND c.status = 'active'"
    ))
    .bind(id_or_slug)
    .fetch_optional(db)
    .await?;
    row.as_ref().map(from_row).transpose()
}

/// Which posts to list.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    pub is_published: Option<bool>,
    pub tag: Option<&'a str>,
    /// Occurs in the title or the summary.
    pub text: Option<&'a str>,
}

impl Filter<'_> {
    fn bind(&self, values: &mut Values) {
        let status = self.is_published.map(|is_published| match is_published {
            true => "published",
            false => "draft",
        });
        // As a tag stands in a JSON array.
        let tag = self.tag.map(|tag| json!(tag).to_string());
        // Nothing is everywhere, and replacing it changes nothing.
        let text = self.text.filter(|text| !text.is_empty());
        values.text(status).text(tag.as_deref()).text(text);
    }
}

// A text is where replacing it changes something. Both stores have that function, and compare bytes in it as fast as memory goes; SQLite's LIKE goes
// character by character, and begins anew at each place: what nearly is everywhere in a text took it fifty times as long. Nor does it tell A from a,
// which are two tags.
static LIST: List = List::new(
    listed_columns!(),
    "FROM posts p
     JOIN companies c ON c.id = p.company_id
     WHERE p.company_id = $1
       AND (CAST($2 AS TEXT) IS NULL OR p.status = $2)
       AND (CAST($3 AS TEXT) IS NULL OR REPLACE(p.tags, $3, '') <> p.tags)
       AND (CAST($4 AS TEXT) IS NULL
            OR REPLACE(LOWER(p.title || ' ' || p.summary), LOWER($4), '') <> LOWER(p.title || ' ' || p.summary))",
    "p.created_at DESC, p.id",
    4,
);

/// A company's posts, newest first, without their text.
pub async fn list(
    db: &mut AnyConnection,
    company: &CompanyId,
    filter: Filter<'_>,
    part: Part,
) -> Result<Listed<Post>, StoreError> {
    let bind = |values: &mut Values| {
        values.text(Some(company.as_str()));
        filter.bind(values);
    };
    LIST.fetch(db, part, bind, from_row).await
}

static LIST_PUBLISHED: List = List::new(
    listed_columns!(),
    "FROM posts p
     JOIN companies c ON c.id = p.company_id
     WHERE p.status = 'published' AND c.status = 'active'
       AND (CAST($1 AS TEXT) IS NULL OR c.handle = $1)
       AND (CAST($2 AS TEXT) IS NULL OR p.status = $2)
       AND (CAST($3 AS TEXT) IS NULL OR REPLACE(p.tags, $3, '') <> p.tags)
       AND (CAST($4 AS TEXT) IS NULL
            OR REPLACE(LOWER(p.title || ' ' || p.summary), LOWER($4), '') <> LOWER(p.title || ' ' || p.summary))",
    "p.published_at DESC, p.id",
    4,
);

/// What anybody may read, of one company (by its handle) or of all: newest first, without their text.
pub async fn list_published(
    db: &mut AnyConnection,
    handle: Option<&str>,
    filter: Filter<'_>,
    part: Part,
) -> Result<Listed<Post>, StoreError> {
    let bind = |values: &mut Values| {
        values.text(handle);
        filter.bind(values);
    };
    LIST_PUBLISHED.fetch(db, part, bind, from_row).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    pub total: i64,
    pub published: i64,
    pub views: i64,
    pub last_published_at: Option<Timestamp>,
    /// Posts at integrations, each counted once at each.
    pub publications: i64,
}

pub async fn summary(db: &mut AnyConnection, company: &CompanyId) -> Result<Summary, StoreError> {
    let row = sqlx::query(
        "SELECT COUNT(*) AS total,
                CAST(COALESCE(SUM(CASE WHEN status = 'published' THEN 1 ELSE 0 END), 0) AS BIGINT) AS published,
                CAST(COALESCE(SUM(view_count), 0) AS BIGINT) AS views,
                MAX(published_at) AS last_published_at,
                (SELECT COUNT(*) FROM publications WHERE company_id = $1 AND published_at IS NOT NULL) AS publications
         FROM posts
         WHERE company_id = $1",
    )
    .bind(company.as_str())
    .fetch_one(db)
    .await?;
    Ok(Summary {
        total: row.number("total")?,
        published: row.number("published")?,
        views: row.number("views")?,
        last_published_at: row.time_opt("last_published_at")?,
        publications: row.number("publications")?,
    })
}

/// Whether this reader was counted today, or nobody is counted any more.
pub async fn is_counted(
    db: &mut AnyConnection,
    id: &PostId,
    reader: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let row = sqlx::query(
        "SELECT CASE WHEN EXISTS (SELECT 1 FROM post_views WHERE post_id = $1 AND viewed_on = $2 AND reader = $3) THEN 1
                     WHEN (SELECT COUNT(*) FROM post_views WHERE post_id = $1 AND viewed_on = $2) >= $4 THEN 1
                     ELSE 0 END AS counted",
    )
    .bind(id.as_str())
    .bind(now.day_start().micros())
    .bind(reader)
    .bind(READERS_MAX)
    .fetch_one(db)
    .await?;
    Ok(row.number("counted")? == 1)
}

/// Counts a reader, once a day. Returns how often the post was read in all. Some readers of former days are forgotten; more are by the next reader.
pub async fn count_view(
    write: &mut Write,
    id: &PostId,
    reader: &str,
    now: Timestamp,
) -> Result<i64, StoreError> {
    let today = now.day_start().micros();
    let counted = sqlx::query(
        "INSERT INTO post_views (post_id, viewed_on, reader) VALUES ($1, $2, $3) ON CONFLICT (post_id, viewed_on, reader) DO NOTHING",
    )
    .bind(id.as_str())
    .bind(today)
    .bind(reader)
    .execute(&mut **write)
    .await?;
    forget_readers(write, id, today).await?;
    let row = sqlx::query(
        "UPDATE posts SET view_count = view_count + $2 WHERE id = $1 RETURNING view_count",
    )
    .bind(id.as_str())
    .bind(counted.rows_affected() as i64)
    .fetch_optional(&mut **write)
    .await?;
    row.ok_or(StoreError::NotFound)?.number("view_count")
}

fn from_row(row: &AnyRow) -> Result<Post, StoreError> {
    Ok(Post {
        id: row.id("id")?,
        company_id: row.id("company_id")?,
        company_handle: row.text("handle")?,
        company_name: row.text("company_name")?,
        user_id: row.id("user_id")?,
        written: Written {
            title: row.text("title")?,
            slug: row.text("slug")?,
            summary: row.text("summary")?,
            body_markdown: row.text("body_markdown")?,
            cover_image_url: row.text_opt("cover_image_url")?,
            tags: read("tags", &row.text("tags")?)?,
            asset_ids: read("asset_ids", &row.text("asset_ids")?)?,
        },
        view_count: row.number("view_count")?,
        published_at: row.time_opt("published_at")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}

fn read<T: serde::de::DeserializeOwned>(column: &str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| corrupt(column, error))
}
