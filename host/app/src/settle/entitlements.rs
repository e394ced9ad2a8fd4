//! Who may use what: the purchases that runs have asked for, kept until a transaction changes them.

use souk_domain::ids::PurchaseId;
use souk_store::purchases::PurchaseStatus;
use souk_store::{Cache, Db, Topic};

/// Companies and products that meet often; an entry is about 200 bytes.
const ENTITLEMENTS_MAX: usize = 100_000;

/// What a company has to do with a product that it does not own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entitlement {
    None,
    Active(PurchaseId),
    /// The purchase was cancelled or suspended.
    Ended(PurchaseStatus),
}

/// By [`souk_store::purchases::entitlement`].
pub type Entitlements = Cache<String, Entitlement>;

pub fn new(db: &Db) -> Entitlements {
    Cache::new(
        db,
        ENTITLEMENTS_MAX,
        [Topic::Purchase],
        |entitlement: &String, _| [entitlement.as_str().into()],
    )
}
