//! Finding products by words, filters and orders, alike on every store: an index of ours in plain tables, kept in the transaction that changes
//! what it is of (decision 19).
//!
//! `souk_domain::words` decides which words there are and which are near to what was typed; here they are looked up by texts that are equal.
//! A product is found when each word that was typed means one of its own or of its company's name. Start reading at [`find`]; [`index`] writes,
//! [`learn`] does so a little later for beginnings and typing errors, [`ranks`] counts what is popular.

pub mod comparables;
mod crowded;
pub(crate) mod index;
pub mod ranks;
mod variants;

use crate::bulk::Bulk;
use crate::error::StoreError;
use crate::fields::Fields;
use crate::lists::{self, Listed, Part, Values};
use souk_domain::ids::CompanyId;
use souk_domain::products::{ProductType, ResultType};
use souk_domain::time::Timestamp;
use souk_domain::words::{self, Match};
use sqlx::AnyConnection;
use sqlx::any::AnyRow;
use std::collections::BTreeSet;
use std::fmt::Write;

pub use index::catch_up;
pub use variants::learn;

/// Words that are looked for; what was typed beyond them is not.
pub const WORDS_MAX: usize = 8;
/// Words of the index that all typed ones together may mean: the better come first, among them the shorter. They are chosen from 4,000.
const MEANT_MAX: usize = 256;

/// A word that this many times as many products have as the rarest one is looked up for each that has that one, and not gone through.
const LOOKED_UP_FROM: i64 = 8;

/// What is wanted.
#[derive(Debug, Clone, Default)]
pub struct Wanted<'a> {
    pub text: Option<&'a str>,
    /// This company's products too, whether or not they are published.
    pub own: Option<&'a CompanyId>,
    pub product_type: Option<ProductType>,
    pub category: Option<&'a str>,
    pub sport: Option<&'a str>,
    pub result_type: Option<ResultType>,
    pub engine: Option<i64>,
    pub industry: Option<i64>,
    pub use_case: Option<i64>,
    pub price_min: Option<i64>,
    pub price_max: Option<i64>,
    pub ai_training_allowed: Option<bool>,
    /// Its sample was taken since then.
    pub sampled_since: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// What means the words best first; without words, the newest.
    Relevance,
    Recent,
    Name,
    Popular,
    Trending,
    /// Cheapest first; what has no price last.
    Price,
}

/// The ids of products on sale that match, and how many do in all.
pub async fn find(
    db: &mut AnyConnection,
    wanted: &Wanted<'_>,
    order: Order,
    now: Timestamp,
    part: Part,
) -> Result<Listed<String>, StoreError> {
    let (mut bound, mut from) = (Bound::default(), String::new());
    let read = |row: &AnyRow| row.text("product_id");
    let by = match order {
        Order::Relevance | Order::Recent => "s.listed_at DESC, s.product_id DESC",
        Order::Name => "s.name_key, s.product_id",
        Order::Popular => "s.popular DESC, s.product_id DESC",
        Order::Trending => "s.trending DESC, s.product_id DESC",
        Order::Price => "COALESCE(r.price_credits, 9223372036854775807), s.product_id",
    };
    if wanted.text.is_none() {
        from.push_str("FROM search_products s");
        let holds = push_joins(&mut from, &mut bound, wanted, order, now);
        let _ = write!(from, " WHERE {}", holds.join(" AND "));
        // An index of all that is on sale is right for counting it, and for nothing else: a plus keeps it from being used.
        let matching = from.replace("s.is_published = 1", "+s.is_published = 1");
        let (texts, count) = (("s.product_id", matching.as_str(), by), bound.0.len());
        let bind = |values: &mut Values| bound.bind(values);
        // A label leads to its products: they are counted where they are found.
        return match wanted.industry.or(wanted.use_case) {
            Some(_) => lists::counted_along(db, texts, count, part, bind, read).await,
            None => lists::counted_apart(db, texts, &from, count, part, bind, read).await,
        };
    }
    let typed = typed(wanted.text);
    let Some(words) = meant(db, &typed).await? else {
        return Ok((Vec::new(), 0));
    };
    let scores = push_hits(&mut from, &mut bound, &words);
    let mut holds = push_joins(&mut from, &mut bound, wanted, order, now);
    holds.extend(scores.iter().map(|score| format!("{score} IS NOT NULL")));
    let _ = write!(from, " WHERE {}", holds.join(" AND "));
    let score: Vec<&str> = std::iter::once("f.score")
        .chain(scores.iter().map(String::as_str))
        .collect();
    let best = format!(
        "{} DESC, s.popular DESC, s.product_id DESC",
        score.join(" + ")
    );
    let by = if order == Order::Relevance { &best } else { by };
    let (texts, count) = (("s.product_id", from.as_str(), by), bound.0.len());
    let bind = |values: &mut Values| bound.bind(values);
    lists::counted_along(db, texts, count, part, bind, read).await
}

