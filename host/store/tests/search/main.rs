//! Products are found alike on every store: by words, their beginnings and with a typing error; the index is always that of the products.

#[path = "../support/mod.rs"]
mod support;

mod filters;
mod index;
mod ranks;
mod words;

use souk_domain::ids::{AssetId, CompanyId, UserId};
use souk_domain::products::ProductStatus;
use souk_store::products::{self, AssetDetails, Kind, Written};
use souk_store::search::{self, Order, Wanted};
use souk_store::{Db, Part, StoreError, db};
use std::collections::BTreeMap;

struct Seller {
    company: CompanyId,
    user: UserId,
}

async fn seller(db: &Db, handle: &str) -> Seller {
    let founded = support::company(db, handle).await;
    Seller {
        company: founded.company.id,
        user: founded.user.id,
    }
}

/// Names are ids, as far as a test can read.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    async fn insert<K: Kind>(
        &mut self,
        db: &Db,
        seller: &Seller,
        id: &K,
        written: &Written<K::Details>,
        status: Option<ProductStatus>,
    ) {
        let at = db::now();
        let inserted = db.write(async |write| -> Result<(), StoreError> {
            products::insert(write, id, &seller.company, &seller.user, written, at).await?;
            if let Some(status) = status {
                products::set_status(write, &seller.company, id, status, at).await?;
            }
            Ok(())
        });
        inserted.await.unwrap();
        self.0.insert(id.as_ref().to_owned(), written.name.clone());
    }

    async fn asset(
        &mut self,
        db: &Db,
        seller: &Seller,
        name: &str,
        change: impl FnOnce(&mut Written<AssetDetails>),
    ) -> AssetId {
        let id = AssetId::generate();
        let mut written = support::asset(name, &id.as_str().to_lowercase().replace('_', "-"));
        written.category = None;
        change(&mut written);
        self.insert(db, seller, &id, &written, Some(ProductStatus::Published))
            .await;
        id
    }

    /// What is found when all words are learnt, by name, and how many there are.
    async fn found(&self, db: &Db, wanted: &Wanted<'_>, order: Order) -> Vec<&str> {
        search::learn(db).await.unwrap();
        self.found_now(db, wanted, order).await
    }

    async fn found_now(&self, db: &Db, wanted: &Wanted<'_>, order: Order) -> Vec<&str> {
        let mut read = db.read().await.unwrap();
        let listed = search::find(&mut read, wanted, order, db::now(), Part::first(100)).await;
        let (ids, total) = listed.unwrap();
        assert_eq!(total, ids.len() as i64, "{wanted:?}");
        ids.iter().map(|id| self.0[id].as_str()).collect()
    }

    async fn by_words<'a>(&'a self, db: &Db, text: &str) -> Vec<&'a str> {
        let wanted = Wanted {
            text: Some(text),
            ..Wanted::default()
        };
        self.found(db, &wanted, Order::Relevance).await
    }
}
