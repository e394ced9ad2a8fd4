use super::Offered;
use crate::query::choices;
use crate::{ApiState, Caller, List, Paging, Problem, SortOrder};
use souk_domain::products::ProductStatus;
use souk_store::prices;
use souk_store::products::{self, Filter, Sort};

choices! {
    impl ProductStatus {
        Draft = "draft",
        Published = "published",
        Unpublished = "unpublished",
        Archived = "archived",
    }
}

/// A company's products of one kind; newest (or most requested) first unless they are sorted by name.
pub async fn list<K: Offered>(
    api: &ApiState,
    caller: &Caller,
    filter: &Filter<'_>,
    sort: Sort,
    order: Option<SortOrder>,
    paging: &Paging,
) -> Result<List<K::Out>, Problem> {
    let page = paging.page();
    let descending = order.map_or(sort != Sort::Name, |order| order == SortOrder::Descending);
    let mut read = api.db().read().await?;
    let listed = products::list::<K>(
        &mut read,
        caller.company(),
        filter,
        sort,
        descending,
        page.part(),
    )
    .await?;
    let ids = listed.0.iter().map(|row| row.id.as_ref());
    let prices = prices::active_of(&mut read, ids, caller.now()).await?;
    Ok(List::of(page, listed, |row| {
        let price = prices.get(row.id.as_ref());
        K::out(row, price, true)
    }))
}
