//! What a client says about an integration, laid over what is stored and checked: everything that is wrong is found at once, and nothing is
//! dialled (a name is looked up).

use serde_json::{Map, Value};
use souk_domain::fields::FieldErrors;
use souk_domain::ids::CompanyId;
use souk_domain::integrations::{
    self as rules, BASE_URL, Checked, Draft, SETTING_CHARS_MAX, Setting, Texts,
};
use souk_sandbox::EngineInfo;
use souk_store::integrations::Integration;
use url::Url;

use super::error::IntegrationError;
use crate::destinations::{Withheld, judge, judge_plain};
use crate::{App, connectors};

/// An integration as a client sends it. A member that is absent is `None`.
#[derive(Debug, Clone, Default)]
pub struct Input {
    /// Absent: the caller's.
    pub user_id: Option<String>,
    pub platform: Option<String>,
    pub name: Option<String>,
    pub config: Option<Map<String, Value>>,
    pub credentials: Option<Map<String, Value>>,
}

/// One that obeys every rule that can be checked without dialling.
pub(super) struct Prepared {
    pub platform: String,
    pub scope: String,
    /// What serves the platform.
    pub engine: String,
    pub checked: Checked,
}

impl Prepared {
    /// Lays `input` over what is stored and checks the whole. `errors`: what is wrong with the request besides.
    pub async fn new(
        app: &App,
        company: &CompanyId,
        input: &Input,
        before: Option<&Integration>,
        mut errors: FieldErrors,
    ) -> Result<Prepared, IntegrationError> {
        let serving = serving(app, company, input, before, &mut errors);
        let config = match (&input.config, before) {
            (Some(given), _) => texts("config", given, &mut errors),
            (None, Some(before)) => stored(before),
            (None, None) => Texts::new(),
        };
        let mut credentials = input
            .credentials
            .as_ref()
            .map(|given| texts("credentials", given, &mut errors));
        if before.is_none() {
            credentials.get_or_insert_default();
        }
        let name = match (&input.name, before) {
            (Some(name), _) => name.clone(),
            (None, Some(before)) => before.name.clone(),
            (None, None) => String::new(),
        };
        let draft = Draft {
            name,
            config,
            credentials,
        };
        let Some((scope, info)) = serving else {
            rules::check_name(&draft.name, &mut errors);
            return Err(IntegrationError::Invalid(errors.into_vec()));
        };
        let platform = souk_sandbox::platform_of(&info.slug).unwrap_or_default();
        let checked = errors.take(rules::check(&asked(&info, platform), &draft));
        if let (Some(checked), Some(before)) = (&checked, before)
            && checked.credentials.is_none()
            && checked.base_url != before.base_url
        {
            let message = "a new base_url needs the credentials again: the stored ones were given for the server of before";
            errors.add("credentials", "required", message);
        }
        let Some(checked) = checked.filter(|_| errors.is_empty()) else {
            return Err(IntegrationError::Invalid(errors.into_vec()));
        };
        if before.is_none_or(|before| before.base_url != checked.base_url) {
            check_address(app, &checked.base_url).await?;
        }
        Ok(Prepared {
            platform: platform.to_owned(),
            scope,
            engine: info.slug.clone(),
            checked,
        })
    }
}

/// Whose publisher serves the platform, and what it says about itself.
fn serving(
    app: &App,
    company: &CompanyId,
    input: &Input,
    before: Option<&Integration>,
    errors: &mut FieldErrors,
) -> Option<(String, EngineInfo)> {
    let slug = match (&input.platform, before) {
        (Some(given), Some(before)) if *given != before.platform => {
            let message = "platform cannot be changed: create another integration";
            errors.add("platform", "immutable", message);
            &before.platform
        }
        (Some(given), _) => given,
        (None, Some(before)) => &before.platform,
        (None, None) => {
            let message = "platform is required: wordpress, ghost, slack, webhook, or one of a publisher of your company";
            errors.add("platform", "required", message);
            return None;
        }
    };
    let engine = souk_sandbox::platform(slug);
    let found = match before {
        Some(before) => connectors::serving(&app.sandbox, company, &before.scope, &engine)
            .map(|info| (before.scope.clone(), info)),
        None => connectors::scope_of_engine(&app.sandbox, company, &engine),
    };
    if found.is_none() {
        let message = format!("no publisher for \"{slug}\" is active on this service");
        errors.add("platform", "unknown", message);
    }
    found
}

/// The settings that a platform asks for, as its publisher's schema says.
fn asked(info: &EngineInfo, platform: &str) -> Vec<Setting> {
    let schema: Value = serde_json::from_str(&info.settings_schema).unwrap_or_default();
    let own = &schema["$defs"][platform];
    let schema = if own.is_object() { own } else { &schema };
    let required = |name: &str| {
        let required = schema["required"].as_array();
        required.is_some_and(|required| required.iter().any(|one| one == name))
    };
    let number = |value: &Value| {
        value
            .as_u64()
            .and_then(|number| usize::try_from(number).ok())
    };
    let properties = schema["properties"].as_object();
    properties
        .into_iter()
        .flatten()
        .map(|(name, property)| Setting {
            name: name.clone(),
            is_secret: property["writeOnly"] == true,
            is_required: required(name),
            chars_min: number(&property["minLength"]).unwrap_or(1),
            chars_max: number(&property["maxLength"])
                .unwrap_or(SETTING_CHARS_MAX)
                .min(SETTING_CHARS_MAX),
        })
        .collect()
}

/// Settings are texts. The message never repeats one. `null` is as if it were not there.
fn texts(member: &str, given: &Map<String, Value>, errors: &mut FieldErrors) -> Texts {
    let mut texts = Texts::new();
    for (name, value) in given {
        match value {
            Value::String(text) => {
                texts.insert(name.clone(), text.clone());
            }
            Value::Null => {}
            _ => errors.add(format!("{member}.{name}"), "invalid", "must be a text"),
        }
    }
    texts
}

/// As a client would send it.
fn stored(before: &Integration) -> Texts {
    let mut config = before.config.clone();
    config.insert(BASE_URL.to_owned(), before.base_url.clone());
    config
}

/// Refuses an address that nothing is sent to; it is judged again whenever it is dialled.
pub(super) async fn check_address(app: &App, base_url: &str) -> Result<(), IntegrationError> {
    let judged = judge(&app.egress, &parsed(base_url)?).await;
    judged.map_err(withheld)
}

/// The same of an address without TLS that was saved, before something is sent there.
pub(super) async fn check_again(app: &App, base_url: &str) -> Result<(), IntegrationError> {
    let judged = judge_plain(&app.egress, &parsed(base_url)?).await;
    judged.map_err(withheld)
}

fn withheld(withheld: Withheld) -> IntegrationError {
    match withheld {
        Withheld::Unsafe(message) => IntegrationError::UnsafeAddress(message),
        Withheld::Unknown(message) => IntegrationError::UnknownAddress(message),
    }
}

/// The rules have parsed it before.
fn parsed(base_url: &str) -> Result<Url, IntegrationError> {
    let no_address = |_| IntegrationError::UnsafeAddress("it is no address".to_owned());
    Url::parse(base_url).map_err(no_address)
}
