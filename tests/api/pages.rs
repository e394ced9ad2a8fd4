//! What a caller may choose of an endpoint's rows, and that every page is found by the place of the row before it: on PostgreSQL and in a
//! SQLite file.

use serde_json::{Value, json};
use souk_tests::{Answer, Company, PgCluster};
use sqlx::{ConnectOptions, Connection, Executor};

use crate::{host, unique};

/// Players with everything that makes orders hard: NULLs, ties, texts that are not ASCII, a column that is not published.
const PLAYERS: &str = "
    CREATE TABLE players (id INTEGER PRIMARY KEY, name TEXT NOT NULL, club TEXT, goals INTEGER, joined DATE, weight NUMERIC(6,2), secret TEXT NOT NULL);";

/// Rows of `PLAYERS` by their number: every third has no club, every fourth no goals.
fn player(number: i64) -> String {
    let club = match number % 3 {
        0 => "NULL".to_owned(),
        other => format!("'Club {other}%'"),
    };
    let goals = match number % 4 {
        0 => "NULL".to_owned(),
        _ => (number % 5).to_string(),
    };
    let day = number % 7 + 1;
    format!(
        "({number}, 'Ådne {:02}', {club}, {goals}, '2026-02-0{day}', {number}.25, 'hush {}')",
        number % 10,
        number % 2
    )
}

const COUNT: i64 = 60;

fn players() -> String {
    let rows: Vec<String> = (1..=COUNT).map(player).collect();
    format!("{PLAYERS} INSERT INTO players VALUES {};", rows.join(", "))
}

/// A SQLite file in which this was executed.
pub async fn sqlite_file(sql: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("source.db");
    let mut db = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true)
        .connect()
        .await
        .expect("a database");
    db.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())))
        .await
        .expect("SQL");
    db.close().await.expect("close");
    std::fs::read(&path).expect("the file")
}

/// A seller with one endpoint on the same rows at each kind of source.
struct Feed {
    source: &'static str,
    seller: Company,
    connection: String,
    id: String,
}

fn definition() -> Value {
    json!({"name": "Players", "slug": unique("players"), "source": {"table": "players"},
        "fields": [{"name": "id"}, {"name": "name"}, {"name": "club"}, {"name": "goals", "alias": "scored"}, {"name": "joined"}, {"name": "weight"}],
        "order_by": ["id"],
        "filters": ["club", {"field": "goals", "operators": ["eq", "gt", "gte", "lt", "lte", "in"]}, {"field": "name", "operators": ["like", "in"]},
            {"field": "joined", "operators": ["gte", "lt"]}, {"field": "weight", "operators": ["gt"]}, {"field": "id", "operators": ["lte"]}],
        "sorts": [{"name": "club", "order_by": ["club"]}, {"name": "club-down", "order_by": ["-club"]},
            {"name": "goals", "order_by": ["-goals", "name"]}, {"name": "mixed", "order_by": ["goals", "-club"]},
            {"name": "joined", "order_by": ["joined"]}, {"name": "joined-down", "order_by": ["-joined"]},
            {"name": "weight", "order_by": ["-weight"]}, {"name": "secret", "order_by": ["secret", "-goals"]}]})
}

async fn feeds() -> Vec<Feed> {
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("chooser")).await;
    let database = cluster.database(&players()).await;
    let postgres = seller.postgres(cluster, &database).await;
    let sqlite = seller
        .sqlite("players.db", sqlite_file(&players()).await)
        .await;
    let mut feeds = Vec::new();
    for (source, connection) in [("postgres", postgres), ("sqlite", sqlite)] {
        let id = seller.endpoint(&connection, definition()).await;
        feeds.push(Feed {
            source,
            seller: seller.clone(),
            connection,
            id,
        });
    }
    feeds
}

impl Feed {
    async fn get(&self, query: &str) -> Answer {
        let path = format!("/endpoints/{}/execute?{query}", self.id);
        self.seller.client.get(&self.seller.path(&path)).await
    }

    /// The ids that a query finds.
    async fn ids(&self, query: &str) -> Vec<i64> {
        let page = self.get(&format!("{query}&limit=1000")).await.expect(200);
        ids(&page)
    }

