//! What the words in use are looked up by. A word is kept under itself in the transaction that brings it; its beginnings and what typing errors
//! make of it, some twenty rows, are written a little later, a few words at a time ([`learn`]): a description of new words only would hold the
//! store's one writer for a tenth of a second. So is forgotten what no product has any more.

use crate::bulk::Bulk;
use crate::db::{Db, Write};
use crate::error::StoreError;
use crate::fields::Fields;
use souk_domain::words::{kept_under, whole};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Words of one transaction: some milliseconds.
const WORDS_AT_ONCE: i64 = 16;
/// What a transaction took is waited for so many times before the next: products and charges are written meanwhile.
const PAUSES: u32 = 3;

/// Hosts that share a store would not see what the other is about to forget or to learn. A store with one writer needs no asking.
pub(super) async fn lock(tx: &mut Write) -> Result<(), StoreError> {
    if tx.is_shared() {
        sqlx::query("UPDATE settings SET value = value WHERE name = 'search_words'")
            .execute(&mut **tx)
            .await?;
    }
    Ok(())
}

/// Notes which words some product or company has lost and which it has got, whoever else has them. With [`lock`].
pub(super) async fn change(
    tx: &mut Write,
    gone: &BTreeSet<String>,
    added: &BTreeSet<String>,
) -> Result<(), StoreError> {
    let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
    let added: Vec<&str> = added.iter().map(String::as_str).collect();
    // What was brought a moment ago leaves at once: else whoever changes a description all the time would keep others' words waiting.
    for step in [&FORGET_NEW, &NEW_IS_NOT_DUE, &LEAVE] {
        of_words(step, tx, &gone).await?;
    }
    let unknown = UNKNOWN.fetch(tx, &added, |values, word| {
        values
            .text(word.copied())
            .text(word.map(|word| whole(word)).as_deref());
    });
    let unknown = unknown.await?;
    let unknown = unknown.iter().map(|row| row.text("term"));
    let unknown = unknown.collect::<Result<Vec<String>, _>>()?;
    let keys: Vec<(String, &str)> = unknown.iter().map(|word| (whole(word), &**word)).collect();
    keep(tx, &keys).await?;
    of_words(&COME, tx, &unknown).await
}

/// Learns and forgets all that is due. Does nothing where nothing is: to be called every now and then.
pub async fn learn(db: &Db) -> Result<(), StoreError> {
    let mut last = String::new();
    loop {
        let rows =
            sqlx::query("SELECT word FROM search_words_due WHERE word > $1 ORDER BY word LIMIT $2")
                .bind(&last)
                .bind(WORDS_AT_ONCE)
                .fetch_all(&mut *db.read().await?)
                .await?;
        let words = rows.iter().map(|row| row.text("word"));
        let words = words.collect::<Result<Vec<String>, _>>()?;
        let Some(word) = words.last() else {
            return Ok(());
        };
        last.clone_from(word);
        let begun = Instant::now();
        db.write(async |write| few(write, &words).await).await?;
        tokio::time::sleep(begun.elapsed() * PAUSES).await;
    }
}

async fn few(tx: &mut Write, words: &[String]) -> Result<(), StoreError> {
    lock(tx).await?;
    let rows = TAKE.fetch(tx, words, one).await?;
    let mut due = BTreeMap::new();
    for row in &rows {
        due.insert(row.text("word")?, row.flag("is_learnt")?);
    }
    let words: Vec<&String> = due.keys().collect();
    let mut used = BTreeSet::new();
    for row in &USED.fetch(tx, &words, one).await? {
        used.insert(row.text("word")?);
    }
    let mut keys = Vec::new();
    let mut gone = Vec::new();
    for (word, is_learnt) in &due {
        match (used.contains(word), is_learnt) {
            (true, true) => {}
            (true, false) => keys.extend(kept_under(word).into_iter().map(|key| (key, &**word))),
            (false, _) => gone.push(word),
        }
    }
    keep(tx, &keys).await?;
    of_words(&FORGET, tx, &gone).await
}

fn one<W: AsRef<str>>(values: &mut crate::bulk::Values, word: Option<&W>) {
    values.text(word.map(AsRef::as_ref));
}

async fn of_words<W: AsRef<str>>(
    statement: &Bulk,
    tx: &mut Write,
    words: &[W],
) -> Result<(), StoreError> {
    statement.run(tx, words, one).await?;
    Ok(())
}

/// Words under what they are looked up by.
async fn keep(tx: &mut Write, keys: &[(String, &str)]) -> Result<(), StoreError> {
    KEEP.run(tx, keys, |values, key| {
        values
            .text(key.map(|key| key.0.as_str()))
            .text(key.map(|key| key.1));
    })
    .await?;
    Ok(())
}

/// The condition that nobody has the word.
macro_rules! unused {
    () => {
        "NOT EXISTS (SELECT 1 FROM search_terms t WHERE t.term = v.column1 OR t.term = '@' || v.column1)"
    };
}

static FORGET_NEW: Bulk = Bulk::new(
    "DELETE FROM search_variants WHERE term IN (SELECT v.column1",
    1,
    concat!(
        "JOIN search_words_due d ON d.word = v.column1 WHERE d.is_learnt = 0 AND ",
        unused!(),
        ")"
    ),
);

static NEW_IS_NOT_DUE: Bulk = Bulk::new(
    "DELETE FROM search_words_due WHERE is_learnt = 0 AND word IN (SELECT v.column1",
    1,
    concat!("WHERE v.column1 IS NOT NULL AND ", unused!(), ")"),
);

static LEAVE: Bulk = Bulk::new(
    "INSERT INTO search_words_due (word, is_learnt)
     SELECT v.column1, 1",
    1,
    concat!(
        "JOIN search_variants s ON s.variant = '-' || v.column1 AND s.term = v.column1
         WHERE v.column1 IS NOT NULL AND ",
        unused!(),
        " ON CONFLICT (word) DO NOTHING"
    ),
);

static UNKNOWN: Bulk = Bulk::new(
    "SELECT v.column1 AS term",
    2,
    "LEFT JOIN search_variants s ON s.variant = v.column2 AND s.term = v.column1
     WHERE v.column1 IS NOT NULL AND s.term IS NULL",
);

static COME: Bulk = Bulk::new(
    "INSERT INTO search_words_due (word, is_learnt)
     SELECT v.column1, 0",
    1,
    "WHERE v.column1 IS NOT NULL
     ON CONFLICT (word) DO NOTHING",
);

static KEEP: Bulk = Bulk::new(
    "INSERT INTO search_variants (variant, term)
     SELECT column1, column2",
    2,
    "WHERE column1 IS NOT NULL
     ON CONFLICT (variant, term) DO NOTHING",
);

static TAKE: Bulk = Bulk::new(
    "DELETE FROM search_words_due WHERE word IN (SELECT v.column1",
    1,
    "WHERE v.column1 IS NOT NULL)
     RETURNING word, is_learnt",
);

static USED: Bulk = Bulk::new(
    "SELECT v.column1 AS word",
    1,
    "WHERE EXISTS (SELECT 1 FROM search_terms t WHERE t.term = v.column1 OR t.term = '@' || v.column1)",
);

static FORGET: Bulk = Bulk::new(
    "DELETE FROM search_variants WHERE term IN (SELECT v.column1",
    1,
    "WHERE v.column1 IS NOT NULL)",
);