/// The words that are looked for, each once.
fn typed(text: Option<&str>) -> Vec<String> {
    let mut typed: Vec<String> = Vec::new();
    for word in words::words(text.unwrap_or_default()) {
        if typed.len() < WORDS_MAX && !typed.contains(&word) {
            typed.push(word);
        }
    }
    typed
}

/// A term of the index that a typed word means, and what the match counts.
type Meant = (String, i64);

/// The shorter words first: what is cut off is what is longest.
static CANDIDATES: Bulk = Bulk::new(
    "SELECT DISTINCT v.column1 AS word, s.term AS term, LENGTH(s.term) AS length",
    2,
    "JOIN search_variants s ON s.variant = v.column2
     WHERE v.column1 IS NOT NULL
     ORDER BY 3, 2
     LIMIT 4000",
);

/// A word that very many products have is not counted to its end.
static USES: Bulk = Bulk::new(
    "SELECT v.column1 AS word, v.column2 AS term, v.column3 AS factor,
            (SELECT COUNT(*) FROM (SELECT t.term FROM search_terms t WHERE t.term = v.column2 LIMIT 10000) AS u) AS uses",
    3,
    "WHERE v.column1 IS NOT NULL",
);

/// As many products as of a word are counted at most; what a term of a company's name, whose products are not counted, is taken for.
const COUNTED_MAX: i64 = 10_000;

/// What a typed word means.
#[derive(Default)]
struct Word {
    /// How many products have one of them, at most.
    uses: i64,
    terms: Vec<Meant>,
}

/// What each typed word means, the word first that the fewest products have. `None`: one of them means nothing.
async fn meant(db: &mut AnyConnection, typed: &[String]) -> Result<Option<Vec<Word>>, StoreError> {
    let mut keys: Vec<crowded::Key> = typed
        .iter()
        .enumerate()
        .flat_map(|(place, word)| {
            let keys = words::looked_up(word).into_iter();
            keys.map(move |key| (place as i64, key))
        })
        .collect();
    let crowded = crowded::take(db, &mut keys).await?;
    let rows = CANDIDATES
        .fetch(db, &keys, |values, key| {
            values
                .number(key.map(|key| key.0))
                .text(key.map(|key| key.1.as_str()));
        })
        .await?;
    // Of crowded ones those that are not popular come behind all others.
    let mut found: BTreeSet<(usize, Match, bool, usize, String)> = BTreeSet::new();
    for row in &rows {
        let (place, term) = (row.number("word")? as usize, row.text("term")?);
        if let Some(how) = words::near(&typed[place], &term) {
            found.insert((place, how, false, term.chars().count(), term));
        }
    }
    for (place, key) in crowded {
        let place = place as usize;
        for crowded::Found { term, is_popular } in crowded::some(db, &key).await? {
            if let Some(how) = words::near(&typed[place], &term) {
                found.insert((place, how, !is_popular, term.chars().count(), term));
            }
        }
    }
    let each_max = MEANT_MAX / typed.len().max(1);
    let mut taken = vec![0; typed.len()];
    // As a word of products, and as one of companies' names.
    let mut terms: Vec<(i64, String, i64)> = Vec::new();
    let mut seen = BTreeSet::new();
    for (place, how, _, _, term) in found {
        if taken[place] < each_max && seen.insert((place, term.clone())) {
            taken[place] += 1;
            terms.push((place as i64, format!("@{term}"), factor(how)));
            terms.push((place as i64, term, factor(how)));
        }
    }
    let rows = USES
        .fetch(db, &terms, |values, term| {
            values
                .number(term.map(|term| term.0))
                .text(term.map(|term| term.1.as_str()))
                .number(term.map(|term| term.2));
        })
        .await?;
    let mut words: Vec<Word> = typed.iter().map(|_| Word::default()).collect();
    for row in &rows {
        let word = &mut words[row.number("word")? as usize];
        let (term, uses) = (row.text("term")?, row.number("uses")?);
        if uses == 0 {
            continue;
        }
        word.uses += match term.starts_with('@') {
            true => COUNTED_MAX,
            false => uses,
        };
        word.terms.push((term, row.number("factor")?));
    }
    if words.is_empty() || words.iter().any(|word| word.terms.is_empty()) {
        return Ok(None);
    }
    words.sort_by_key(|word| word.uses);
    Ok(Some(words))
}

