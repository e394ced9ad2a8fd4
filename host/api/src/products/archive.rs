//! Archiving: a product leaves the market for good, and whoever has bought it loses it.

use super::{find, not_found};
use crate::query::parameters;
use crate::refusals::RESOURCE_IN_USE;
use crate::{Caller, Problem};
use souk_domain::products::ProductStatus;
use souk_store::products::{self, Kind};
use souk_store::{Write, purchases};

parameters! {
    pub struct Wanted {
        /// Archive although companies have bought it.
        force: Option<bool>,
    }
}

/// Archives a product of the caller's company. One that companies have bought stays unless that is forced: they would lose what they pay for.
pub async fn archive<K: Kind>(
    write: &mut Write,
    caller: &Caller,
    id: &K,
    wanted: &Wanted,
) -> Result<(), Problem> {
    let (company, to) = (caller.company(), ProductStatus::Archived);
    purchases::close_product(write, id.as_ref()).await?;
    find(write, company, id).await?;
    let buyers = purchases::active_of_product(write, id.as_ref()).await?;
    if buyers > 0 && wanted.force != Some(true) {
        return Err(in_use::<K>(buyers));
    }
    match products::set_status(write, company, id, to, caller.now()).await? {
        true => Ok(()),
        false => Err(not_found(id)),
    }
}

fn in_use<K: Kind>(buyers: i64) -> Problem {
    let kind = K::TYPE.as_str();
    let have = match buyers {
        1 => "company has",
        _ => "companies have",
    };
    let message = format!("{buyers} {have} bought this {kind}; archive it with force=true");
    Problem::of(RESOURCE_IN_USE, message).detail("active_purchases", buyers)
}
