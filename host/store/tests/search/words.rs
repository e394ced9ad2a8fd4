//! Words find products: whole, by their beginnings and with a typing error; and those find what is comparable that say most.

use crate::support::{self, stores};
use crate::{Names, seller};
use souk_domain::ids::AssetId;
use souk_domain::money::{Credits, UsdCents};
use souk_domain::prices::Validity;
use souk_domain::products::ProductStatus;
use souk_store::prices::{self, NewPrice};
use souk_store::products::{self, AssetDetails, Written};
use souk_store::search::comparables;
use souk_store::search::{Order, Wanted};
use souk_store::{StoreError, companies, db};
use std::collections::BTreeSet;

/// A beginning that more than 10,000 words have is not gone through to its end: by it those are found that are on products which are run much, and all
/// others by more letters.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowded_beginning_is_not_gone_through_to_its_end() {
    for store in stores().await {
        let (db, mut names) = (&store.db, Names::default());
        let acme = seller(db, "acme").await;
        names.asset(db, &acme, "Goals", |_| {}).await;
        let id = AssetId::generate();
        let mut draft = support::asset("Gozo", "gozo");
        draft.category = None;
        names.insert(db, &acme, &id, &draft, None).await;
        let by = |text| Wanted {
            text: Some(text),
            own: Some(&acme.company),
            ..Wanted::default()
        };
        let both = names.found(db, &by("go"), Order::Name).await;
        assert_eq!(both, ["Goals", "Gozo"]);

        let crowded = db.write(async |write| -> Result<_, StoreError> {
            sqlx::query(
                "WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 10001)
                 INSERT INTO search_variants (variant, term) SELECT '>go', 'go0' || i FROM n",
            )
            .execute(&mut **write)
            .await?;
            Ok(())
        });
        crowded.await.unwrap();
        for (typed, expected) in [
            ("go", "Goals"),
            ("goal", "Goals"),
            ("goz", "Gozo"),
            ("gozo", "Gozo"),
        ] {
            let found = names.found(db, &by(typed), Order::Relevance).await;
            assert_eq!(found, [expected], "{typed}");
        }
    }
}

/// Words, beginnings and typing errors; the better match first; each word has to mean something.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_find_products() {
    for store in stores().await {
        let (db, mut names) = (&store.db, Names::default());
        let acme = seller(db, "acme").await;
        names.asset(db, &acme, "Goals per match", |_| {}).await;
        names.asset(db, &acme, "Goalkeepers", |_| {}).await;
        names
            .asset(db, &acme, "Attendance", |asset| {
                asset.description = "Spectators for each match, and the goals they saw".into();
            })
            .await;
        names
            .asset(db, &acme, "Coals", |asset| {
                asset.details.sport = Some("Curling".into())
            })
            .await;
        names
            .asset(db, &acme, "Zürich ÉTÉ", |asset| {
                asset.labels = r#"{"tags":["summer heat"]}"#.into();
                asset.category = Some("Weather".into());
            })
            .await;
        for (typed, expected) in [
            // In the name, at its beginning, in the description, with an error.
            ("goals", vec!["Goals per match", "Attendance", "Coals"]),
            ("GOALS", vec!["Goals per match", "Attendance", "Coals"]),
            ("goal", vec!["Goalkeepers", "Goals per match", "Attendance"]),
            ("gaols", vec!["Goals per match", "Attendance"]),
            ("golas", vec!["Goals per match", "Attendance"]),
            ("goalss", vec!["Goals per match", "Attendance"]),
            ("goalkepers", vec!["Goalkeepers"]),
            ("matches", vec![]),
            ("matchs goals", vec!["Goals per match", "Attendance"]),
            ("match, goals!", vec!["Goals per match", "Attendance"]),
            ("match weather", vec![]),
            ("curl", vec!["Coals"]),
            ("zürich", vec!["Zürich ÉTÉ"]),
            ("züric été", vec!["Zürich ÉTÉ"]),
            ("heat", vec!["Zürich ÉTÉ"]),
            ("weathr summer", vec!["Zürich ÉTÉ"]),
            ("nothing", vec![]),
            ("%", vec![]),
            ("goals nothing", vec![]),
        ] {
            let mut found = names.by_words(db, typed).await;
            if typed == "goal" {
                // Both begin with it, in their names.
                found[..2].sort_unstable();
            }
            assert_eq!(found, expected, "{} {typed}", store.name);
        }
        // What the seller is called finds all of its products, under its name of today.
        assert_eq!(names.by_words(db, "acm").await.len(), 5, "{}", store.name);
        let renamed = db.write(async |write| -> Result<(), StoreError> {
            let mut company = companies::get(write, &acme.company).await?.unwrap();
            company.name = "Umbrella".into();
            companies::update(write, &company, db::now()).await
        });
        renamed.await.unwrap();
        assert_eq!(names.by_words(db, "acme").await, [""; 0], "{}", store.name);
        assert_eq!(
            names.by_words(db, "umbrela goals").await.len(),
            3,
            "{}",
            store.name
        );
    }
}

/// Comparables are others' published products that have one of the twenty words that say most; a company's own are not even looked at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn comparables_share_the_words_that_say_most() {
    for store in stores().await {
        let (db, mut names) = (&store.db, Names::default());
        let (acme, other) = (seller(db, "acme").await, seller(db, "other").await);
        // Twenty words of eight letters, and short ones behind them.
        let long: Vec<String> = ('a'..='t')
            .map(|letter| format!("{letter}bcdefgh"))
            .collect();
        let name = format!("xy {} xz", long.join(" "));
        let tagged = |asset: &mut Written<AssetDetails>| {
            asset.labels = r#"{"tags":["labelledatlength"]}"#.into();
        };
        let own = names.asset(db, &acme, &name, tagged).await;
        let shared = names.asset(db, &other, "abcdefgh", |_| {}).await;
        let last = names.asset(db, &other, "tbcdefgh other", |_| {}).await;
        let short = names.asset(db, &other, "xy xz", |_| {}).await;
        let label = names.asset(db, &other, "labelledatlength", |_| {}).await;
        let own_too = names.asset(db, &acme, &name, |_| {}).await;
        let unpublished = names.asset(db, &other, &name, |_| {}).await;
        let (at, to) = (db::now(), ProductStatus::Unpublished);
        let priced = db.write(async |write| -> Result<(), StoreError> {
            products::set_status(write, &other.company, &unpublished, to, at).await?;
            for asset in [&shared, &last, &short, &label, &own_too, &unpublished] {
                let new = NewPrice {
                    company: &other.company,
                    product: asset.as_str(),
                    credits: Credits::ZERO,
                    usd: UsdCents::ZERO,
                    discount_percent: None,
                    original_credits: None,
                    validity: Validity { from: at, to: None },
                    created_by: "key_1",
                };
                prices::insert(write, &new.price(at)).await?;
            }
            Ok(())
        });
        priced.await.unwrap();
        let mut read = db.read().await.unwrap();
        let candidates = comparables::candidates(&mut read, &acme.company, &own, db::now()).await;
        let found: BTreeSet<String> = candidates.unwrap().into_iter().map(|one| one.id).collect();
        let expected = [shared, last].map(|id| id.to_string());
        assert_eq!(found, BTreeSet::from(expected), "{}", store.name);
    }
}
