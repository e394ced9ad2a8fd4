use super::Offered;
use crate::large::Large;
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
) -> Result<Large<List<K::Out>>, Problem> {
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
    let (rows, total) = listed;
    let ids = rows.iter().map(|row| row.id.as_ref());
    let prices = prices::active_of(&mut read, ids, caller.now()).await?;
    // Whoever waits for a turn to compute holds no reader.
    drop(read);
    let bytes = rows.iter().map(|row| K::bytes(row)).sum();
    let show = move || {
        Ok(List::of(page, (rows, total), |row| {
            let price = prices.get(row.id.as_ref());
            K::out(row, price, true)
        }))
    };
    Large::show(api, caller, bytes, show).await
}
