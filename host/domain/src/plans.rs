//! Plans: how many requests a company may send in a UTC month, with all its keys and people together. Refuses to know where they are counted.

use std::str::FromStr;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Plan {
    /// To look around, and for a page that is updated now and then.
    Starter,
    /// For a product that is built on other companies' assets.
    Growth,
    /// Beyond what one host answers in a day at full speed: only a client that has gone wild meets it.
    #[default]
    Scale,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be starter, growth or scale")]
pub struct NoSuchPlan;

impl Plan {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starter => "starter",
            Self::Growth => "growth",
            Self::Scale => "scale",
        }
    }

    /// Requests in a UTC month.
    pub const fn monthly_requests(self) -> u32 {
        match self {
            Self::Starter => 100_000,
            Self::Growth => 10_000_000,
            Self::Scale => 1_000_000_000,
        }
    }
}

impl FromStr for Plan {
    type Err = NoSuchPlan;

    fn from_str(text: &str) -> Result<Self, NoSuchPlan> {
        [Self::Starter, Self::Growth, Self::Scale]
            .into_iter()
            .find(|plan| plan.as_str() == text)
            .ok_or(NoSuchPlan)
    }
}

impl AsRef<str> for Plan {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}
