//! A real PostgreSQL, and sessions with it.
#![allow(dead_code, reason = "each test file uses its part")]

use souk_connector_postgres::Session;
use souk_sdk::Settings;
use souk_tests::{PgBouncer, PgCluster};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::sync::OnceLock;
use tokio::runtime::Runtime;
use tokio_postgres::SimpleQueryMessage;

pub type Wire = souk_tests::wire::Wire<Session>;

/// Who logs in how.
const ACCESS: &str = "host all md5er 127.0.0.1/32 md5\nhost all clear 127.0.0.1/32 password\nhost all all 127.0.0.1/32 scram-sha-256\n";

/// In the tests of `pooler.rs` all sessions go through PgBouncer.
const IS_POOLED: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"pooler");

pub struct Cluster {
    /// Where sessions go.
    pub port: u16,
    pub server: PgCluster,
    pooler: Option<PgBouncer>,
    /// The harness is asynchronous, these tests are not.
    runtime: Runtime,
}

impl Cluster {
    /// One server without TLS for all tests of a file. It is stopped when the test process has ended.
    pub fn get() -> &'static Cluster {
        static CLUSTER: OnceLock<Cluster> = OnceLock::new();
        CLUSTER.get_or_init(|| Cluster::start("ssl=off"))
    }

    pub fn start(ssl: &str) -> Cluster {
        Cluster::start_with(ssl, ACCESS, SEED)
    }

    /// One that keeps passwords as md5 only, and asks for them so.
    pub fn start_md5() -> Cluster {
        let access = "host all souk 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 md5\n";
        let seed = format!("SET password_encryption = 'md5'; {SEED}");
        Cluster::start_with("ssl=off", access, &seed)
    }

    fn start_with(ssl: &str, rules: &str, seed: &str) -> Cluster {
        // Beside the cluster, because its directory is made by the harness. Read once, when the server starts.
        let mut access = tempfile::Builder::new().tempfile_in("/tmp").unwrap();
        access.write_all(rules.as_bytes()).unwrap();
        let readable = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(access.path(), readable).unwrap();
        let access_file = format!("hba_file={}", access.path().display());
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(PgCluster::start(&[ssl, &access_file]));
        let mut cluster = Cluster {
            port: server.port,
            server,
            pooler: None,
            runtime,
        };
        cluster.admin(seed);
        if IS_POOLED {
            let pooler = cluster.pooler(&[]);
            cluster.port = pooler.port;
            cluster.pooler = Some(pooler);
        }
        cluster
    }

    /// A PgBouncer of its own before it.
    pub fn pooler(&self, settings: &[&str]) -> PgBouncer {
        let users = [
            ("md5er", "md5pw"),
            ("reader", "readerpw"),
            ("stranger", "strangerpw"),
        ];
        self.runtime
            .block_on(PgBouncer::start(&self.server, &users, settings))
    }

    /// Runs SQL as the superuser; returns the first value, if there is one.
    pub fn admin(&self, sql: &str) -> String {
        let answer = self.runtime.block_on(async {
            let client = self.server.client("postgres").await;
            client.simple_query(sql).await
        });
        let first = answer
            .unwrap()
            .into_iter()
            .find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(String::from),
                _ => None,
            });
        first.unwrap_or_default()
    }

    /// The authority that signed the server's certificate.
    pub fn ca_pem(&self) -> &str {
        &self.server.ca_pem
    }

    pub fn settings(&self, user: &str, password: &str) -> Settings {
        let json = format!(
            r#"{{"username":"{user}","password":"{password}","database":"postgres","ssl_mode":"disable","statement_timeout_ms":5000,"pooler":{IS_POOLED}}}"#
        );
        Settings {
            engine: "postgres".into(),
            json,
        }
    }

    pub fn wire(&self) -> Wire {
        let mut wire = Wire::open(self.port, self.settings("reader", "readerpw")).unwrap();
        wire.tells_alone = true;
        wire
    }
}

/// `reader` owns its tables: it could write if it were let.
const SEED: &str = "
    CREATE ROLE reader LOGIN PASSWORD 'readerpw';
    CREATE ROLE stranger LOGIN PASSWORD 'strangerpw';
    SET password_encryption = 'md5';
    CREATE ROLE md5er LOGIN PASSWORD 'md5pw';
    CREATE ROLE clear LOGIN PASSWORD 'clearpw';
    CREATE SCHEMA shop AUTHORIZATION reader;
    GRANT USAGE ON SCHEMA shop TO md5er;
    SET ROLE reader;
    CREATE TYPE shop.mood AS ENUM ('sad', 'happy');
    CREATE TABLE shop.items (id int PRIMARY KEY, name varchar(20) NOT NULL, price numeric(10,2), moods shop.mood[]);
    INSERT INTO shop.items SELECT i, 'item ' || i, i / 4.0, '{sad,happy}' FROM generate_series(1, 1000) i;
    CREATE VIEW shop.dear AS SELECT id, price FROM shop.items WHERE price > 100;
    CREATE TABLE shop.victims (n int);
    CREATE FUNCTION shop.write() RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO shop.victims VALUES (1); RETURN 1; END $$;
    CREATE PROCEDURE shop.sneak() LANGUAGE plpgsql AS $$ BEGIN
        PERFORM set_config('default_transaction_read_only', 'off', false); COMMIT; INSERT INTO shop.victims VALUES (2); END $$;
    CREATE FUNCTION shop.run(sql text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE sql; RETURN 1; END $$;
    RESET ROLE;
    ANALYZE shop.items;
";
