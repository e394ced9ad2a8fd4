//! The index of products: written wherever a product or a company's name is.

use crate::bulk::Bulk;
use crate::db::{Db, Write};
use crate::error::StoreError;
use crate::fields::{Fields, corrupt};
use crate::search::variants;
use souk_domain::ids::CompanyId;
use souk_domain::words;
use sqlx::any::AnyRow;
use std::collections::BTreeMap;

/// What a word counts by where it stands.
const IN_NAME: i64 = 16;
pub(crate) const IN_LABEL: i64 = 6;
const IN_COMPANY: i64 = 3;
const IN_DESCRIPTION: i64 = 2;
/// Words of one product: the first ones of a long description. A new word is some twenty rows, written in time.
const TERMS_MAX: usize = 250;
/// Characters of a name that orders look at.
const NAME_KEY_CHARS: usize = 60;
/// Products indexed in one transaction, so that others get their turn.
const BATCH: i64 = 50;
/// Of what [`index`] writes. Products that an older version indexed are indexed again when a host starts.
const VERSION: i64 = 1;
/// Precedes what is a term, and no word: an industry (`#i51`) or a use case (`#u3`).
const LABEL: char = '#';
/// What a label counts: filters ask for it, words do not find it.
const AS_LABEL: i64 = 0;

/// Indexes a product as it is now. One that is archived, or not there, leaves the index.
pub(crate) async fn index(tx: &mut Write, product: &str) -> Result<(), StoreError> {
    let row = sqlx::query(
        "SELECT p.product_type, p.company_id, p.name, p.description, p.category, p.labels, p.status, p.created_at, p.published_at,
                CAST(p.allow_ai_training AS BIGINT) AS allow_ai_training, d.sport, d.result_type
         FROM products p
         LEFT JOIN asset_details d ON d.id = p.id
         WHERE p.id = $1 AND p.status <> 'archived'",
    )
    .bind(product)
    .fetch_optional(&mut **tx)
    .await?;
    match row {
        Some(row) => {
            put_product(tx, product, &row).await?;
            put_terms(tx, product, &terms(&row)?).await
        }
        None => {
            sqlx::query("DELETE FROM search_products WHERE product_id = $1")
                .bind(product)
                .execute(&mut **tx)
                .await?;
            put_terms(tx, product, &BTreeMap::new()).await
        }
    }
}

/// The words of a company's name, which its products are found by too.
pub(crate) async fn index_company(
    tx: &mut Write,
    company: &CompanyId,
    name: &str,
) -> Result<(), StoreError> {
    let words = words::words(name).take(TERMS_MAX);
    let terms = words.map(|word| (format!("@{word}"), IN_COMPANY)).collect();
    put_terms(tx, company.as_str(), &terms).await
}

async fn put_product(tx: &mut Write, product: &str, row: &AnyRow) -> Result<(), StoreError> {
    let name: String = row.text("name")?;
    let lower = name.chars().flat_map(char::to_lowercase);
    let lower: String = lower.take(NAME_KEY_CHARS).collect();
    let listed_at = row.number_opt("published_at")?;
    let listed_at = listed_at.map_or_else(|| row.number("created_at"), Ok)?;
    sqlx::query(
        "INSERT INTO search_products (product_id, product_type, company_id, is_published, name_key, category, sport, result_type,
                                      allow_ai_training, listed_at, version, popular, trending)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, 0)
         ON CONFLICT (product_id) DO UPDATE
         SET is_published = $4, name_key = $5, category = $6, sport = $7, result_type = $8, allow_ai_training = $9, listed_at = $10,
             version = $11",
    )
    .bind(product)
    .bind(row.text("product_type")?)
    .bind(row.text("company_id")?)
    .bind(i64::from(row.text("status")? == "published"))
    .bind(hex::encode(lower))
    .bind(row.text_opt("category")?)
    .bind(row.text_opt("sport")?)
    .bind(row.text_opt("result_type")?)
    .bind(row.number("allow_ai_training")?)
    .bind(listed_at)
    .bind(VERSION)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The words of a product with what each counts at the best place where it stands, and its labels.
fn terms(row: &AnyRow) -> Result<BTreeMap<String, i64>, StoreError> {
    let labels = Labels::read(&row.text("labels")?)?;
    let mut terms = BTreeMap::new();
    let mut add = |text: &str, weight: i64| {
        for word in words::words(text) {
            if terms.len() < TERMS_MAX || terms.contains_key(&word) {
                let counts = terms.entry(word).or_insert(weight);
                *counts = weight.max(*counts);
            }
        }
    };
    add(&row.text("name")?, IN_NAME);
    for label in [row.text_opt("category")?, row.text_opt("sport")?] {
        add(&label.unwrap_or_default(), IN_LABEL);
    }
    labels.tags.iter().for_each(|tag| add(tag, IN_LABEL));
    add(&row.text("description")?, IN_DESCRIPTION);
    let industries = labels.industry_ids.into_iter().map(of_industry);
    let use_cases = labels.use_case_ids.into_iter().map(of_use_case);
    terms.extend(industries.chain(use_cases).map(|term| (term, AS_LABEL)));
    Ok(terms)
}

