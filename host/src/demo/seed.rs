//! What is in the demo: a seller with two sources, four assets and an endpoint, and a buyer with
//! credits. All of it is made through the host's own REST API.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::dataset;
use super::rest::{Rest, text};
use crate::ready::{Assets, Buyer, Connections, Seller};

const SELLER_HANDLE: &str = "matchday";
const BUYER_HANDLE: &str = "northside";
const FILE: &str = "league.sqlite";
const BUYER_CREDITS: u64 = 1000;

/// The sample seller API as the seller's connection knows it.
pub struct SellerApi {
    pub base_url: String,
    pub api_key: String,
}

/// Both companies as the platform sees them; `platform` has a key of role 5.
pub async fn seed(
    platform: &Rest,
    seller_api: &SellerApi,
    dataset: Vec<u8>,
) -> Result<(Seller, Buyer)> {
    let seller = seller(platform, seller_api, dataset)
        .await
        .context("the demo's seller")?;
    let buyer = buyer(platform, &seller).await.context("the demo's buyer")?;
    Ok((seller, buyer))
}

/// A company with its first user and that user's key (role 4).
struct Company {
    id: String,
    user_id: String,
    api_key: String,
}

async fn company(platform: &Rest, name: &str, handle: &str) -> Result<Company> {
    let body =
        json!({"name": name, "handle": handle, "contact_email": format!("admin@{handle}.example")});
    let made = platform.post("/admin/companies", body).await?;
    Ok(Company {
        id: text(&made, "/data/company/id")?,
        user_id: text(&made, "/data/user/id")?,
        api_key: text(&made, "/data/api_key/key")?,
    })
}

async fn seller(platform: &Rest, seller_api: &SellerApi, dataset: Vec<u8>) -> Result<Seller> {
    let company = company(platform, "Matchday Analytics", SELLER_HANDLE).await?;
    let rest = platform.with_key(&company.api_key);
    let root = format!("/companies/{}", company.id);

    rest.put_file(&format!("{root}/files/{FILE}"), dataset)
        .await?;
    let connections = Connections {
        sqlite: connection(
            &rest,
            &root,
            json!({"name": "League results", "credential_type": "NONE", "credentials": "{}", "database": FILE}),
            "sqlite",
        )
        .await?,
        seller_api: connection(
            &rest,
            &root,
            json!({
                "name": "Match models", "credential_type": "API_KEY", "base_url": seller_api.base_url,
                "credentials": json!({"api_key": seller_api.api_key}).to_string(),
            }),
            "seller-api",
        )
        .await?,
    };
    let assets = Assets {
        calculation: asset(&rest, &root, &connections.sqlite, 2, calculation()).await?,
        function: asset(&rest, &root, &connections.seller_api, 3, function()).await?,
        visualization: asset(&rest, &root, &connections.sqlite, 4, visualization()).await?,
        prediction: asset(&rest, &root, &connections.sqlite, 5, prediction()).await?,
    };
    // Tested now, because an asset names a function by which both routings can be compared.
    for connection in [&connections.sqlite, &connections.seller_api] {
        let report = rest
            .post(&format!("{root}/connections/{connection}/test"), json!({}))
            .await?;
        anyhow::ensure!(
            report.pointer("/data/success") == Some(&Value::Bool(true)),
            "the connection fails: {report}"
        );
    }
    let (endpoint_id, endpoint_slug) = endpoint(&rest, &root, &connections.sqlite).await?;

    Ok(Seller {
        company_id: company.id,
        handle: SELLER_HANDLE.to_owned(),
        user_id: company.user_id,
        api_key: company.api_key,
        connections,
        assets,
        asset_slug: text(&calculation(), "/slug")?,
        endpoint_id,
        endpoint_slug,
    })
}

async fn connection(rest: &Rest, root: &str, mut body: Value, engine: &str) -> Result<String> {
    let engines = rest.get("/storage-engines").await?;
    let listed = engines
        .pointer("/data")
        .and_then(Value::as_array)
        .context("no engines")?;
    let found = listed.iter().find(|listed| listed["slug"] == engine);
    body["engine_id"] = found.with_context(|| format!("no engine {engine:?}"))?["id"].clone();
    let made = rest.post(&format!("{root}/connections"), body).await?;
    text(&made, "/data/connection_id")
}

/// Creates, prices and publishes.
async fn asset(
    rest: &Rest,
    root: &str,
    connection: &str,
    credits: u64,
    mut body: Value,
) -> Result<String> {
    body["connection_id"] = connection.into();
    let made = rest.post(&format!("{root}/assets"), body).await?;
    let id = text(&made, "/data/asset_id")?;
    rest.post(
        &format!("{root}/assets/{id}/prices"),
        json!({"price_credits": credits}),
    )
    .await?;
    rest.post(&format!("{root}/assets/{id}/publish"), json!({}))
        .await?;
    Ok(id)
}