    /// Follows `next_url` from the first page on; the ids, and how pages were found.
    async fn follow(&self, query: &str, limit: u32) -> (Vec<i64>, Vec<Value>) {
        let mut page = self
            .get(&format!("{query}&limit={limit}"))
            .await
            .expect(200);
        let (mut all, mut paging) = (ids(&page), Vec::new());
        let mut start = 0;
        loop {
            assert_eq!(page.at("/data/service/pagination/start"), start);
            let next = page.at("/data/service/pagination/next_url").clone();
            let Value::String(next) = next else {
                assert_eq!(page.at("/data/service/pagination/has_more"), false);
                return (all, paging);
            };
            paging.push(page.at("/data/service/pagination/paging").clone());
            page = self.seller.client.get(&next).await.expect(200);
            let more = ids(&page);
            assert!(!more.is_empty(), "{}", page.body);
            start += i64::from(limit);
            all.extend(more);
        }
    }
}

/// The ids of a page's rows, in their order.
pub fn ids(page: &Answer) -> Vec<i64> {
    let rows = page.at("/data/response/data").as_array().cloned();
    let rows = rows.unwrap_or_else(|| panic!("{}", page.body));
    rows.iter()
        .map(|row| row["id"].as_i64().expect("an id"))
        .collect()
}

fn where_(is_it: impl Fn(i64) -> bool) -> Vec<i64> {
    (1..=COUNT).filter(|number| is_it(*number)).collect()
}

/// Ranges, lists and prefixes find what they say, alone and together, by every spelling, alike at both sources.
#[tokio::test]
async fn operators_find_what_they_say() {
    let goals = |number: i64| (number % 4 != 0).then_some(number % 5);
    for feed in feeds().await {
        for (query, expected) in [
            (
                "goals[gte]=3",
                where_(|n| goals(n).is_some_and(|goals| goals >= 3)),
            ),
            (
                "goals[gt]=3",
                where_(|n| goals(n).is_some_and(|goals| goals > 3)),
            ),
            (
                "goals[lt]=1",
                where_(|n| goals(n).is_some_and(|goals| goals < 1)),
            ),
            ("goals[lte]=1&goals[gte]=1", where_(|n| goals(n) == Some(1))),
            (
                "goals[in]=1,4,4",
                where_(|n| matches!(goals(n), Some(1 | 4))),
            ),
            ("filters[goals]=2", where_(|n| goals(n) == Some(2))),
            (
                "filters[goals][gt]=3&filters[club]=Club 1%25",
                where_(|n| goals(n).is_some_and(|goals| goals > 3) && n % 3 == 1),
            ),
            ("name[like]=%C3%85dne 0", where_(|_| true)),
            ("name[like]=%C3%85dne 03", where_(|n| n % 10 == 3)),
            ("name[like]=%C3%A5dne", where_(|_| false)),
            ("name[like]=%25", where_(|_| false)),
            (
                "name[in]=%C3%85dne 03,%C3%85dne 04",
                where_(|n| matches!(n % 10, 3 | 4)),
            ),
            ("joined[gte]=2026-02-06", where_(|n| n % 7 >= 5)),
            ("joined[lt]=2026-02-02", where_(|n| n % 7 == 0)),
            ("weight[gt]=58.25", where_(|n| n > 58)),
        ] {
            assert_eq!(feed.ids(query).await, expected, "{} {query}", feed.source);
        }
    }
}

/// Whatever is wrong with a request is told at once, by its parameter, and nothing of it reaches the source.
#[tokio::test]
async fn everything_wrong_is_told_at_once() {
    for feed in feeds().await {
        let query = "start=-1&limit=x&sort=nope&fields=id,nope,id&club[gt]=a&goals[gte]=many&name[like]=a&goals[ne]=1&nope=1&filters[nope]=1&cursor=abc";
        // From the first filter on the types of columns are known, until another test puts a connector to work: then once more.
        let mut refusal = None;
        for _ in 0..20 {
            feed.get("goals[gte]=1").await.expect(200);
            let told = feed.get(query).await.expect_error(400, "INVALID_PARAMETER");
            let knows_types = told.body.to_string().contains("goals[gte]");
            refusal = Some(told);
            if knows_types {
                break;
            }
        }
        let refusal = refusal.expect("a refusal");
        let mut named = refusal.fields();
        named.sort_unstable();
        assert_eq!(
            named,
            [
                "club[gt]",
                "cursor",
                "fields",
                "fields",
                "filters[nope]",
                "goals[gte]",
                "goals[ne]",
                "limit",
                "nope",
                "sort",
                "start"
            ],
            "{} {}",
            feed.source,
            refusal.body
        );
        for (query, field) in [
            ("start=1&cursor=abc", "start"),
            ("club=a&filters[club]=b", "filters[club]"),
            ("goals[in]=1,x", "goals[in]"),
            ("checkpoints=true", "checkpoints"),
        ] {
            let refusal = feed.get(query).await.expect_error(400, "INVALID_PARAMETER");
            assert_eq!(
                refusal.at("/error/details/errors/0/field"),
                field,
                "{query}"
            );
        }
    }
}

