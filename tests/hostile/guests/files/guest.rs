//! The hostile guest that is granted a directory.

souk_hostile_guests::souk_sdk::export_machine!(
    souk_hostile_guests::Guest<souk_hostile_guests::Files>
);
