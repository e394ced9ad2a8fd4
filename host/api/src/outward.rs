//! What asks somebody outside at a company's word, by a mail or a payment, is counted for the company, too: its keys have limits each, and it may
//! have a thousand of them.

use crate::caller::Caller;
use crate::problem::Problem;
use crate::refusals::RATE_LIMIT_EXCEEDED;
use crate::state::ApiState;

/// What is counted together.
#[derive(Clone, Copy)]
pub(crate) enum Outward {
    AlertTests,
    /// First ones and further ones.
    Invitations,
    /// Whatever comes of them: the payment provider counts them for all companies together.
    TopUps,
}

impl Outward {
    /// Of one company in an hour: more than anybody sends by hand.
    const fn hourly(self) -> u32 {
        match self {
            Outward::AlertTests | Outward::TopUps => 100,
            Outward::Invitations => 200,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Outward::AlertTests => "tests of alerts",
            Outward::Invitations => "invitations",
            Outward::TopUps => "top-ups",
        }
    }
}

/// Counts one for the company that is acted in, before anything is written or sent. Whether or not this host sends mail.
pub(crate) async fn spend(
    api: &ApiState,
    caller: &Caller,
    outward: Outward,
) -> Result<(), Problem> {
    let now = u32::try_from(caller.now().seconds()).unwrap_or(u32::MAX);
    let (company, limit) = (caller.company(), outward.hourly());
    let limiter = api.limiter();
    let taken = limiter.take_of_company(company, outward.name(), limit, now);
    let Err(quota) = taken.await else {
        return Ok(());
    };
    let retry_after = quota.reset.saturating_sub(now).max(1);
    let message = format!(
        "a company has {limit} {} an hour, whichever of its keys asks, and they are used up; try again in {retry_after} s",
        outward.name()
    );
    let refused = Problem::of(RATE_LIMIT_EXCEEDED, message)
        .detail("limit", limit)
        .detail("remaining", 0)
        .detail("reset", quota.reset)
        .detail("retry_after", retry_after)
        .detail("scope", "company")
        .detail("operation", caller.operation().operation.id);
    Err(refused.retry_after(u64::from(retry_after)))
}
