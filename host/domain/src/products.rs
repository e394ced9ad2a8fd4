//! What is sold: an asset (one insight per execution) or an endpoint (rows per request). A product has the id of its asset or endpoint.

use crate::ids::{AssetId, EndpointId, IdError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A text that is none of those that a value may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one of {}", .0.join(", "))]
pub struct NoSuchWord(&'static [&'static str]);

/// Enums of which each value has one word, in the store as on the wire.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $value:ident = $word:literal,)+ })+) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$about])* $value,)+
        }

        impl $name {
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }

            pub fn parse(text: &str) -> Option<Self> {
                match text {
                    $($word => Some(Self::$value),)+
                    _ => None,
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = NoSuchWord;
            fn from_str(text: &str) -> Result<Self, NoSuchWord> {
                Self::parse(text).ok_or(NoSuchWord(Self::WORDS))
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        })+
    };
}

words! {
    /// What kind of product it is.
    ProductType {
        /// Billed per execution.
        Asset = "asset",
        /// Billed per request.
        Endpoint = "endpoint",
    }

    /// Where a product is in its life.
    ProductStatus {
        Draft = "draft",
        Published = "published",
        /// It stays with those who bought it.
        Unpublished = "unpublished",
        /// Gone for everybody.
        Archived = "archived",
    }

    AssetType {
        Calculation = "CALCULATION",
        Visualization = "VISUALIZATION",
        Prediction = "PREDICTION",
    }

    /// What an asset's result is.
    ResultType {
        Number = "number",
        String = "string",
        Chart = "chart",
        Prediction = "prediction",
    }

    /// How the source of an asset is read.
    SourceKind {
        Sql = "sql",
        /// A function of a seller's API.
        Function = "function",
        /// A path of a seller's API.
        Path = "path",
    }
}

impl AssetType {
    /// What its result may be; the first unless it is said.
    pub const fn results(self) -> &'static [ResultType] {
        match self {
            Self::Calculation => &[ResultType::Number, ResultType::String],
            Self::Visualization => &[ResultType::Chart],
            Self::Prediction => &[ResultType::Prediction],
        }
    }
}

impl ProductType {
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
