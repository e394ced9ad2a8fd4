//! Tells users of their alerts by mail, from the events that stand in the store.
//!
//! Hosts that share a store share the work: whoever moves an event's next attempt forward sends it. A host that dies between sending and writing
//! that down sends once more.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use futures_util::StreamExt;
use souk_domain::alerts::State;
use souk_domain::ids::{AlertEventId, AlertId, AssetId, CompanyId};
use souk_domain::time::Timestamp;
use souk_store::StoreError;
use souk_store::alerts::mails::{self, Mail};
use souk_store::alerts::{self, Alert, MailStatus};
use souk_store::db::READ_WITHIN;
use souk_store::users::{self, UserStatus};
use tokio::sync::watch;

use crate::App;
use crate::background::Background;
use crate::mail::{Mailer, quoted};

const POLL: Duration = Duration::from_secs(1);
/// Sent beside each other: half of what the relay is handed at once ([`crate::mail`]), the other half is for those who wait for an answer.
const IN_FLIGHT_MAX: usize = 4;
/// As many as the relay is handed of one company at once.
const PER_COMPANY_MAX: i64 = 2;
const LOOKED_AT_MAX: i64 = 64;
/// Longer than a relay may take (10 s).
const LEASE: Duration = Duration::from_secs(60);
/// Of a company in an hour, from this host: an alert that flaps each minute fills no mailbox.
const COMPANY_PER_HOUR_MAX: u32 = 100;
const HOUR: Duration = Duration::from_secs(3600);
/// After each attempt that failed but the last.
const RETRIES: [Duration; 5] = [
    Duration::from_secs(60),
    Duration::from_secs(300),
    Duration::from_secs(1800),
    Duration::from_secs(2 * 3600),
    Duration::from_secs(5 * 3600),
];
/// What could not be sent until then is no news any more.
const NEWS_FOR: Duration = Duration::from_secs(86_400);
/// Sends from now on, on the current runtime, if there is a relay.
pub fn start(app: &App) -> Background {
    let post = Post {
        app: app.clone(),
        hour: app.clock.now(),
        sent: HashMap::new(),
    };
    Background::start("mails of alerts", |stopped| post.run(stopped))
}

struct Post {
    app: App,
    /// When the count of the hour began.
    hour: Timestamp,
    sent: HashMap<CompanyId, u32>,
}

impl Post {
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let app = self.app.clone();
        let Some(mailer) = &app.mail else {
            return;
        };
        while !*stopped.borrow() {
            tokio::select! {
                () = tokio::time::sleep(POLL) => {}
                _ = stopped.changed() => return,
            }
            if let Err(error) = self.turn(mailer).await {
                tracing::warn!(%error, "mails of alerts wait for the store");
            }
        }
    }

    async fn turn(&mut self, mailer: &Mailer) -> Result<(), StoreError> {
        let now = self.app.clock.now();
        let found = async {
            let mut read = self.app.db.read().await?;
            mails::due(&mut read, now, PER_COMPANY_MAX, LOOKED_AT_MAX).await
        };
        let due = self.app.db.answered(READ_WITHIN, found).await?;
        let mut allowed = Vec::with_capacity(due.len());
        let mut spent = BTreeSet::new();
        for mail in due {
            match self.may_send(&mail, now) {
                true => allowed.push(mail),
                false => {
                    spent.insert(mail.company);
                }
            }
        }
        let app = &self.app;
        futures_util::stream::iter(allowed)
            .for_each_concurrent(IN_FLIGHT_MAX, |mail| async move {
                if let Err(error) = tell(app, mailer, &mail).await {
                    tracing::warn!(%error, event = %mail.event, "what became of a mail could not be written down");
                }
            })
            .await;
        // After what was allowed: those of it that were taken are not due any more.
        for company in &spent {
            self.put_off(company, now).await?;
        }
        Ok(())
    }

    fn may_send(&mut self, mail: &Mail, now: Timestamp) -> bool {
        if now >= self.hour.after(HOUR) {
            (self.hour, self.sent) = (now, HashMap::new());
        }
        let sent = self.sent.entry(mail.company.clone()).or_default();
        *sent += 1;
        *sent <= COMPANY_PER_HOUR_MAX
    }

    async fn put_off(&self, company: &CompanyId, now: Timestamp) -> Result<(), StoreError> {
        let until = self.hour.after(HOUR);
        self.app
            .db
            .write(async |write| mails::put_off(write, company, now, until).await)
            .await
    }
}

async fn tell(app: &App, mailer: &Mailer, mail: &Mail) -> Result<(), StoreError> {
    let (attempt, until) = (mail.attempts + 1, app.clock.now().after(LEASE));
    let claimed = app.db.write(async |write| -> Result<_, StoreError> {
        mails::claim(write, mail, attempt, until).await
    });
    if !claimed.await? {
        return Ok(());
    }
    let (subject, text) = written(&News::of(mail));
    let sent = match &mail.to {
        Some(to) => mailer.send(&mail.company, to, &subject, text).await,
        None => return end(app, mail, MailStatus::Failed, None).await,
    };
    let Err(error) = sent else {
        return end(app, mail, MailStatus::Sent, None).await;
    };
    tracing::warn!(%error, alert = %mail.alert, attempt, "a mail could not be sent");
    let now = app.clock.now();
    let again = usize::try_from(mail.attempts)
        .ok()
        .and_then(|made| RETRIES.get(made))
        .map(|wait| now.after(*wait))
        .filter(|at| *at < mail.occurred_at.after(NEWS_FOR));
    match again {
        Some(at) => end(app, mail, MailStatus::Pending, Some(at)).await,
        None => end(app, mail, MailStatus::Failed, None).await,
    }
}

