//! Where a company's earnings go: destinations are sealed on their way in, and opened for whoever makes the transfer.

use souk_domain::ids::CompanyId;
use souk_domain::payments::{PayoutMethodType, last4};
use souk_store::StoreError;
use souk_store::payouts::{self, DESTINATION_SUBJECT, KeptMethod, Method, Payout};
use souk_store::sealing::Owner;

use crate::App;

/// Sets where a company wants its money. Payouts that were asked for before go where they were to go.
pub async fn set_method(
    app: &App,
    company: &CompanyId,
    kind: PayoutMethodType,
    account_holder: &str,
    destination: &str,
) -> Result<KeptMethod, StoreError> {
    let owner = Owner::of(company, DESTINATION_SUBJECT);
    let method = Method {
        kind: kind.as_str().to_owned(),
        account_holder: account_holder.to_owned(),
        sealed_destination: app.sealer.seal(owner, destination.as_bytes())?,
        last4: last4(destination),
    };
    let kept = app
        .db
        .write(async |write| -> Result<_, StoreError> {
            payouts::set_method(write, company, &method, app.clock.now()).await?;
            let kept = payouts::method(write, company).await?;
            Ok(kept)
        })
        .await?;
    kept.ok_or(StoreError::NotFound)
}

/// The whole destination of a payout.
pub fn destination(app: &App, payout: &Payout) -> Result<String, StoreError> {
    let owner = Owner::of(&payout.company_id, DESTINATION_SUBJECT);
    let plain = app
        .sealer
        .unseal(owner, &payout.method.sealed_destination)?;
    String::from_utf8(plain).map_err(|error| StoreError::Corrupt(error.to_string()))
}
