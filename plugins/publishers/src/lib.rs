//! The publishers that ship with souk: WordPress, Ghost, webhooks as Slack has them, and a signed request to anybody.
//!
//! Each session is one integration: one platform, one address (which only the host knows), one set of credentials. What
//! is posted where, and what an answer means, is in the file of each platform; what all have in common in `answers`.
//! Start reading at [`Publishers`].

mod answers;
mod ghost;
mod markup;
mod settings;
mod signing;
mod slack;
mod webhook;
mod wordpress;

use souk_sdk::publisher::{Check, Publication};
use souk_sdk::{Descriptor, Error, Io, Need, Published, Publisher, Settings};

use ghost::Ghost;
use slack::Slack;
use webhook::Webhook;
use wordpress::WordPress;

/// One integration.
pub enum Publishers {
    WordPress(WordPress),
    Ghost(Ghost),
    Slack(Slack),
    Webhook(Webhook),
}

impl Publisher for Publishers {
    fn describe() -> Descriptor {
        Descriptor::new("publishers", env!("CARGO_PKG_VERSION"), Need::Http)
            .engine("wordpress", "WordPress", "none", &["PASSWORD"])
            .engine("ghost", "Ghost", "none", &["API_KEY"])
            .engine("slack", "Slack", "none", &["API_KEY"])
            .engine("webhook", "Signed webhook", "none", &["API_KEY"])
            .settings_schema(settings::SCHEMA)
            .abilities(&["cancel"])
    }

    async fn open(settings: Settings, io: Io) -> Result<Publishers, Error> {
        let http = io.http();
        match settings.engine.as_str() {
            "wordpress" => Ok(Publishers::WordPress(WordPress::open(&settings, http)?)),
            "ghost" => Ok(Publishers::Ghost(Ghost::open(&settings, http)?)),
            "slack" => Ok(Publishers::Slack(Slack::open(&settings, http)?)),
            "webhook" => Ok(Publishers::Webhook(Webhook::open(&settings, http)?)),
            other => Err(Error::configuration(
                "unknown_platform",
                format!("this publisher does not know the platform \"{other}\""),
            )),
        }
    }

    async fn publish(&self, publication: Publication) -> Result<Published, Error> {
        match self {
            Publishers::WordPress(platform) => platform.publish(&publication).await,
            Publishers::Ghost(platform) => platform.publish(&publication).await,
            Publishers::Slack(platform) => platform.publish(&publication).await,
            Publishers::Webhook(platform) => platform.publish(&publication).await,
        }
    }

    async fn check(&self, check: Check) -> Result<Option<String>, Error> {
        match self {
            Publishers::WordPress(platform) => platform.check(&check).await,
            Publishers::Ghost(platform) => platform.check(&check).await,
            Publishers::Slack(platform) => platform.check(&check).await,
            Publishers::Webhook(platform) => platform.check(&check).await,
        }
    }
}

souk_sdk::export_publisher!(Publishers);
