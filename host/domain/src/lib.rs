pub mod pages;
pub mod parameters;
pub mod sql;
