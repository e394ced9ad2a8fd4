//! What mails somebody at a company's word is counted for the company, too: its keys have limits each, and it may have a thousand of them.

use crate::caller::Caller;
use crate::problem::Problem;
use crate::refusals::RATE_LIMIT_EXCEEDED;
use crate::state::ApiState;

/// What is counted together.
#[derive(Clone, Copy)]
pub(crate) enum Mailed {
    AlertTests,
    /// First ones and further ones.
    Invitations,
}

impl Mailed {
    /// Of one company in an hour: more than anybody sends by hand.
    const fn hourly(self) -> u32 {
        match self {
            Mailed::AlertTests => 100,
            Mailed::Invitations => 200,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Mailed::AlertTests => "alert-tests",
            Mailed::Invitations => "invitations",
        }
    }

    const fn in_words(self) -> &'static str {
        match self {
            Mailed::AlertTests => "tests of alerts",
            Mailed::Invitations => "invitations",
        }
    }
}

/// Counts one for the company that is acted in, before anything is written or sent. Whether or not this host sends mail.
pub(crate) async fn spend(api: &ApiState, caller: &Caller, mailed: Mailed) -> Result<(), Problem> {
    let now = u32::try_from(caller.now().seconds()).unwrap_or(u32::MAX);
    let (company, limit) = (caller.company(), mailed.hourly());
    let limiter = api.limiter();
    let taken = limiter.take_of_company(company, mailed.name(), limit, now);
    let Err(quota) = taken.await else {
        return Ok(());
    };
    let retry_after = quota.reset.saturating_sub(now).max(1);
    let message = format!(
        "a company has {limit} {} an hour, whichever of its keys asks, and they are used up; try again in {retry_after} s",
        mailed.in_words()
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
