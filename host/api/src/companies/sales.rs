use crate::money::Usd;
use crate::money::usd;
use crate::period::{chosen, dates, last_date, last_days};
use crate::query::{Date, Parameter, choices, parameters};
use crate::refusals::INVALID_PERIOD;
use crate::{ApiState, Caller, Grouped, Operation, Problem, Query, Text};
use axum::extract::State;
use serde::Serialize;
use serde_json::{Number, Value};
use souk_domain::ids::CompanyId;
use souk_domain::time::{DAY, Timestamp};
use souk_store::AnyConnection;
use souk_store::sales::{self, Sold, Span};
use utoipa::ToSchema;

pub const OPERATION: Operation = Operation::get("company_sales", "/companies/{company_id}/sales")
    .about("Companies", "Show sales over time, by product or by buyer")
    .notes(
        "Whole UTC dates, at most 366; without dates the last 30, today included. Groups of time are ascending and without gaps (a week begins \
         on its Monday, and the first and last group hold only the dates asked for); products and buyers come with the highest revenue first, at most 1,000. Revenue is what was charged less what was refunded, on \
         the date of the run and of the refund. `totals` is of the whole period: a buyer counts once in it. What was used more than 400 days ago is counted on the first date of its \
         month.",
    )
    .refuses(&[INVALID_PERIOD]);

const DAYS_DEFAULT: u32 = 30;
/// Products or buyers in one answer.
const GROUPS_MAX: usize = 1_000;

choices! {
    pub enum GroupBy {
        Day = "day",
        Week = "week",
        Month = "month",
        Product = "product",
        Buyer = "buyer",
    }
}

parameters! {
    pub struct SalesQuery {
        /// The first date, `YYYY-MM-DD`.
        start_date: Option<Date>,
        /// The last date, which is included.
        end_date: Option<Date>,
        /// What a group is of.
        group_by: GroupBy = GroupBy::Day,
        /// Comma-separated: `revenue_credits`, `revenue_usd`, `seller_earnings_usd`, `executions`, `requests`, `buyers`, `refunds`. Default all.
        metrics: Option<MetricNames>,
    }
}

const METRICS: [&str; 7] = [
    "revenue_credits",
    "revenue_usd",
    "seller_earnings_usd",
    "executions",
    "requests",
    "buyers",
    "refunds",
];

/// Metrics that were not asked for are left out.
#[derive(Serialize, ToSchema)]
#[schema(as = SalesGroup)]
pub struct GroupOut {
    /// `YYYY-MM-DD` of a day or of a week's Monday, `YYYY-MM` of a month, the id of a product or a buyer.
    group: String,
    /// Of a product or a buyer.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(flatten)]
    metrics: Metrics,
}

#[derive(Default, Serialize, ToSchema)]
#[schema(as = SalesMetrics)]
pub struct Metrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    revenue_credits: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Usd>)]
    revenue_usd: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Usd>)]
    seller_earnings_usd: Option<Number>,
    /// Of assets, that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    executions: Option<i64>,
    /// Pages of endpoints that were answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    requests: Option<i64>,
    /// Companies for which something succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    buyers: Option<i64>,
    /// Credits that were given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    refunds: Option<i64>,
}

