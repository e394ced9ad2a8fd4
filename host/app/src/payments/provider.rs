//! Whoever collects the money of top-ups: what they are asked, what they answer, and what they tell later.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use souk_domain::ids::{CompanyId, TopUpId};
use souk_domain::money::{Credits, UsdCents};
use souk_domain::time::Timestamp;

/// Somebody who collects money.
pub trait Provider: Send + Sync {
    /// In rows, and in the path of its webhook.
    fn name(&self) -> &'static str;

    /// Asks for the money of a top-up. Called again for the same one when the host died before it could write the answer down.
    fn begin<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<Begun, BeginError>>;

    /// Checks and reads what was sent to its webhook. `None`: an event that concerns no top-up.
    fn read_event(
        &self,
        _signature: Option<&str>,
        _body: &[u8],
        _now: Timestamp,
    ) -> Result<Option<Event>, EventError> {
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

/// What a provider tells about a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: String,
    pub kind: String,
    pub top_up: TopUpId,
    /// The provider's name for the payment.
    pub reference: String,
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
}

impl Payments {
    pub fn new(active: Arc<dyn Provider>) -> Payments {
        Payments {
            all: vec![active.clone()],
            active,
        }
    }

    pub fn also_listen(mut self, provider: Arc<dyn Provider>) -> Payments {
        self.all.push(provider);
        self
    }

    pub fn by_name(&self, name: &str) -> Option<&Arc<dyn Provider>> {
        self.all.iter().find(|provider| provider.name() == name)
    }
}
