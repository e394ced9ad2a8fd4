mod cli;
mod listener;
mod logs;
mod ready;
mod settings;

fn main() {}
