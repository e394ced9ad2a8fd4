//! What very many words are looked up by: a beginning of two letters, say, that a company has filled with words of its own. They are not all gone
//! through; those come first that products have which are run much.

use crate::bulk::Bulk;
use crate::error::StoreError;
use crate::fields::Fields;
use souk_domain::words::beginning;
use sqlx::AnyConnection;

/// The place of a typed word, and a text that it is looked up by.
pub(super) type Key = (i64, String);

/// A word that such a text means.
pub(super) struct Found {
    pub term: String,
    /// One of the products that are run most has it.
    pub is_popular: bool,
}

/// More than 10,000 words are kept under it: to go through those, and to order them, takes some milliseconds.
static CROWDED: Bulk = Bulk::new(
    "SELECT v.column1 AS word, v.column2 AS variant",
    2,
    "WHERE v.column1 IS NOT NULL
       AND (SELECT s.term FROM search_variants s WHERE s.variant = v.column2 ORDER BY s.term LIMIT 1 OFFSET 10000) IS NOT NULL",
);

/// Takes out those that are crowded, and returns them.
pub(super) async fn take(
    db: &mut AnyConnection,
    keys: &mut Vec<Key>,
) -> Result<Vec<Key>, StoreError> {
    let rows = CROWDED
        .fetch(db, keys, |values, key| {
            values
                .number(key.map(|key| key.0))
                .text(key.map(|key| key.1.as_str()));
        })
        .await?;
    let mut crowded = Vec::new();
    for row in &rows {
        crowded.push((row.number("word")?, row.text("variant")?));
    }
    keys.retain(|key| !crowded.contains(key));
    Ok(crowded)
}

/// Some of the words that are kept under a crowded text, popular ones twice where they are among the others.
pub(super) async fn some(db: &mut AnyConnection, key: &str) -> Result<Vec<Found>, StoreError> {
    let mut found = Vec::new();
    if let Some(letters) = beginning(key) {
        let popular = popular(db, letters).await?.into_iter().map(|term| Found {
            term,
            is_popular: true,
        });
        found.extend(popular);
    }
    let first = first(db, key).await?.into_iter().map(|term| Found {
        term,
        is_popular: false,
    });
    found.extend(first);
    Ok(found)
}

/// The words with this beginning that the two hundred products on sale have that are run most: they have 250 words each at most. A plus keeps the
/// index from being used that does not know which those are.
async fn popular(db: &mut AnyConnection, letters: &str) -> Result<Vec<String>, StoreError> {
    let rows = sqlx::query(
        "SELECT DISTINCT t.term AS term
         FROM (SELECT s.product_id
               FROM search_products s
               WHERE +s.is_published = 1
               ORDER BY s.popular DESC, s.product_id DESC
               LIMIT 200) AS k
         JOIN search_terms t ON t.subject_id = k.product_id
         WHERE substr(t.term, 1, CAST($2 AS INTEGER)) = $1
         ORDER BY term
         LIMIT 256",
    )
    .bind(letters)
    .bind(letters.chars().count() as i64)
    .fetch_all(db)
    .await?;
    rows.iter().map(|row| row.text("term")).collect()
}

/// Of the first 10,000 words of the alphabet the shortest.
async fn first(db: &mut AnyConnection, key: &str) -> Result<Vec<String>, StoreError> {
    let rows = sqlx::query(
        "SELECT k.term AS term
         FROM (SELECT s.term FROM search_variants s WHERE s.variant = $1 ORDER BY s.term LIMIT 10000) AS k
         ORDER BY LENGTH(k.term), k.term
         LIMIT 256",
    )
    .bind(key)
    .fetch_all(db)
    .await?;
    rows.iter().map(|row| row.text("term")).collect()
}
