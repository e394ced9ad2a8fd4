use super::shape::{self, FavoriteOut};
use super::{check_may_mark, check_user, product};
use crate::refusals::{ASSET_NOT_FOUND, CONFLICT, ENDPOINT_NOT_FOUND, VALIDATION_ERROR};
use crate::{ApiState, Body, Caller, Created, Data, Either, Operation, Path, Problem};
use axum::extract::State;
use serde::Deserialize;
use souk_domain::ids::{CompanyId, FavoriteId, UserId};
use souk_domain::products::{Product, ProductStatus};
use souk_store::favorites::{self, Added, FAVORITES_MAX, Favorite};
use souk_store::{AnyConnection, marketplace, products};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::post(
    "create_favorite",
    "/companies/{company_id}/users/{user_id}/favorites",
)
.about("Favorites", "Mark a product")
.notes(
    "One of `asset_id` and `endpoint_id`: a product on sale, or one of the company's own. 201 the first time; 200 with what there is when the \
     product is a favorite already, whose category and note stay. A user has at most 1,000.",
)
.refuses(&[ASSET_NOT_FOUND, ENDPOINT_NOT_FOUND, CONFLICT]);

#[derive(Deserialize, ToSchema)]
pub struct FavoriteIn {
    asset_id: Option<String>,
    endpoint_id: Option<String>,
    /// Any name. Left out: in no category.
    #[schema(min_length = 1, max_length = 100)]
    category: Option<String>,
    #[schema(max_length = 1000)]
    note: Option<String>,
}

/// Marks a product.
pub async fn create_favorite(
    State(api): State<ApiState>,
    caller: Caller,
    Path((_, user)): Path<(CompanyId, UserId)>,
    Body(body): Body<FavoriteIn>,
) -> Result<Either<Created<FavoriteOut>, Data<FavoriteOut>>, Problem> {
    let mut errors = Vec::new();
    let product = product(body.asset_id, body.endpoint_id, &mut errors);
    let category = body
        .category
        .and_then(|name| shape::category(name, &mut errors));
    let note = body.note.and_then(|text| shape::note(text, &mut errors));
    let Some(product) = product.filter(|_| errors.is_empty()) else {
        return Err(Problem::fields(VALIDATION_ERROR, errors));
    };
    let favorite = Favorite {
        id: FavoriteId::generate(),
        company_id: caller.company().clone(),
        user_id: user,
        product_type: product.product_type(),
        product_id: product.id().to_owned(),
        category,
        note,
        created_at: caller.now(),
        updated_at: caller.now(),
    };
    api.db()
        .write(async |write| {
            check_may_mark(&caller, &favorite.user_id)?;
            check_user(write, &caller, &favorite.user_id).await?;
            check_product(write, &caller, &product).await?;
            match favorites::insert(write, &favorite).await? {
                Added::Known(known) => Ok(Either::That(Data(known.into()))),
                Added::TooMany => Err(Problem::of(
                    CONFLICT,
                    format!("a user has at most {FAVORITES_MAX} favorites: remove one first"),
                )),
                Added::New => Ok(Either::This(Created {
                    location: format!(
                        "/companies/{}/users/{}/favorites/{}",
                        favorite.company_id, favorite.user_id, favorite.id
                    ),
                    data: favorite.into(),
                })),
            }
        })
        .await
}

/// 404 unless the product is on sale or the company's own.
async fn check_product(
    db: &mut AnyConnection,
    caller: &Caller,
    product: &Product,
) -> Result<(), Problem> {
    let kind = product.product_type().as_str();
    let status = products::status(db, product).await?;
    let is_own = status.is_some_and(|(company, status)| {
        company == *caller.company() && status != ProductStatus::Archived
    });
    let listed =
        async |db| marketplace::get(db, caller.company(), product.id(), caller.now()).await;
    match is_own || listed(db).await?.is_some() {
        true => Ok(()),
        false => Err(Problem::not_found(kind, product.id())),
    }
}