/// What a match counts, times what its place counts: a word or its beginning anywhere is more than a typing error in a name.
fn factor(how: Match) -> i64 {
    match how {
        Match::Same => 20,
        Match::Begins => 10,
        Match::Mistyped => 1,
    }
}

/// The products `f` that have the first word and those that are about as rare, with what these count at their best; and for each other word what
/// it counts for such a product `s`.
fn push_hits(from: &mut String, bound: &mut Bound, words: &[Word]) -> Vec<String> {
    let rarest = words.first().map_or(0, |word| word.uses);
    // What was not counted to its end may be all there is.
    let is_common = |word: &&Word| {
        word.uses > rarest.saturating_mul(LOOKED_UP_FROM)
            || (word.uses >= COUNTED_MAX && rarest < COUNTED_MAX)
    };
    let (common, rare): (Vec<&Word>, Vec<&Word>) = words.iter().partition(is_common);
    let each = (0..)
        .zip(&rare)
        .map(|(place, word)| hits(bound, place, word));
    let each = each.collect::<Vec<_>>().join(" UNION ALL ");
    let of_each = |value: &str| {
        let best =
            (0..rare.len()).map(|place| format!("MAX(CASE c.word WHEN {place} THEN {value} END)"));
        best.collect::<Vec<_>>().join(" + ")
    };
    let _ = write!(
        from,
        "FROM (SELECT c.product_id, {} AS score FROM ({each}) AS c GROUP BY c.product_id",
        of_each("c.score")
    );
    if rare.len() > 1 {
        // A sum with nothing in it is nothing. PostgreSQL takes few to have it, and looks the products up.
        let _ = write!(from, " HAVING {} = {}", of_each("1"), rare.len());
    }
    from.push_str(") AS f JOIN search_products s ON s.product_id = f.product_id");
    let score = |word: &Word| {
        let values = bound.terms(&word.terms);
        format!(
            "(SELECT MAX(v.column2 * t.weight)
              FROM (VALUES {values}) AS v
              JOIN search_terms t ON t.term = v.column1 AND t.subject_id IN (s.product_id, s.company_id))"
        )
    };
    common.into_iter().map(score).collect()
}

/// All products that have a word, with what it counts there, as often as they have it.
fn hits(bound: &mut Bound, place: usize, word: &Word) -> String {
    let values = bound.terms(&word.terms);
    let mut each = format!(
        "SELECT t.subject_id AS product_id, v.column2 * t.weight AS score, {place} AS word
         FROM (VALUES {values}) AS v
         JOIN search_terms t ON t.term = v.column1"
    );
    // What a company is called, its products are found by.
    if word.terms.iter().any(|(term, _)| term.starts_with('@')) {
        let _ = write!(
            each,
            " UNION ALL
              SELECT k.product_id, v.column2 * t.weight AS score, {place} AS word
              FROM (VALUES {values}) AS v
              JOIN search_terms t ON t.term = v.column1
              JOIN search_products k ON k.company_id = t.subject_id"
        );
    }
    each
}

/// Adds the joins that filters and the order ask for. What has to hold is returned.
fn push_joins(
    from: &mut String,
    bound: &mut Bound,
    wanted: &Wanted<'_>,
    order: Order,
    now: Timestamp,
) -> Vec<String> {
    let mut holds: Vec<String> = Vec::new();
    if wanted.price_min.is_some() || wanted.price_max.is_some() || order == Order::Price {
        let now = bound.number(Some(now.micros()));
        let _ = write!(
            from,
            " LEFT JOIN prices r ON r.product_id = s.product_id AND r.effective_from <= {now} AND COALESCE(r.effective_to, 9223372036854775807) > {now}"
        );
    }
    let labels = [
        wanted.industry.map(index::of_industry),
        wanted.use_case.map(index::of_use_case),
    ];
    for (place, label) in labels.into_iter().flatten().enumerate() {
        let label = bound.text(Some(label));
        let _ = write!(
            from,
            " JOIN search_terms l{place} ON l{place}.subject_id = s.product_id AND l{place}.term = {label}"
        );
    }
    if wanted.engine.is_some() || wanted.sampled_since.is_some() {
        from.push_str(" JOIN products p ON p.id = s.product_id");
    }
    if wanted.engine.is_some() {
        from.push_str(" JOIN connections x ON x.id = p.connection_id");
    }
    let on_sale = "s.is_published = 1 AND s.company_id NOT IN (SELECT id FROM companies WHERE status <> 'active')";
    holds.push(match wanted.own {
        None => on_sale.to_owned(),
        Some(own) => {
            let own = bound.text(Some(own.to_string()));
            format!("(({on_sale}) OR s.company_id = {own})")
        }
    });
    let mut equals = |column: &str, value: Option<&str>| {
        if let Some(value) = value {
            let value = bound.text(Some(value.to_owned()));
            holds.push(format!("{column} = {value}"));
        }
    };
    equals(
        "s.product_type",
        wanted.product_type.map(ProductType::as_str),
    );
    equals("s.category", wanted.category);
    equals("s.sport", wanted.sport);
    equals("s.result_type", wanted.result_type.map(ResultType::as_str));
    let mut compares = |comparison: &str, value: Option<i64>| {
        if let Some(value) = value {
            let value = bound.number(Some(value));
            holds.push(format!("{comparison} {value}"));
        }
    };
    compares("x.engine_id =", wanted.engine);
    compares("r.price_credits >=", wanted.price_min);
    compares("r.price_credits <=", wanted.price_max);
    compares(
        "s.allow_ai_training =",
        wanted.ai_training_allowed.map(i64::from),
    );
    compares(
        "p.sampled_at >=",
        wanted.sampled_since.map(Timestamp::micros),
    );
    holds
}

