pub mod forecast;
