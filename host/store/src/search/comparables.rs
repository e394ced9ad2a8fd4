//! What else is on sale that an asset can be compared with.

use crate::error::StoreError;
use crate::fields::Fields;
use crate::search::index::{IN_LABEL, Labels};
use souk_domain::estimates::Traits;
use souk_domain::ids::{AssetId, CompanyId};
use souk_domain::time::Timestamp;
use souk_domain::words;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

/// Candidates, the most used first: what is bought most says most, and the rest would change little.
const COMPARED_MAX: i64 = 200;

/// Words by which others are found. Very many products have some of them, and a description's worth of words says little more than a name's.
const WORDS_MAX: i64 = 20;

/// An asset of another company on sale, with the price that holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub id: String,
    pub name: String,
    pub traits: Traits,
    pub price_credits: i64,
}

/// What makes an asset like others.
pub async fn traits(db: &mut AnyConnection, asset: &AssetId) -> Result<Traits, StoreError> {
    let row = sqlx::query(
        "SELECT p.name, p.category, p.labels, d.sport, d.result_type
         FROM products p
         JOIN asset_details d ON d.id = p.id
         WHERE p.id = $1",
    )
    .bind(asset.as_str())
    .fetch_optional(db)
    .await?;
    of_row(&row.ok_or(StoreError::NotFound)?)
}

/// Assets of other companies in good standing that share the category, the sport, or a word with this one: of its name first, then of its labels, and
/// of those that stand alike the longer, which fewer others have. What nobody could be shown is left out where it is found: a company's own products
/// may be thousands that have all words in common. The order of the joins is written so: SQLite would go through all that is on sale for each word.
pub async fn candidates(
    db: &mut AnyConnection,
    company: &CompanyId,
    asset: &AssetId,
    now: Timestamp,
) -> Result<Vec<Candidate>, StoreError> {
    let rows = sqlx::query(
        "SELECT p.id, p.name, p.category, p.labels, s.sport, s.result_type, r.price_credits
         FROM search_products s
         JOIN products p ON p.id = s.product_id
         JOIN prices r ON r.product_id = s.product_id AND r.effective_from <= $3 AND COALESCE(r.effective_to, 9223372036854775807) > $3
         WHERE s.is_published = 1 AND s.product_type = 'asset' AND s.company_id <> $2
           AND s.company_id NOT IN (SELECT id FROM companies WHERE status <> 'active')
           AND s.product_id IN (SELECT k.product_id
                                FROM search_products o
                                JOIN search_products k ON k.category = o.category
                                WHERE o.product_id = $1 AND k.is_published = 1 AND k.company_id <> $2
                                UNION
                                SELECT k.product_id
                                FROM search_products o
                                JOIN search_products k ON k.sport = o.sport
                                WHERE o.product_id = $1 AND k.is_published = 1 AND k.company_id <> $2
                                UNION
                                SELECT k.product_id
                                FROM (SELECT term
                                      FROM search_terms
                                      WHERE subject_id = $1 AND weight >= $4
                                      ORDER BY weight DESC, LENGTH(term) DESC, term
                                      LIMIT $6) AS o
                                CROSS JOIN search_terms t
                                CROSS JOIN search_products k
                                WHERE t.term = o.term AND t.weight >= $4
                                  AND k.product_id = t.subject_id AND k.is_published = 1 AND k.company_id <> $2)
         ORDER BY s.popular DESC, s.product_id DESC
         LIMIT $5",
    )
    .bind(asset.as_str())
    .bind(company.as_str())
    .bind(now.micros())
    .bind(IN_LABEL)
    .bind(COMPARED_MAX)
    .bind(WORDS_MAX)
    .fetch_all(db)
    .await?;
    rows.iter()
        .map(|row| {
            Ok(Candidate {
                id: row.text("id")?,
                name: row.text("name")?,
                traits: of_row(row)?,
                price_credits: row.number("price_credits")?,
            })
        })
        .collect()
}

fn of_row(row: &AnyRow) -> Result<Traits, StoreError> {
    let tags = Labels::read(&row.text("labels")?)?.tags;
    let texts = std::iter::once(row.text("name")?).chain(tags);
    Ok(Traits {
        category: row.text_opt("category")?,
        sport: row.text_opt("sport")?,
        result_type: row.text_opt("result_type")?,
        words: texts
            .flat_map(|text| words::words(&text).collect::<Vec<_>>())
            .collect(),
    })
}