/// Whatever is wrong with `limit`, the bound that is told is the endpoint's own.
#[tokio::test]
async fn a_wrong_limit_tells_the_endpoints_bound() {
    let feed = &feeds().await[0];
    let path = feed.seller.path(&format!("/endpoints/{}", feed.id));
    let bounds = json!({"default_limit": 5, "max_limit": 7});
    feed.seller.client.patch(&path, bounds).await.expect(200);
    for limit in ["0", "-1", "x", "8", "10000", "10001"] {
        let refusal = feed.get(&format!("limit={limit}")).await;
        let refusal = refusal.expect_error(400, "INVALID_PARAMETER");
        assert_eq!(refusal.at("/error/details/errors/0/field"), "limit");
        let told = refusal.text("/error/details/errors/0/message");
        assert!(told.ends_with(" 7"), "limit={limit}: {told}");
    }
    feed.get("limit=7").await.expect(200);
}

/// A definition that cannot work is refused, member by member, and one from before operators is what it was.
#[tokio::test]
async fn definitions_say_what_may_be_chosen() {
    let feed = &feeds().await[0];
    let path = feed.seller.path(&format!("/endpoints/{}", feed.id));
    let shown = feed.seller.client.get(&path).await.expect(200);
    assert_eq!(shown.at("/data/filters/0"), "club");
    assert_eq!(
        shown.at("/data/filters/2"),
        &json!({"field": "name", "operators": ["in", "like"]})
    );
    assert_eq!(
        shown.at("/data/sorts/2"),
        &json!({"name": "goals", "order_by": [{"field": "goals", "direction": "desc"}, {"field": "name", "direction": "asc"}]})
    );
    let body = json!({"filters": [{"field": "club", "operators": ["near"]}], "sorts": [{"name": "x y", "order_by": ["club"]}]});
    let refusal = feed.seller.client.patch(&path, body).await;
    let refusal = refusal.expect_error(400, "VALIDATION_ERROR");
    assert_eq!(
        refusal.at("/error/details/errors/0/field"),
        "filters[0].operators"
    );
    assert_eq!(refusal.at("/error/details/errors/1/field"), "sorts[0].name");
    let unchanged = feed
        .seller
        .client
        .patch(&path, json!({"description": "d"}))
        .await;
    assert_eq!(
        unchanged.expect(200).at("/data/sorts"),
        shown.at("/data/sorts")
    );
    // A name that the source does not have is found when it is published.
    let sorts = json!({"sorts": [{"name": "odd", "order_by": ["no_such_column"]}]});
    feed.seller.client.patch(&path, sorts).await.expect(200);
    let test = feed.seller.client.get(&format!("{path}/test")).await;
    let said = test.expect(409).text("/error/message");
    assert!(
        said.contains("no_such_column") && said.contains("sorts"),
        "{said}"
    );
}

/// Fields come in the order in which they are wanted, and no others.
#[tokio::test]
async fn fields_are_picked() {
    for feed in feeds().await {
        let page = feed
            .get("fields=scored,id&limit=2&sort=club")
            .await
            .expect(200);
        let first = page.at("/data/response/data/0");
        let names: Vec<&String> = first
            .as_object()
            .into_iter()
            .flat_map(|row| row.keys())
            .collect();
        assert_eq!(names.len(), 2, "{first}");
        assert!(
            page.body.to_string().contains("{\"scored\":")
                || first["scored"].is_null()
                || first["scored"].is_i64()
        );
        assert!(!page.body.to_string().contains("hush"), "{}", page.body);
    }
}

/// Followed from page to page every row is seen once and in order, whatever is NULL and whatever ties, in every order, in pages of every
/// length, filtered and not; and pages are found by their place.
#[tokio::test]
async fn following_next_url_sees_every_row_once() {
    for feed in feeds().await {
        for sort in [
            "",
            "sort=club",
            "sort=club-down",
            "sort=goals",
            "sort=mixed",
            "sort=joined",
            "sort=joined-down",
            "sort=weight",
            "sort=secret",
        ] {
            for filter in ["", "goals[gte]=0", "club=Club 1%25"] {
                let query = format!("{sort}&{filter}");
                let whole = feed.ids(&query).await;
                let lengths: &[u32] = match sort {
                    "sort=club" if filter.is_empty() => &[1, 7, 31, 60],
                    _ => &[7, 31, 60],
                };
                for limit in lengths.iter().copied() {
                    let (all, paging) = feed.follow(&query, limit).await;
                    assert_eq!(all, whole, "{} {query} by {limit}", feed.source);
                    assert!(
                        paging.iter().all(|how| how == "keyset"),
                        "{} {query}: {paging:?}",
                        feed.source
                    );
                }
            }
        }
    }
}