impl Metrics {
    fn of(sold: &Sold, wanted: &[&'static str]) -> Metrics {
        let mut metrics = Metrics::default();
        for name in wanted {
            match *name {
                "revenue_credits" => metrics.revenue_credits = Some(sold.revenue_credits()),
                "revenue_usd" => metrics.revenue_usd = Some(usd(sold.revenue())),
                "seller_earnings_usd" => metrics.seller_earnings_usd = Some(usd(sold.earnings())),
                "executions" => metrics.executions = Some(sold.executions),
                "requests" => metrics.requests = Some(sold.requests),
                "buyers" => metrics.buyers = Some(sold.buyers),
                _ => metrics.refunds = Some(sold.refunded_credits),
            }
        }
        metrics
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = SalesMeta)]
pub struct SalesMeta {
    group_by: &'static str,
    metrics: Vec<&'static str>,
    start_date: String,
    end_date: String,
    /// There are more groups than are shown.
    truncated: bool,
    totals: Metrics,
}

/// Shows sales over time, by product or by buyer.
pub async fn company_sales(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<SalesQuery>,
) -> Result<Grouped<GroupOut, SalesMeta>, Problem> {
    let span = chosen(query.start_date, query.end_date)?;
    let span = span.unwrap_or_else(|| last_days(DAYS_DEFAULT, caller.now()));
    let wanted = query.metrics.map_or(METRICS.to_vec(), |names| names.0);
    let by = query.group_by;
    let mut read = api.db().snapshot().await?;
    let totals = sales::over(&mut read, caller.company(), &[span]).await?;
    let mut groups = groups(&mut read, caller.company(), span, by, &wanted).await?;
    let truncated = groups.len() > GROUPS_MAX;
    groups.truncate(GROUPS_MAX);
    Ok(Grouped {
        data: groups,
        meta: SalesMeta {
            group_by: by.as_str(),
            start_date: span.from.date(),
            end_date: last_date(span),
            truncated,
            totals: Metrics::of(&totals[0], &wanted),
            metrics: wanted,
        },
    })
}

async fn groups(
    db: &mut AnyConnection,
    seller: &CompanyId,
    span: Span,
    by: GroupBy,
    wanted: &[&'static str],
) -> Result<Vec<GroupOut>, Problem> {
    let group = |group: String, name: Option<String>, sold: &Sold| GroupOut {
        group,
        name,
        metrics: Metrics::of(sold, wanted),
    };
    let begin: fn(Timestamp) -> String = match by {
        GroupBy::Day => |day| day.date(),
        GroupBy::Week => monday,
        GroupBy::Month => |day| day.date()[.."2026-01".len()].to_owned(),
        GroupBy::Product => {
            let products = sales::by_product(db, seller, span).await?;
            let products = products.into_iter();
            return Ok(products
                .map(|product| group(product.id, product.name, &product.sold))
                .collect());
        }
        GroupBy::Buyer => {
            let buyers = sales::by_buyer(db, seller, span).await?;
            let buyers = buyers.into_iter();
            return Ok(buyers
                .map(|buyer| group(buyer.id, buyer.name, &buyer.sold))
                .collect());
        }
    };
    let mut names: Vec<String> = Vec::new();
    let mut spans: Vec<Span> = Vec::new();
    for day in dates(span) {
        let name = begin(day.from);
        match spans.last_mut() {
            Some(last) if names.last() == Some(&name) => last.to = day.to,
            _ => {
                names.push(name);
                spans.push(day);
            }
        }
    }
    let sold = sales::over(db, seller, &spans).await?;
    let groups = names.into_iter().zip(&sold);
    Ok(groups.map(|(name, sold)| group(name, None, sold)).collect())
}

/// The date of the Monday before, or of the day itself. The first day of all was a Thursday.
fn monday(day: Timestamp) -> String {
    let days = day.seconds().div_euclid(DAY.as_secs() as i64);
    let since = (days + 3).rem_euclid(7);
    day.before(DAY * since as u32).date()
}

/// The metrics that are asked for, each once, in the order of the documentation.
/// Those that are asked for, in the order of [`METRICS`].
#[derive(Clone)]
pub struct MetricNames(Vec<&'static str>);

impl Parameter for MetricNames {
    fn schema() -> Value {
        Text::<0, 255>::schema()
    }

    fn read(text: &str) -> Result<Self, String> {
        let asked: Vec<&str> = text.split(',').map(str::trim).collect();
        if let Some(unknown) = asked.iter().find(|name| !METRICS.contains(name)) {
            return Err(format!("{unknown:?} is none of {}", METRICS.join(", ")));
        }
        let metrics = METRICS.into_iter().filter(|name| asked.contains(name));
        Ok(MetricNames(metrics.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A week is known by its Monday, over the ends of months and years.
    #[test]
    fn weeks_begin_on_mondays() {
        let monday_of = |day: &str| monday(Timestamp::parse(&format!("{day}T00:00:00Z")).unwrap());
        assert_eq!(monday_of("2026-01-04"), "2025-12-29");
        assert_eq!(monday_of("2026-01-05"), "2026-01-05");
        assert_eq!(monday_of("2026-01-11"), "2026-01-05");
        assert_eq!(monday_of("1970-01-01"), "1969-12-29");
    }
}
