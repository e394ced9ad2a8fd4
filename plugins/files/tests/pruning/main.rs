//! Nothing of Parquet is passed over that is there, whoever wrote the file.

#[path = "../common/mod.rs"]
mod common;

mod bounds;
mod late;
mod places;
mod written;