fn calculation() -> Value {
    json!({
        "asset_type": "CALCULATION", "name": "Goals per match", "slug": "goals-per-match",
        "description": "Average number of goals in a match of one season.",
        "category": "results", "sport": "football", "result_type": "number", "unit": "goals",
        "sql_logic": "SELECT ROUND(AVG(home_goals + away_goals), 2) AS goals_per_match \
                      FROM matches WHERE season = :season",
        "parameters": [season()],
    })
}

fn function() -> Value {
    let [(home, _), (away, _), ..] = dataset::TEAMS else {
        unreachable!("the league has two teams at least")
    };
    json!({
        "asset_type": "CALCULATION", "name": "Win probability", "slug": "win-probability",
        "description": "How likely the home team is to win, computed by the seller's own model.",
        "category": "models", "sport": "football", "result_type": "number",
        "function_id": "calculate_win_probability",
        "parameters": [
            {"name": "home_team", "type": "string", "required": false, "default": home},
            {"name": "away_team", "type": "string", "required": false, "default": away},
        ],
    })
}

fn visualization() -> Value {
    json!({
        "asset_type": "VISUALIZATION", "name": "Goals by team", "slug": "goals-by-team",
        "description": "Goals that each team scored in one season.",
        "category": "results", "sport": "football", "result_type": "chart",
        "sql_logic": "SELECT team, SUM(goals) AS goals FROM ( \
                        SELECT season, home_team AS team, home_goals AS goals FROM matches \
                        UNION ALL SELECT season, away_team, away_goals FROM matches \
                      ) AS scored WHERE season = :season GROUP BY team ORDER BY goals DESC, team",
        "visualization": {"mark": "bar", "x": "team", "y": "goals", "title": "Goals by team"},
        "parameters": [season()],
    })
}

fn prediction() -> Value {
    json!({
        "asset_type": "PREDICTION", "name": "Attendance forecast", "slug": "attendance-forecast",
        "description": "Expected attendance of the next four matchdays.",
        "category": "models", "sport": "football", "result_type": "prediction", "unit": "spectators",
        "sql_logic": "SELECT played_on, SUM(attendance) AS attendance FROM matches \
                      WHERE season = :season GROUP BY played_on ORDER BY played_on",
        "prediction": {
            "time_column": "played_on", "value_column": "attendance", "frequency": "week",
            "horizon": 4, "level": 0.95,
        },
        "parameters": [season()],
    })
}

fn season() -> Value {
    let [first, current] = dataset::SEASONS;
    json!({
        "name": "season", "type": "integer", "required": false,
        "default": current, "minimum": first, "maximum": current,
    })
}

async fn endpoint(rest: &Rest, root: &str, connection: &str) -> Result<(String, String)> {
    let body = json!({
        "connection_id": connection, "name": "Match results", "slug": "match-results",
        "description": "Every match of the league, one row each.",
        "source": {"schema": "main", "table": "matches"},
        "fields": [
            {"name": "id"}, {"name": "season"}, {"name": "matchday"}, {"name": "played_on"},
            {"name": "home_team"}, {"name": "away_team"}, {"name": "home_goals"}, {"name": "away_goals"},
        ],
        "order_by": [{"field": "id", "direction": "asc"}],
        "filters": ["season", "home_team", {"field": "home_goals", "operators": ["eq", "gte", "lte"]}],
        "sorts": [{"name": "newest", "order_by": ["-played_on"]}],
        "default_limit": 100, "max_limit": 1000,
    });
    let made = rest.post(&format!("{root}/endpoints"), body).await?;
    let id = text(&made, "/data/endpoint_id")?;
    rest.post(
        &format!("{root}/endpoints/{id}/publish"),
        json!({"price_credits": 2}),
    )
    .await?;
    Ok((id, text(&made, "/data/slug")?))
}

async fn buyer(platform: &Rest, seller: &Seller) -> Result<Buyer> {
    let company = company(platform, "Northside Fans", BUYER_HANDLE).await?;
    let grant = json!({"credits": BUYER_CREDITS, "reason": "demo"});
    platform
        .post(
            &format!("/admin/companies/{}/credits/grants", company.id),
            grant,
        )
        .await?;

    let rest = platform.with_key(&company.api_key);
    let body = json!({"product_id": seller.endpoint_id, "accept_terms": true});
    let purchase = rest
        .post(&format!("/companies/{}/purchases", company.id), body)
        .await?;
    Ok(Buyer {
        company_id: company.id,
        handle: BUYER_HANDLE.to_owned(),
        user_id: company.user_id,
        api_key: company.api_key,
        endpoint_key: text(&purchase, "/data/endpoint_key/key")?,
    })
}