/// Rows that come or go before a page change nothing of it.
#[tokio::test]
async fn a_page_begins_behind_its_row() {
    let feed = &feeds().await[0];
    let first = feed.get("limit=10&sort=secret").await.expect(200);
    let next = first.text("/data/service/pagination/next_url");
    let before = feed.seller.client.get(&next).await.expect(200);
    let path = feed
        .seller
        .path(&format!("/connections/{}", feed.connection));
    let database = feed
        .seller
        .client
        .get(&path)
        .await
        .expect(200)
        .text("/data/database");
    let source = PgCluster::shared().await.client(&database).await;
    source
        .batch_execute(&format!(
            "DELETE FROM players WHERE id = {}",
            ids(&first)[3]
        ))
        .await
        .expect("DML");
    let after = feed.seller.client.get(&next).await.expect(200);
    assert_eq!(ids(&after), ids(&before));
}

/// An order that does not tell rows apart: a table's are told apart by its key, and a statement's that tie at the end of a page are
/// counted, so that none is skipped.
#[tokio::test]
async fn rows_that_tie_are_told_apart_or_counted() {
    for feed in feeds().await {
        let mut body = definition();
        body["order_by"] = json!(["club"]);
        body["sorts"] = json!([]);
        let id = feed.seller.endpoint(&feed.connection, body.clone()).await;
        feed.seller
            .client
            .get(&feed.seller.path(&format!("/endpoints/{id}/test")))
            .await
            .expect(200);
        let table = Feed { id, ..feed };
        let whole = table.ids("").await;
        for limit in [1, 7, 19, 20, 21] {
            let (all, paging) = table.follow("", limit).await;
            assert_eq!(all.len(), whole.len(), "{} by {limit}", table.source);
            assert!(paging.iter().all(|how| how == "keyset"), "{paging:?}");
        }
        body["source"] = Value::Null;
        body["sql_logic"] = json!("SELECT * FROM players");
        body["slug"] = json!(unique("ties"));
        let id = table.seller.endpoint(&table.connection, body).await;
        let statement = Feed { id, ..table };
        for limit in [1, 7, 19, 20, 21] {
            let (all, paging) = statement.follow("", limit).await;
            assert_eq!(all.len() as i64, COUNT, "{} by {limit}", statement.source);
            assert!(paging.iter().all(|how| how == "keyset"), "{paging:?}");
        }
    }
}

/// Rows that are NULL in a column of the order which was NOT NULL when the endpoint was published are found from the next test on.
#[tokio::test]
async fn a_test_finds_what_may_be_null_since() {
    let days = |declared: &str, first: &str| {
        format!(
            "CREATE TABLE days (id INTEGER PRIMARY KEY, day TEXT {declared}); INSERT INTO days VALUES (1, {first}), (2, 'b'), (3, 'c');"
        )
    };
    let seller = host().await.company(&unique("chooser")).await;
    let file = sqlite_file(&days("NOT NULL", "'a'")).await;
    let connection = seller.sqlite("days.db", file).await;
    let definition = json!({"slug": unique("days"), "source": {"table": "days"}, "fields": [{"name": "id"}], "order_by": ["-day"]});
    let id = seller.endpoint(&connection, definition).await;
    seller.publish(&id, 1).await;
    let feed = Feed {
        source: "sqlite",
        seller,
        connection,
        id,
    };
    assert_eq!(feed.follow("fields=id", 1).await.0, [3, 2, 1]);

    let nullable = sqlite_file(&days("", "NULL")).await;
    let path = feed.seller.path("/files/days.db");
    let replaced = feed.seller.client.put_bytes(&path, nullable).await;
    assert!(replaced.status.is_success(), "{}", replaced.body);
    let test = feed.seller.path(&format!("/endpoints/{}/test", feed.id));
    feed.seller.client.get(&test).await.expect(200);
    assert_eq!(feed.follow("fields=id", 1).await.0, [3, 2, 1]);
}

