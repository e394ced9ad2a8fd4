//! Lists of products: filters, orders and pages.

use crate::support::stores;
use crate::{NOW, after, both, company};
use souk_domain::ids::{AssetId, EndpointId};
use souk_domain::products::{AssetType, ProductStatus};
use souk_store::lists::OFFSET_MAX;
use souk_store::products::{self, Filter, Sort};
use souk_store::{Part, StoreError};

/// Lists hide what is archived unless asked for, count what they filter, and take `%` and `_` literally.
#[tokio::test]
async fn lists_filter_sort_and_count() {
    for store in stores().await {
        let owner = company(&store.db, "acme").await;
        let mut ids = Vec::new();
        for (place, name) in ["Goals 100%", "assists_all", "Goals"]
            .into_iter()
            .enumerate()
        {
            let (slug, at) = (format!("s{place}"), after(place as i64));
            ids.push(both(&store.db, &owner, name, &slug, at).await);
        }
        let archived = ProductStatus::Archived;
        let done = store.db.write(async |tx| {
            Ok::<_, StoreError>([
                products::set_status(tx, &owner, &ids[2].0, archived, after(9)).await?,
                products::set_status(tx, &owner, &ids[2].0, archived, after(9)).await?,
            ])
        });
        assert_eq!(done.await.unwrap(), [true, false]);

        let mut db = store.db.read().await.unwrap();
        for (sort, descending, first) in [
            (Sort::Name, false, "Goals 100%"),
            (Sort::CreatedAt, true, "assists_all"),
            (Sort::UpdatedAt, false, "Goals 100%"),
        ] {
            let all = Filter::default();
            let listed =
                products::list::<AssetId>(&mut db, &owner, &all, sort, descending, Part::first(1))
                    .await;
            let (list, total) = listed.unwrap();
            // Backends sort letters of different case differently; both put one of these two first.
            let names = ["Goals 100%", "assists_all"];
            assert!(
                (sort == Sort::Name && names.contains(&list[0].written.name.as_str()))
                    || list[0].written.name == first,
                "{}",
                store.name
            );
            assert_eq!((list.len(), total), (1, 2), "{}", store.name);
        }
        for (filter, expected) in [
            (Some(archived), AssetType::Calculation, 1),
            (None, AssetType::Calculation, 2),
            (None, AssetType::Prediction, 0),
        ]
        .map(|(status, subtype, expected)| {
            let filter = Filter {
                status,
                category: Some("results"),
                subtype: Some(subtype.as_str()),
                ..Filter::default()
            };
            (filter, expected)
        }) {
            let sort = Sort::Name;
            let listed =
                products::list::<AssetId>(&mut db, &owner, &filter, sort, true, Part::first(10))
                    .await;
            assert_eq!(listed.unwrap().1, expected, "{} {filter:?}", store.name);
        }
        for (q, expected) in [
            ("goals", 2),
            ("100%", 1),
            ("s_a", 1),
            ("%", 1),
            ("nothing", 0),
        ] {
            let filter = Filter {
                q: Some(q),
                ..Filter::default()
            };
            let sort = Sort::Requests;
            let listed =
                products::list::<EndpointId>(&mut db, &owner, &filter, sort, true, Part::first(10))
                    .await;
            assert_eq!(listed.unwrap().1, expected, "{} {q}", store.name);
        }
    }
}

/// Pages neither overlap nor leave a product out, however many have the same name, and the last is followed by none.
#[tokio::test]
async fn pages_are_all_there_is() {
    for store in stores().await {
        let owner = company(&store.db, "acme").await;
        for place in 0..5 {
            both(&store.db, &owner, "Same", &format!("s{place}"), NOW).await;
        }
        let mut db = store.db.read().await.unwrap();
        for sort in [Sort::Name, Sort::CreatedAt, Sort::Requests] {
            let mut seen = std::collections::BTreeSet::new();
            for offset in [0, 2, 4, 6, OFFSET_MAX + 1] {
                let (all, part) = (Filter::default(), Part::new(2, offset));
                let listed = products::list(&mut db, &owner, &all, sort, true, part).await;
                let (rows, total): (Vec<products::Row<AssetId>>, i64) = listed.unwrap();
                let expected = usize::try_from((5 - offset).clamp(0, 2)).unwrap();
                assert_eq!(
                    (rows.len(), total),
                    (expected, 5),
                    "{} {sort:?}",
                    store.name
                );
                seen.extend(rows.into_iter().map(|row| row.id.to_string()));
            }
            assert_eq!(seen.len(), 5, "{} {sort:?}", store.name);
        }
    }
}
