use super::accept::company;
use super::shape::{CurrentSession, Entered, SignedIn};
use super::{Client, SIGN_INS_HOURLY, begin, taken};
use crate::companies::shape::UserOut;
use crate::refusals::{
    COMPANY_NOT_FOUND, EMAIL_TAKEN, IDENTITY_PROVIDER_UNAVAILABLE, NOT_INVITED, SEVERAL_COMPANIES,
    SIGN_IN_NOT_CONFIGURED, SIGN_IN_REFUSED, USER_DISABLED, VALIDATION_ERROR,
};
use crate::{Access, ApiState, Body, FieldError, Operation, Path, Problem, Text};
use axum::extract::State;
use serde::Deserialize;
use souk_app::identity::{Email, Identity, IdentityError, Proof};
use souk_domain::ids::CompanyId;
use souk_domain::sessions::Token;
use souk_domain::time::Timestamp;
use souk_store::users::{self, Arrival, User, UserStatus};
use souk_store::{StoreError, Write, companies, invitations, nonces};
use utoipa::ToSchema;

pub const OPERATION: Operation = sign_in_at("sign_in", "/users/google-oauth");

pub const OF_COMPANY: Operation = sign_in_at(
    "sign_in_to_company",
    "/companies/{company_id}/users/google-oauth",
)
.any_company();

const fn sign_in_at(id: &'static str, path: &'static str) -> Operation {
    Operation::post(id, path)
        .about("Users", "Sign in by an identity provider")
        .notes(
            "Google, or whichever provider of OpenID Connect the operator named; 503 `SIGN_IN_NOT_CONFIGURED` without one. Either an `id_token`, or \
             the `code` with which the provider came back to `redirect_uri`, with PKCE's `code_verifier`. `nonce` is the one that the browser sent with \
             its question, and the ID token has to repeat it; it is good for one session. Whoever is known by the provider's subject comes in, and at first whoever was invited \
             under an address that the provider vouches for; nobody else does (403 `NOT_INVITED`). Where several companies name the address, and nobody \
             has shown before that it is theirs, the path with a company says which is meant (without it 409 `SEVERAL_COMPANIES`). Nobody comes in whom \
             another company has as a user already, or whose address it has (409 `EMAIL_TAKEN`). At most 20 times an hour and address.",
        )
        .access(Access::Public)
        .hourly(SIGN_INS_HOURLY)
        .refuses(&[
            SIGN_IN_REFUSED,
            NOT_INVITED,
            EMAIL_TAKEN,
            SEVERAL_COMPANIES,
            USER_DISABLED,
            SIGN_IN_NOT_CONFIGURED,
            IDENTITY_PROVIDER_UNAVAILABLE,
            COMPANY_NOT_FOUND,
        ])
}

#[derive(Deserialize, ToSchema)]
pub struct SignInIn {
    /// Instead of the code.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 16384)]
    id_token: Option<Text<1, 16_384>>,
    #[schema(value_type = Option<String>, min_length = 1, max_length = 2048)]
    code: Option<Text<1, 2_048>>,
    /// Of the code.
    #[schema(value_type = Option<String>, min_length = 43, max_length = 128)]
    code_verifier: Option<Text<43, 128>>,
    /// Of the code.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 2000)]
    redirect_uri: Option<Text<1, 2_000>>,
    #[schema(value_type = String, min_length = 1, max_length = 255)]
    nonce: Text<1, 255>,
}

/// Signs somebody in, in whose company it may be.
pub async fn sign_in(
    State(api): State<ApiState>,
    client: Client,
    Body(body): Body<SignInIn>,
) -> Result<Entered, Problem> {
    enter(&api, &client, &body, None).await
}

/// Signs somebody in who is a user of this company.
pub async fn sign_in_to_company(
    State(api): State<ApiState>,
    Path(company): Path<CompanyId>,
    client: Client,
    Body(body): Body<SignInIn>,
) -> Result<Entered, Problem> {
    enter(&api, &client, &body, Some(&company)).await
}

