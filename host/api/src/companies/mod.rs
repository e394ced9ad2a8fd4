//! Companies: made by platform staff, seen and described by themselves.

pub mod create;
pub mod get;
pub mod shape;
pub mod update;

use crate::{Problem, Routes};

pub fn routes() -> Routes {
    Routes::new()
        .add(create::OPERATION, create::create_company)
        .add(get::ME, get::my_company)
        .add(get::OPERATION, get::get_company)
        .add(update::OPERATION, update::update_company)
}

/// The longest address that SMTP carries.
const EMAIL_CHARS_MAX: usize = 254;

/// Whether mail can be sent there shows when it is sent.
fn check_email(email: &str) -> Result<(), Problem> {
    match email.contains('@') {
        true => Ok(()),
        false => Err(Problem::invalid(
            "contact_email",
            "must be an email address",
        )),
    }
}
