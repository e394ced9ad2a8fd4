pub mod connections;
pub mod pages;
pub mod parameters;
pub mod sql;
