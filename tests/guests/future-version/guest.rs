//! Built for a contract that does not exist yet.

wit_bindgen::generate!({
    inline: "
        package souk:connector@2.0.0;
        interface connector { describe: func() -> string; }
        world wire-connector { export connector; }
    ",
});

struct Future;

export!(Future);

impl exports::souk::connector::connector::Guest for Future {
    fn describe() -> String {
        "from the future".into()
    }
}