/// A table whose name another schema has, too, is neither sorted by that one's key nor taken to be without NULL because that one is. Where nothing but the
/// key says the order, its seller is asked which one is meant.
#[tokio::test]
async fn a_name_that_several_schemas_have_is_not_mistaken() {
    const DAYS: &str = "
        CREATE SCHEMA archive;
        CREATE TABLE archive.days (n INTEGER PRIMARY KEY, id INTEGER, day TEXT NOT NULL);
        CREATE TABLE days (id INTEGER PRIMARY KEY, day TEXT, n INTEGER NOT NULL);
        INSERT INTO days VALUES (1, NULL, 1), (2, 'b', 1), (3, NULL, 1), (4, 'c', 1);";
    let cluster = PgCluster::shared().await;
    let seller = host().await.company(&unique("chooser")).await;
    let connection = seller
        .postgres(cluster, &cluster.database(DAYS).await)
        .await;
    let definition = |source: Value, order_by: Value| json!({"slug": unique("days"), "source": source, "fields": [{"name": "id"}], "order_by": order_by});
    let unclear = definition(json!({"table": "days"}), json!([]));
    let unclear = seller.endpoint(&connection, unclear).await;
    let test = seller.path(&format!("/endpoints/{unclear}/test"));
    let refused = seller.client.get(&test).await;
    let refused = refused.expect_error(409, "INVALID_STATE");
    let told = refused.text("/error/message");
    assert!(told.contains("several tables \"days\""), "{told}");

    for (source, order_by, expected) in [
        (
            json!({"schema": "public", "table": "days"}),
            json!([]),
            [1, 2, 3, 4],
        ),
        (json!({"table": "days"}), json!(["day", "id"]), [2, 4, 1, 3]),
    ] {
        let id = seller
            .endpoint(&connection, definition(source, order_by))
            .await;
        seller.publish(&id, 1).await;
        let feed = Feed {
            source: "postgres",
            seller: seller.clone(),
            connection: connection.clone(),
            id,
        };
        assert_eq!(feed.follow("fields=id", 1).await.0, expected);
    }
}

/// A statement is paged like a table, also by what it computes.
#[tokio::test]
async fn statements_are_paged_by_their_place() {
    for feed in feeds().await {
        let sql = "SELECT id, goals * 2 AS twice FROM players -- all";
        let body = json!({"slug": unique("twice"), "sql_logic": sql, "fields": [{"name": "id"}, {"name": "twice"}],
            "order_by": ["-twice", {"field": "id", "direction": "desc", "nullable": false}]});
        let id = feed.seller.endpoint(&feed.connection, body).await;
        let feed = Feed { id, ..feed };
        let whole = feed.ids("").await;
        let (all, paging) = feed.follow("", 7).await;
        assert_eq!(all, whole, "{}", feed.source);
        assert!(paging.iter().all(|how| how == "keyset"), "{paging:?}");
    }
}

/// A cursor says nothing to whoever holds it, and leads nowhere but where it was told: not changed, not at another endpoint, not with other
/// filters, not in another order.
#[tokio::test]
async fn a_cursor_is_sealed_for_its_request() {
    for feed in feeds().await {
        let page = feed
            .get("limit=10&sort=secret&goals[gte]=1")
            .await
            .expect(200);
        let cursor = page.text("/data/service/pagination/next_cursor");
        assert!(!cursor.contains("hush") && !page.body.to_string().contains("hush"));
        let with = |cursor: &str, rest: &str| format!("cursor={cursor}&limit=5&{rest}");
        feed.get(&with(&cursor, "sort=secret&goals[gte]=1"))
            .await
            .expect(200);
        let mut changed = cursor.clone().into_bytes();
        let place = changed.len() / 2;
        changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).expect("ASCII");
        for (cursor, rest) in [
            (changed.as_str(), "sort=secret&goals[gte]=1"),
            (&cursor[..40], "sort=secret&goals[gte]=1"),
            ("", "sort=secret&goals[gte]=1"),
            (&cursor, "sort=secret&goals[gte]=2"),
            (&cursor, "sort=secret"),
            (&cursor, "sort=goals&goals[gte]=1"),
            (&cursor, "goals[gte]=1"),
        ] {
            let refusal = feed.get(&with(cursor, rest)).await;
            let refusal = refusal.expect_error(400, "INVALID_PARAMETER");
            assert_eq!(
                refusal.at("/error/details/errors/0/field"),
                "cursor",
                "{rest}"
            );
        }
        let id = feed.seller.endpoint(&feed.connection, definition()).await;
        let other = Feed { id, ..feed };
        let refusal = other.get(&with(&cursor, "sort=secret&goals[gte]=1")).await;
        refusal.expect_error(400, "INVALID_PARAMETER");
    }
}
