//! What only products of one kind have, in a table of its own beside `products`. What JSON columns mean is the application's business.

use souk_domain::ids::{AssetId, EndpointId};
use souk_domain::products::{AssetType, Product, ProductType, ResultType, SourceKind};
use sqlx::any::AnyRow;

use super::Kind;
use crate::bulk::Values;
use crate::{Fields, StoreError};

/// The details of one kind. Made by `details!`.
pub trait Details: Clone + std::fmt::Debug + Send + Sync + 'static {
    const TABLE: &'static str;
    const COLUMNS: &'static [&'static str];
    fn put(&self, values: &mut Values);
    fn read(row: &AnyRow) -> Result<Self, StoreError>;
    /// Bytes of what is written freely.
    fn text_bytes(&self) -> usize;
}

/// A value of one column.
trait Column: Sized {
    fn put(&self, values: &mut Values);
    fn read(row: &AnyRow, column: &str) -> Result<Self, StoreError>;

    /// Of numbers and words nothing.
    fn text_bytes(&self) -> usize {
        0
    }
}

/// A struct of which each field is a column of `table`.
macro_rules! details {
    ($(#[$doc:meta])* $name:ident in $table:literal { $($(#[$about:meta])* $column:ident: $Type:ty,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[$about])* pub $column: $Type,)+
        }

        impl Details for $name {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [&'static str] = &[$(stringify!($column)),+];

            fn put(&self, values: &mut Values) {
                $(self.$column.put(values);)+
            }

            fn read(row: &AnyRow) -> Result<Self, StoreError> {
                Ok($name {
                    $($column: Column::read(row, stringify!($column))?,)+
                })
            }

            fn text_bytes(&self) -> usize {
                [$(self.$column.text_bytes()),+].into_iter().sum()
            }
        }
    };
}

details! {
    AssetDetails in "asset_details" {
        asset_type: AssetType,
        sport: Option<String>,
        source_kind: SourceKind,
        source: String,
        parameters: String,
        result_type: ResultType,
        unit: Option<String>,
        visualization: Option<String>,
        prediction: Option<String>,
        privacy: Option<String>,
        freshness_column: Option<String>,
    }
}

details! {
    EndpointDetails in "endpoint_details" {
        source_schema: Option<String>,
        source_table: Option<String>,
        sql_logic: Option<String>,
        fields: String,
        order_by: String,
        filters: String,
        sorts: String,
        default_limit: i64,
        max_limit: i64,
    }
}

impl Kind for AssetId {
    const TYPE: ProductType = ProductType::Asset;
    const SUBTYPE: &'static str = "d.asset_type";
    type Details = AssetDetails;

    fn product(&self) -> Product {
        Product::Asset(self.clone())
    }
}

impl Kind for EndpointId {
    const TYPE: ProductType = ProductType::Endpoint;
    const SUBTYPE: &'static str = "CAST(NULL AS TEXT)";
    type Details = EndpointDetails;

    fn product(&self) -> Product {
        Product::Endpoint(self.clone())
    }
}

impl Column for String {
    fn put(&self, values: &mut Values) {
        values.text(Some(self));
    }

    fn read(row: &AnyRow, column: &str) -> Result<String, StoreError> {
        row.text(column)
    }

    fn text_bytes(&self) -> usize {
        self.len()
    }
}

impl Column for Option<String> {
    fn put(&self, values: &mut Values) {
        values.text(self.as_deref());
    }

    fn read(row: &AnyRow, column: &str) -> Result<Option<String>, StoreError> {
        row.text_opt(column)
    }

    fn text_bytes(&self) -> usize {
        self.as_ref().map_or(0, String::len)
    }
}

impl Column for i64 {
    fn put(&self, values: &mut Values) {
        values.number(Some(*self));
    }

    fn read(row: &AnyRow, column: &str) -> Result<i64, StoreError> {
        row.number(column)
    }
}

macro_rules! words {
    ($($Word:ty),+) => {
        $(impl Column for $Word {
            fn put(&self, values: &mut Values) {
                values.text(Some(self.as_str()));
            }

            fn read(row: &AnyRow, column: &str) -> Result<$Word, StoreError> {
                row.id(column)
            }
        })+
    };
}

words!(AssetType, SourceKind, ResultType);

#[cfg(test)]
mod tests {
    use super::*;

    /// Every text counts, whichever column it stands in.
    #[test]
    fn texts_are_counted() {
        let text = |bytes: usize| "x".repeat(bytes);
        let details = EndpointDetails {
            source_schema: Some(text(1)),
            source_table: None,
            sql_logic: Some(text(1_000)),
            fields: text(200),
            order_by: text(30),
            filters: text(4_000),
            sorts: text(50_000),
            default_limit: 10,
            max_limit: 10,
        };
        assert_eq!(details.text_bytes(), 55_231);
    }
}
