//! What is sold: an asset (one insight per execution) or an endpoint (rows per request). A product has the id of its asset or endpoint.

use crate::ids::{AssetId, EndpointId, IdError};
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProductType {
    /// Billed per execution.
    Asset,
    /// Billed per request.
    Endpoint,
}

impl ProductType {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Asset => "asset",
            Self::Endpoint => "endpoint",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "asset" => Some(Self::Asset),
            "endpoint" => Some(Self::Endpoint),
            _ => None,
        }
    }

    pub const fn billing_unit(self) -> &'static str {
        match self {
            Self::Asset => "execution",
            Self::Endpoint => "request",
        }
    }
}

/// An asset or an endpoint.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Product {
    Asset(AssetId),
    Endpoint(EndpointId),
}

impl Product {
    pub const fn product_type(&self) -> ProductType {
        match self {
            Self::Asset(_) => ProductType::Asset,
            Self::Endpoint(_) => ProductType::Endpoint,
        }
    }

    /// The product's id: that of its asset or endpoint.
    pub fn id(&self) -> &str {
        match self {
            Self::Asset(id) => id.as_str(),
            Self::Endpoint(id) => id.as_str(),
        }
    }

    pub fn parse(product_type: ProductType, id: &str) -> Result<Self, IdError> {
        Ok(match product_type {
            ProductType::Asset => Self::Asset(AssetId::parse(id)?),
            ProductType::Endpoint => Self::Endpoint(EndpointId::parse(id)?),
        })
    }
}

impl fmt::Debug for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.product_type().as_str(), self.id())
    }
}
