//! Products that are on the market, straight in the store: what they would run does not matter here.

use super::{Company, World, now};
use souk_domain::ids::{AssetId, CompanyId, ConnectionId, EndpointId, UserId};
use souk_domain::products::{AssetType, ProductStatus, ResultType, SourceKind};
use souk_store::StoreError;
use souk_store::products::{self, AssetDetails, EndpointDetails, Kind, Written};

impl World {
    /// A published asset, straight in the store: what it would execute does not matter here.
    pub async fn asset(&self, company: &Company) -> String {
        self.asset_with(company, |_| {}).await
    }

    pub async fn asset_with(
        &self,
        company: &Company,
        change: impl FnOnce(&mut Written<AssetDetails>),
    ) -> String {
        let id = AssetId::generate();
        let details = AssetDetails {
            asset_type: AssetType::Calculation,
            sport: None,
            source_kind: SourceKind::Sql,
            source: "SELECT 1".into(),
            parameters: "[]".into(),
            result_type: ResultType::Number,
            unit: None,
            visualization: None,
            prediction: None,
            privacy: None,
            freshness_column: None,
        };
        let mut written = written(&id, "an asset", details);
        change(&mut written);
        self.publish(company, &id, &written).await;
        id.to_string()
    }

    /// A published asset of a seller's API, with this sample for its preview.
    pub async fn sample(&self, company: &Company, sample: &str) -> String {
        let asset = self.asset_with(company, |asset| {
            asset.details.source_kind = SourceKind::Path;
            asset.details.source = "/goals".into();
        });
        let asset = asset.await;
        self.db
            .write(async |write| -> Result<_, StoreError> {
                sqlx::query("UPDATE products SET sample = $1 WHERE id = $2")
                    .bind(sample)
                    .bind(&asset)
                    .execute(&mut **write)
                    .await
                    .unwrap();
                Ok(())
            })
            .await
            .unwrap();
        asset
    }

    /// A published endpoint, straight in the store.
    pub async fn endpoint(&self, company: &Company) -> String {
        self.endpoint_with(company, |_| {}).await
    }

    pub async fn endpoint_with(
        &self,
        company: &Company,
        change: impl FnOnce(&mut Written<EndpointDetails>),
    ) -> String {
        let id = EndpointId::generate();
        let details = EndpointDetails {
            source_schema: None,
            source_table: None,
            sql_logic: Some("SELECT 1 AS one".into()),
            fields: "[]".into(),
            order_by: "[]".into(),
            filters: "[]".into(),
            sorts: "[]".into(),
            default_limit: 100,
            max_limit: 1000,
        };
        let mut written = Written {
            allow_ai_training: false,
            ..written(&id, "an endpoint", details)
        };
        change(&mut written);
        self.publish(company, &id, &written).await;
        id.to_string()
    }

    async fn publish<K: Kind>(&self, company: &Company, id: &K, written: &Written<K::Details>) {
        let (company, user) = (
            CompanyId::parse(&company.id).unwrap(),
            UserId::parse(&company.user_id).unwrap(),
        );
        self.db
            .write(async |write| -> Result<_, StoreError> {
                products::insert(write, id, &company, &user, written, now()).await?;
                let to = ProductStatus::Published;
                products::set_status(write, &company, id, to, now()).await
            })
            .await
            .unwrap();
    }
}

fn written<K: Kind>(id: &K, name: &str, details: K::Details) -> Written<K::Details> {
    Written {
        connection_id: ConnectionId::generate(),
        name: name.into(),
        slug: id.as_ref().to_lowercase().replace('_', "-"),
        description: String::new(),
        category: None,
        labels: "{}".into(),
        timeout_ms: 10_000,
        allow_ai_training: true,
        details,
    }
}
