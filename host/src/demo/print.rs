//! What the demo says when it is up.

use std::path::Path;

use crate::ready::{Buyer, Seller};

pub fn welcome(base_url: &str, data_dir: &Path, seller: &Seller, buyer: &Buyer) {
    println!("{}", text(base_url, data_dir, seller, buyer));
}

/// Every line that begins with `curl` works when pasted.
fn text(base_url: &str, data_dir: &Path, seller: &Seller, buyer: &Buyer) -> String {
    let Seller {
        company_id: seller_id,
        handle,
        asset_slug,
        endpoint_slug,
        assets,
        api_key: seller_key,
        ..
    } = seller;
    let Buyer {
        company_id: buyer_id,
        api_key: key,
        endpoint_key,
        ..
    } = buyer;
    let function = &assets.function;
    format!(
        "
souk demo: {base_url}
Everything is kept in {data_dir}; Ctrl-C stops, a later start goes on.

  seller  {handle:<10}  {seller_id}   key (role 4)  {seller_key}
  buyer   {buyer_handle:<10}  {buyer_id}   key (role 4)  {key}
  buyer's key for the endpoint {endpoint_slug}: {endpoint_key}

The buyer's credits:
curl -sw '\\n' {base_url}/companies/{buyer_id}/credits -H 'x-api-key: {key}'

Execute a calculation: SQL that runs in the seller's database; only the result leaves it (2 credits):
curl -sw '\\n' -X POST {base_url}/analyze/{handle}/assets/{asset_slug} -H 'x-api-key: {key}' -H 'content-type: application/json' -d '{{\"params\":{{\"season\":2024}}}}'

Call a seller's function: the host calls the seller's own API (3 credits):
curl -sw '\\n' -X POST {base_url}/companies/{seller_id}/assets/{function}/execute -H 'x-api-key: {key}' -H 'content-type: application/json' -d '{{\"params\":{{\"home_team\":\"Jasper Vale\",\"away_team\":\"Ashford Athletic\"}}}}'

Fetch a page of an endpoint (2 credits):
curl -sw '\\n' '{base_url}/endpoints/v1/{handle}/{endpoint_slug}?start=0&limit=3' -H 'x-api-key: {endpoint_key}'

And see the balance go down:
curl -sw '\\n' {base_url}/companies/{buyer_id}/credits -H 'x-api-key: {key}'

Every operation: {base_url}/docs in a browser, {base_url}/openapi.json for tools.
All keys, the platform's own (role 5) among them: {data_dir}/demo.json
",
        data_dir = data_dir.display(),
        buyer_handle = buyer.handle,
    )
}
