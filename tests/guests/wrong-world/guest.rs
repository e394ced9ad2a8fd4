//! A component, but for another host: it exports a greeting.

wit_bindgen::generate!({
    inline: "
        package other:greeter@1.0.0;
        interface greeting { greet: func() -> string; }
        world greeter { export greeting; }
    ",
});

struct Greeter;

export!(Greeter);

impl exports::other::greeter::greeting::Guest for Greeter {
    fn greet() -> String {
        "hello".into()
    }
}
