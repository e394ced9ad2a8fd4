//! Whoever collects the money of top-ups: what they are asked, what they answer, and what they tell later.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use souk_domain::ids::{CompanyId, TopUpId};
use souk_domain::money::{Credits, UsdCents};
use souk_domain::time::Timestamp;
use tokio::sync::OwnedSemaphorePermit;

use crate::lines::Lines;

/// Top-ups of one company that are begun at once: a provider bounds its requests for all companies together, and each is a connection to it.
const PER_COMPANY: usize = 2;
/// What a further one waits. With all that a provider may take it ends before a host that stops gives it up.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// Somebody who collects money.
pub trait Provider: Send + Sync {
    /// In rows, and in the path of its webhook.
    fn name(&self) -> &'static str;

    /// Asks for the money of a top-up. Called again for the same one when the host died before it could write the answer down.
    fn begin<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<Begun, BeginError>>;

    /// Checks and reads what was sent to its webhook. `None`: an event that concerns no top-up and no payment.
    fn read_event(
        &self,
        _signature: Option<&str>,
        _body: &[u8],
        _now: Timestamp,
    ) -> Result<Option<Notice>, EventError> {
        Err(EventError::SendsNone)
    }
}

/// What a company wants to buy.
#[derive(Debug, Clone)]
pub struct Order {
    pub top_up: TopUpId,
    pub company: CompanyId,
    pub credits: Credits,
    /// The provider's word for a way to pay, when the company chose one.
    pub payment_method: Option<String>,
    /// Where the payer's browser goes afterwards.
    pub return_url: String,
}

/// How a payment has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// The money is to come: an event, or somebody of the platform, will say when.
    Waiting { checkout: Option<Checkout> },
    /// It is here.
    Paid { reference: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The provider's name for the payment.
    pub reference: String,
    pub url: String,
}

#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// The way to pay that the company chose is none.
    #[error("{0}")]
    PaymentMethod(String),
    #[error("the payment provider refused: {0}")]
    Refused(String),
    #[error("the payment provider cannot be used now: {0}")]
    Unavailable(String),
}

/// What a provider tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    Payment(Event),
    Dispute(Dispute),
}

/// What a provider tells about a payment that its payer has had taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispute {
    pub id: String,
    /// The provider's name for the payment, as in [`Event::payment`].
    pub payment: String,
    /// In US dollars; `None` of another currency.
    pub amount: Option<UsdCents>,
    /// It is over, and the money is back. Else the money is away.
    pub is_won: bool,
}

/// What a provider tells about a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: String,
    pub kind: String,
    pub top_up: TopUpId,
    /// The provider's name for what the payer was shown.
    pub reference: String,
    /// The provider's name for the payment itself, where there is one yet: disputes go by it.
    pub payment: Option<String>,
    pub news: News,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// That much has been paid, in US dollars; `None` of another currency.
    Paid {
        amount: Option<UsdCents>,
    },
    Failed {
        reason: String,
    },
    /// Under way; another event will tell.
    Waiting,
}

/// Why an event was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    #[error("this provider sends no events")]
    SendsNone,
    #[error("the signature is not valid: {0}")]
    Signature(&'static str),
    #[error("the event cannot be read: {0}")]
    Malformed(String),
}

/// The provider that new top-ups use, and all whose events are read: after a change of provider, payments that have begun still arrive.
#[derive(Clone)]
pub struct Payments {
    pub(super) active: Arc<dyn Provider>,
    all: Vec<Arc<dyn Provider>>,
    /// Of the companies that have a top-up that is being begun.
    companies: Arc<Lines<CompanyId>>,
}

impl Payments {
    pub fn new(active: Arc<dyn Provider>) -> Payments {
        Payments {
            all: vec![active.clone()],
            active,
            companies: Arc::new(Lines::new(PER_COMPANY)),
        }
    }

    pub fn also_listen(mut self, provider: Arc<dyn Provider>) -> Payments {
        self.all.push(provider);
        self
    }

    /// Waits until one more top-up of the company's may be begun, which ends with what is returned. `None`: others have not ended in time.
    pub(super) async fn place(&self, company: &CompanyId) -> Option<OwnedSemaphorePermit> {
        let place = self.companies.stand(company);
        tokio::time::timeout(WAIT_MAX, place).await.ok().flatten()
    }

    pub fn by_name(&self, name: &str) -> Option<&Arc<dyn Provider>> {
        self.all.iter().find(|provider| provider.name() == name)
    }
}