async fn enter(
    api: &ApiState,
    client: &Client,
    body: &SignInIn,
    into: Option<&CompanyId>,
) -> Result<Entered, Problem> {
    let proof = proof(body)?;
    let Some(provider) = &api.app().identity else {
        return Err(Problem::of(
            SIGN_IN_NOT_CONFIGURED,
            "this host has no identity provider: people come in by invitation",
        ));
    };
    let identity = provider
        .identify(proof, &body.nonce)
        .await
        .map_err(|error| refuse(provider.name(), error))?;
    let token = Token::generate();
    api.db()
        .write(async |write| {
            let found = find(write, provider.name(), &identity, into, client.now).await?;
            companies::lock(write, &found.company_id).await?;
            // Whoever had the company for themselves meanwhile may have disabled or removed them.
            let user = find(write, provider.name(), &identity, into, client.now).await?;
            if user.id != found.id {
                return Err(not_invited());
            }
            if user.status == UserStatus::Disabled {
                return Err(Problem::of(
                    USER_DISABLED,
                    "you may not come in at present; ask an administrator of your company",
                ));
            }
            let ends_at = identity.proof_ends_at;
            if !nonces::spend(write, provider.name(), &body.nonce, ends_at).await? {
                return Err(Problem::sign_in_refused(
                    "this nonce has signed somebody in before: ask the provider again, with a new one"
                        .to_owned(),
                ));
            }
            let is_new_user = user.status == UserStatus::Invited;
            let arrival = Arrival {
                identity: Some((provider.name(), &identity.subject)),
                email_verified: identity.verified_email().is_some()
                    && identity.verified_email() == user.email.as_deref(),
            };
            let user = match users::arrive(write, &user, &arrival, client.now).await {
                // Meanwhile the same person came in elsewhere, or somebody else did by this address.
                Err(StoreError::Conflict) => return Err(taken(&user)),
                arrived => arrived?,
            };
            invitations::remove(write, &user.id).await?;
            let session = begin(write, &user, provider.name(), client, &token).await?;
            let signed_in = SignedIn {
                company: company(write, &user).await?,
                user: UserOut::from(&user),
                session: CurrentSession::of(&session, &token),
                is_new_user,
            };
            Ok(Entered {
                token: token.clone(),
                signed_in,
            })
        })
        .await
}

/// Who it is: known by the provider's subject, or at first by an address that the provider vouches for. An address may be given to another
/// person in time, a subject never is: who is linked to one subject is no other's.
///
/// Whoever has shown before that the address is theirs goes before all of whom only a company says so. Of those nobody is taken for another: where
/// there are several, the person says which company is meant, so that none gets whom another one has invited, or keeps them out there.
async fn find(
    write: &mut Write,
    provider: &str,
    identity: &Identity,
    into: Option<&CompanyId>,
    now: Timestamp,
) -> Result<User, Problem> {
    let is_meant = |user: &User| into.is_none_or(|company| user.company_id == *company);
    let is_elsewhere = match users::by_identity(write, provider, &identity.subject).await? {
        Some(known) if is_meant(&known) => return Ok(known),
        known => known.is_some(),
    };
    let email = match &identity.email {
        Email::Verified(email) => email,
        Email::Unasked(error) if !is_elsewhere => return Err(unavailable(provider, error)),
        _ => return Err(not_invited()),
    };
    let is_taken = match users::by_proven_email(write, email).await? {
        Some(user) if !is_elsewhere && is_meant(&user) && user.auth_provider.is_none() => {
            return Ok(user);
        }
        proven => is_elsewhere || proven.is_some(),
    };
    match &*users::by_unproven_email(write, email, into, now).await? {
        [] => Err(not_invited()),
        [user, ..] if is_taken => Err(taken(user)),
        [user] => Ok(user.clone()),
        _ => Err(Problem::of(
            SEVERAL_COMPANIES,
            "several companies name this address: sign in to the one you mean, by the path with its company_id, or open the link of its invitation",
        )),
    }
}

fn not_invited() -> Problem {
    Problem::of(
        NOT_INVITED,
        "nobody has invited you here under an address that your provider vouches for; ask an administrator of your company",
    )
}

fn refuse(provider: &str, error: IdentityError) -> Problem {
    match error {
        IdentityError::Refused(message) => Problem::sign_in_refused(message),
        IdentityError::Unavailable(message) => unavailable(provider, &message),
    }
}

fn unavailable(provider: &str, message: &str) -> Problem {
    tracing::warn!(
        provider,
        message,
        "somebody cannot sign in by an identity provider"
    );
    Problem::of(
        IDENTITY_PROVIDER_UNAVAILABLE,
        format!("{provider} cannot be asked at the moment; try again"),
    )
    .retry_after(10)
}

/// Either of the two proofs, and not a mixture.
fn proof(body: &SignInIn) -> Result<Proof<'_>, Problem> {
    let code = [
        ("code", &body.code.as_deref()),
        ("code_verifier", &body.code_verifier.as_deref()),
        ("redirect_uri", &body.redirect_uri.as_deref()),
    ];
    let mut errors = Vec::new();
    match (&body.id_token, code) {
        (Some(token), code) => {
            for (name, _) in code.iter().filter(|(_, given)| given.is_some()) {
                let message = "goes with a code: send it or id_token, and not both";
                errors.push(FieldError::new(*name, "invalid", message));
            }
            if errors.is_empty() {
                return Ok(Proof::IdToken(token));
            }
        }
        (
            None,
            [
                (_, Some(code)),
                (_, Some(verifier)),
                (_, Some(redirect_uri)),
            ],
        ) => {
            return Ok(Proof::Code {
                code,
                verifier,
                redirect_uri,
            });
        }
        (None, code) => {
            for (name, _) in code.iter().filter(|(_, given)| given.is_none()) {
                let message = "is required, or id_token in place of all three";
                errors.push(FieldError::new(*name, "required", message));
            }
        }
    }
    Err(Problem::fields(VALIDATION_ERROR, errors))
}
