//! souk as those see it who run it: its commands, its keys, its store, its backups, its logs. Real processes, on both stores where that matters.

mod backup;
mod canaries;
mod commands;
mod compiled;
mod connectors;
mod full_disk;
mod master_key;
mod objects;
mod postgres;
mod registry;
mod seen;
mod traces;
