//! The hostile guest that is granted HTTP requests.

souk_hostile_guests::souk_sdk::export_machine!(
    souk_hostile_guests::Guest<souk_hostile_guests::Http>
);
