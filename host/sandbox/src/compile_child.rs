//! The child process that compiles one component: the host binary's hidden `compile` subcommand.

use std::process::ExitCode;

/// Reads a component from standard input, writes native code to standard output. Limits itself
/// before it reads.
pub fn main() -> ExitCode {
    ExitCode::FAILURE
}
