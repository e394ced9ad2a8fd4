use super::shape::PurchaseOut;
use crate::{
    ApiState, Caller, List, Operation, PAGE, PER_PAGE, Page, Param, ParamKind, Problem, Query,
    Shape, schema,
};
use axum::extract::State;
use souk_domain::products::ProductType;
use souk_store::purchases::{self, PurchaseStatus};

const PRODUCT_TYPE: Param = Param {
    name: "product_type",
    kind: ParamKind::OneOf(&["asset", "endpoint"]),
    about: "Only purchases of such products.",
};
const STATUS: Param = Param {
    name: "status",
    kind: ParamKind::OneOf(&["active", "cancelled", "suspended"]),
    about: "Only purchases in this state.",
};

pub const OPERATION: Operation =
    Operation::get("list_purchases", "/companies/{company_id}/purchases")
        .about("Purchases", "List a company's purchases, newest first")
        .query(&[PAGE, PER_PAGE, PRODUCT_TYPE, STATUS])
        .returns(200, Shape::List(schema::<PurchaseOut>));

/// Lists what a company has bought.
pub async fn list_purchases(
    State(api): State<ApiState>,
    caller: Caller,
    query: Query,
) -> Result<List<PurchaseOut>, Problem> {
    let page = Page::of(&query);
    let product_type = query.text("product_type").and_then(ProductType::parse);
    let status = query.text("status").and_then(PurchaseStatus::parse);
    let mut read = api.db().read().await?;
    let (purchases, total) = purchases::list(
        &mut read,
        caller.company(),
        product_type,
        status,
        page.offset(),
        page.limit(),
    )
    .await?;
    let used = purchases::used_of(&mut read, &purchases).await?;
    let data = purchases.iter().map(|purchase| {
        let used = used.get(&purchase.id).copied().unwrap_or_default();
        PurchaseOut::of(purchase, used, None)
    });
    let data = data.collect();
    Ok(List { data, total, page })
}