async fn end(
    app: &App,
    mail: &Mail,
    status: MailStatus,
    again: Option<Timestamp>,
) -> Result<(), StoreError> {
    app.db
        .write(async |write| mails::record(write, &mail.event, status, again).await)
        .await
}

/// Sends what `alert` would send if it triggered now, at once and once. `false`: no mail is wanted, its user has not come in, or the relay did
/// not take it.
pub async fn send_test(app: &App, alert: &Alert) -> Result<bool, StoreError> {
    let wanted = alert.written.notify_by_mail;
    let Some(mailer) = app.mail.as_ref().filter(|_| wanted) else {
        return Ok(false);
    };
    let mut read = app.db.read().await?;
    let user = users::get(&mut read, &alert.company_id, &alert.user_id).await?;
    drop(read);
    let user = user.filter(|user| user.status == UserStatus::Active);
    let Some(to) = user.and_then(|user| user.email) else {
        return Ok(false);
    };
    let (subject, text) = written(&News::test(alert, app.clock.now()));
    let company = &alert.company_id;
    match mailer.send(company, &to, &subject, text).await {
        Ok(()) => Ok(true),
        Err(error) => {
            tracing::warn!(%error, alert = %alert.id, "the mail of a test could not be sent");
            Ok(false)
        }
    }
}

/// What a mail tells.
struct News<'a> {
    name: &'a str,
    operator: &'a str,
    state: State,
    /// JSON.
    value: Option<String>,
    threshold: Option<String>,
    message: Option<&'a str>,
    at: Timestamp,
    asset: &'a AssetId,
    alert: &'a AlertId,
    /// A test is none.
    event: Option<&'a AlertEventId>,
}

impl<'a> News<'a> {
    fn of(mail: &'a Mail) -> News<'a> {
        News {
            name: &mail.name,
            operator: &mail.operator,
            state: mail.state,
            value: mail.value.clone(),
            threshold: mail.threshold.clone(),
            message: mail.message.as_deref(),
            at: mail.occurred_at,
            asset: &mail.asset,
            alert: &mail.alert,
            event: Some(&mail.event),
        }
    }

    fn test(alert: &'a Alert, now: Timestamp) -> News<'a> {
        let condition = &alert.written.condition;
        let threshold = condition.threshold().map(alerts::threshold_value);
        let value = alert.last_answer.as_ref().map(alerts::answer_value);
        News {
            name: &alert.written.name,
            operator: condition.operator().as_str(),
            state: State::Triggered,
            value: value.map(|value| value.to_string()),
            threshold: threshold.map(|value| value.to_string()),
            message: Some(alerts::TEST),
            at: now,
            asset: &alert.asset_id,
            alert: &alert.id,
            event: None,
        }
    }
}

/// The subject and the text of a mail.
fn written(mail: &News<'_>) -> (String, String) {
    let is = match mail.state {
        State::Triggered => "has triggered",
        State::Error => "cannot be evaluated",
        State::Ok | State::Unknown => "is back to normal",
    };
    let subject = format!("Alert {} {is}", quoted(mail.name));
    let mut text = format!("{subject}.\n\n");
    let mut line = |what: &str, value: &str| {
        text.push_str(what);
        text.push_str(": ");
        text.push_str(value);
        text.push('\n');
    };
    if let Some(message) = mail.message {
        line("Why", message);
    }
    if let Some(value) = &mail.value {
        line("Answer", value);
    }
    match &mail.threshold {
        Some(threshold) => line("Condition", &format!("{} {threshold}", mail.operator)),
        None => line("Condition", mail.operator),
    }
    line("When", &mail.at.to_string());
    line("Asset", mail.asset.as_str());
    line("Alert", mail.alert.as_str());
    if let Some(event) = mail.event {
        line("Event", event.as_str());
    }
    (subject, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that breaks lines does not write headers, nor a text of its own.
    #[test]
    fn a_mail_says_what_happened() {
        let mail = Mail {
            event: AlertEventId::generate(),
            alert: AlertId::generate(),
            company: CompanyId::generate(),
            asset: AssetId::generate(),
            name: "goals\r\nBcc: all@example.org".to_owned(),
            operator: "lt".to_owned(),
            state: State::Triggered,
            value: Some("7".to_owned()),
            threshold: Some("100".to_owned()),
            message: None,
            occurred_at: Timestamp::from_micros(0),
            attempts: 0,
            next_at: Timestamp::from_micros(0),
            to: None,
        };
        let (subject, text) = written(&News::of(&mail));
        assert_eq!(subject, "Alert \"goalsBcc: all@example.org\" has triggered");
        assert!(
            text.contains("Answer: 7\nCondition: lt 100\nWhen: 1970-01-01T00:00:00"),
            "{text}"
        );
        assert!(!text.contains("Why"));
    }
}
