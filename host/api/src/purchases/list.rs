use super::beside::beside_each;
use super::shape::PurchaseOut;
use crate::query::{choices, parameters};
use crate::{ApiState, Caller, List, Operation, Paging, Problem, Query};
use axum::extract::State;
use souk_domain::products::ProductType;
use souk_store::purchases::{self, PurchaseStatus};

choices! {
    impl PurchaseStatus {
        Active = "active",
        Cancelled = "cancelled",
        Suspended = "suspended",
    }
}

parameters! {
    pub struct Wanted {
        ..paging: Paging,
        /// Only purchases of such products.
        product_type: Option<ProductType>,
        /// Only purchases in this state.
        status: Option<PurchaseStatus>,
    }
}

pub const OPERATION: Operation =
    Operation::get("list_purchases", "/companies/{company_id}/purchases")
        .about("Purchases", "List a company's purchases, newest first");

/// Lists what a company has bought.
pub async fn list_purchases(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<Wanted>,
) -> Result<List<PurchaseOut>, Problem> {
    let page = query.paging.page();
    let product_type = query.product_type;
    let status = query.status;
    let mut read = api.db().read().await?;
    let (purchases, total) = purchases::list(
        &mut read,
        caller.company(),
        product_type,
        status,
        page.part(),
    )
    .await?;
    let beside = beside_each(&mut read, &purchases, caller.now()).await?;
    let data = purchases.iter().zip(&beside);
    let data = data.map(|(purchase, beside)| PurchaseOut::of(purchase, beside, None));
    let data = data.collect();
    Ok(List { data, total, page })
}