/// Assets of others on sale that a company has not purchased, popular ones first: of a category or a sport that it has purchased or marked as
/// a favorite; where it has none, or no such asset is there, of all.
pub async fn recommended(
    db: &mut AnyConnection,
    company: &CompanyId,
    limit: i64,
) -> Result<Vec<String>, StoreError> {
    let alike = some(
        db,
        "SELECT s.product_id
         FROM search_products s
         WHERE s.is_published = 1 AND s.product_type = 'asset' AND s.company_id <> $1
           AND s.company_id NOT IN (SELECT id FROM companies WHERE status <> 'active')
           AND s.product_id NOT IN (SELECT product_id FROM purchases WHERE company_id = $1 AND status = 'active')
           AND (s.category IN (SELECT k.category
                               FROM search_products k
                               WHERE k.product_id IN (SELECT product_id FROM purchases WHERE company_id = $1
                                                      UNION SELECT product_id FROM favorites WHERE company_id = $1))
                OR s.sport IN (SELECT k.sport
                               FROM search_products k
                               WHERE k.product_id IN (SELECT product_id FROM purchases WHERE company_id = $1
                                                      UNION SELECT product_id FROM favorites WHERE company_id = $1)))
         ORDER BY s.popular DESC, s.product_id DESC
         LIMIT $2",
        company,
        limit,
    );
    let alike = alike.await?;
    if !alike.is_empty() {
        return Ok(alike);
    }
    some(
        db,
        "SELECT s.product_id
         FROM search_products s
         WHERE s.is_published = 1 AND s.product_type = 'asset' AND s.company_id <> $1
           AND s.company_id NOT IN (SELECT id FROM companies WHERE status <> 'active')
           AND s.product_id NOT IN (SELECT product_id FROM purchases WHERE company_id = $1 AND status = 'active')
         ORDER BY s.popular DESC, s.product_id DESC
         LIMIT $2",
        company,
        limit,
    )
    .await
}

async fn some(
    db: &mut AnyConnection,
    sql: &'static str,
    company: &CompanyId,
    limit: i64,
) -> Result<Vec<String>, StoreError> {
    let rows = sqlx::query(sql)
        .bind(company.as_str())
        .bind(limit)
        .fetch_all(db)
        .await?;
    rows.iter().map(|row| row.text("product_id")).collect()
}

/// What the parameters `$1`, `$2`, … of a text are bound to.
#[derive(Default)]
struct Bound(Vec<Argument>);

enum Argument {
    Text(Option<String>),
    Number(Option<i64>),
}

impl Bound {
    fn text(&mut self, value: Option<String>) -> String {
        self.add(Argument::Text(value))
    }

    fn number(&mut self, value: Option<i64>) -> String {
        self.add(Argument::Number(value))
    }

    /// Terms with what they count, as rows of a `VALUES` table. Of few sizes, so that texts stay prepared; what fills it up means nothing.
    fn terms(&mut self, terms: &[Meant]) -> String {
        let size = terms.len().next_power_of_two();
        let rows = (0..size).map(|place| {
            let meant = terms.get(place);
            let term = self.text(meant.map(|meant| meant.0.clone()));
            let factor = self.number(meant.map(|meant| meant.1));
            format!("({term}, {factor})")
        });
        rows.collect::<Vec<_>>().join(", ")
    }

    fn add(&mut self, argument: Argument) -> String {
        self.0.push(argument);
        format!("${}", self.0.len())
    }

    fn bind(&self, values: &mut Values) {
        for argument in &self.0 {
            match argument {
                Argument::Text(value) => values.text(value.as_deref()),
                Argument::Number(value) => values.number(*value),
            };
        }
    }
}
