//! Builds the component of a package, as it is shipped, outside of a build script: `component PACKAGE_DIR OUT_DIR`. Prints where it is.

use souk_build::{Build, or_exit};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(package), Some(out_dir)) = (arguments.next(), arguments.next()) else {
        eprintln!("component PACKAGE_DIR OUT_DIR");
        return ExitCode::FAILURE;
    };
    // Build scripts run elsewhere, and are told where the C compiler is.
    let out_dir = std::path::absolute(&out_dir).unwrap_or_else(|_| out_dir.into());
    for artifact in or_exit(Build::new(out_dir).package(package).run()) {
        println!("{}", artifact.path.display());
    }
    ExitCode::SUCCESS
}
