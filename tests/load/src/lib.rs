//! What the other commands that load a host (`tests/hostile`, `tests/soak`) share with the benchmark: the generator, the marketplace that is
//! measured, the dataset and the servers that it lies on.

pub mod generator;
pub mod market;
pub mod processor;
pub mod queries;
pub mod servers;
