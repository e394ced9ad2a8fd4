//! How fast a company's clients may send: taking a body from the kernel holds a worker, and loopbacks and data centres send faster than
//! a worker can take. Knows no shares and no limits. Start reading at [`Pace::keep`].

use crate::ApiState;
use souk_domain::ids::CompanyId;
use std::time::Duration;

/// Fifty MiB a second: a twentieth of a worker, and twenty seconds for the largest file.
const COST_PER_MIB: Duration = Duration::from_millis(20);
/// What a piece of a body costs at least, in bytes: one byte is read, decoded and handed on as many are.
pub(crate) const PIECE_BYTES: usize = 256;
/// Those who sent no valid key keep one pace together.
const NOBODY: &str = "";

/// The pace of one request's body.
#[derive(Clone)]
pub(crate) struct Pace {
    state: ApiState,
    company: Option<CompanyId>,
}

impl Pace {
    pub fn of(state: &ApiState, company: Option<&CompanyId>) -> Pace {
        Pace {
            state: state.clone(),
            company: company.cloned(),
        }
    }

    /// Waits as long as these bytes, one piece or several, came too early, after all that the company's other requests brought.
    pub async fn keep(&self, bytes: usize) {
        let bytes = bytes.max(PIECE_BYTES);
        let company = self.company.as_ref().map_or(NOBODY, CompanyId::as_str);
        let cost = COST_PER_MIB.mul_f64(bytes as f64 / f64::from(1 << 20));
        let delay = self.state.app().work_delay(company, cost);
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }
}