/// What a product of this industry has among its terms.
pub(super) fn of_industry(id: i64) -> String {
    format!("{LABEL}i{id}")
}

pub(super) fn of_use_case(id: i64) -> String {
    format!("{LABEL}u{id}")
}

/// As `products.labels` has them.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Labels {
    industry_ids: Vec<i64>,
    use_case_ids: Vec<i64>,
    pub(super) tags: Vec<String>,
}

impl Labels {
    pub(super) fn read(labels: &str) -> Result<Labels, StoreError> {
        serde_json::from_str(labels).map_err(|error| corrupt("labels", error))
    }
}

static REMOVE: Bulk = Bulk::new(
    "DELETE FROM search_terms WHERE (term, subject_id) IN (SELECT column1, column2",
    2,
    "WHERE column1 IS NOT NULL)",
);

static ADD: Bulk = Bulk::new(
    "INSERT INTO search_terms (term, subject_id, weight)
     SELECT column1, column2, column3",
    3,
    "WHERE column1 IS NOT NULL
     ON CONFLICT (term, subject_id) DO UPDATE SET weight = excluded.weight",
);

/// Makes `terms` the words of a product or a company, and writes only what differs.
async fn put_terms(
    tx: &mut Write,
    subject: &str,
    terms: &BTreeMap<String, i64>,
) -> Result<(), StoreError> {
    let rows = sqlx::query("SELECT term, weight FROM search_terms WHERE subject_id = $1")
        .bind(subject)
        .fetch_all(&mut **tx)
        .await?;
    let mut former = BTreeMap::new();
    for row in &rows {
        former.insert(row.text("term")?, row.number("weight")?);
    }
    let gone: Vec<&str> = former
        .keys()
        .filter(|term| !terms.contains_key(*term))
        .map(String::as_str)
        .collect();
    let changed: Vec<(&str, i64)> = terms
        .iter()
        .filter(|(term, weight)| former.get(*term) != Some(weight))
        .map(|(term, weight)| (term.as_str(), *weight))
        .collect();
    if gone.is_empty() && changed.is_empty() {
        return Ok(());
    }
    variants::lock(tx).await?;
    REMOVE
        .run(tx, &gone, |values, term| {
            values.text(term.copied()).text(term.map(|_| subject));
        })
        .await?;
    ADD.run(tx, &changed, |values, term| {
        values
            .text(term.map(|term| term.0))
            .text(term.map(|_| subject))
            .number(term.map(|term| term.1));
    })
    .await?;
    let added = changed
        .iter()
        .filter(|(term, _)| !former.contains_key(*term));
    let gone = gone.iter().filter_map(|term| word(term)).collect();
    let added = added.filter_map(|(term, _)| word(term)).collect();
    variants::change(tx, &gone, &added).await
}

/// The word that a term is, of a product or of a company's name. A label is none.
fn word(term: &str) -> Option<String> {
    let is_word = !term.starts_with(LABEL);
    is_word.then(|| term.trim_start_matches('@').to_owned())
}

/// Indexes what an older version left without, or indexed otherwise: some companies and products, each in a transaction of their own. Called
/// when a host starts; does nothing where nothing is missing.
pub async fn catch_up(db: &Db) -> Result<(), StoreError> {
    let mut last = Some(String::new());
    while let Some(behind) = last {
        last = db.write(async |write| batch(write, &behind).await).await?;
    }
    Ok(())
}

/// The last of those indexed, all of which are behind `behind`. A company that has no word in its name has none in the index either, so companies
/// are taken with their products.
async fn batch(tx: &mut Write, behind: &str) -> Result<Option<String>, StoreError> {
    let rows = sqlx::query(
        "SELECT p.id, p.company_id, c.name AS company_name
         FROM products p
         JOIN companies c ON c.id = p.company_id
         WHERE p.id > $1 AND p.status <> 'archived'
           AND NOT EXISTS (SELECT 1 FROM search_products s WHERE s.product_id = p.id AND s.version = $2)
         ORDER BY p.id
         LIMIT $3",
    )
    .bind(behind)
    .bind(VERSION)
    .bind(BATCH)
    .fetch_all(&mut **tx)
    .await?;
    let (mut companies, mut last) = (BTreeMap::new(), None);
    for row in &rows {
        let product = row.text("id")?;
        index(tx, &product).await?;
        last = Some(product);
        let company: CompanyId = row.id("company_id")?;
        companies.insert(company, row.text("company_name")?);
    }
    for (company, name) in companies {
        index_company(tx, &company, &name).await?;
    }
    Ok(last)
}
