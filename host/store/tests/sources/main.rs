//! Connections, files and connectors in the store, on SQLite, and on PostgreSQL when
//! `TEST_POSTGRES_URL` names an empty database.

mod connections;
mod connectors;
mod engines;
mod files;

use souk_domain::connections::{SslMode, Target};
use souk_domain::ids::{CompanyId, UserId};
use souk_domain::time::Timestamp;
use souk_store::connections::Written;
use souk_store::{Db, OpenOptions, StoreError};

struct World {
    db: Db,
    company: CompanyId,
    user: UserId,
    _directory: tempfile::TempDir,
}

const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

async fn world() -> World {
    let directory = tempfile::tempdir().unwrap();
    let url = std::env::var("TEST_POSTGRES_URL")
        .unwrap_or_else(|_| format!("sqlite:{}", directory.path().join("souk.db").display()));
    let db = Db::open(&OpenOptions::new(url)).await.unwrap();
    let (company, user) = (CompanyId::generate(), UserId::generate());
    db.write(async |tx| -> Result<_, StoreError> {
        sqlx::query("INSERT INTO companies (id, handle, name, status, is_platform, created_at, updated_at) VALUES ($1, $1, $1, 'active', 0, 0, 0)")
            .bind(company.as_str())
            .execute(&mut **tx)
            .await
            .unwrap();
        sqlx::query("INSERT INTO users (id, company_id, name, role, status, created_at, updated_at) VALUES ($1, $2, 'x', 4, 'active', 0, 0)")
            .bind(user.as_str())
            .bind(company.as_str())
            .execute(&mut **tx)
            .await
            .unwrap();
        Ok(())
    }).await.unwrap();
    World {
        db,
        company,
        user,
        _directory: directory,
    }
}

fn written<'a>(name: &'a str, target: &'a Target) -> Written<'a> {
    Written {
        name,
        credential_type: "PASSWORD",
        credentials: b"\x00sealed\xff",
        target,
        cloud_provider_id: None,
        verified_usage_ability: true,
        statement_timeout_ms: 10_000,
    }
}

fn tcp() -> Target {
    Target::Tcp {
        host: "db.example.com".into(),
        port: 5432,
        database: "sales".into(),
        ssl_mode: SslMode::VerifyFull,
        ca_pem: None,
    }
}
