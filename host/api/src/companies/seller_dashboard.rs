use crate::money::Usd;
use crate::money::usd;
use crate::period::{Period, change_percent, last_date};
use crate::query::parameters;
use crate::words;
use crate::{ApiState, Caller, Data, Operation, Problem, Query};
use axum::extract::State;
use serde::Serialize;
use serde_json::Number;
use souk_store::sales::{self, Sold, SoldProduct};
use utoipa::ToSchema;

const TOP_PRODUCTS: usize = 10;

pub const OPERATION: Operation = Operation::get("seller_dashboard", "/companies/{company_id}/seller-dashboard")
    .about("Companies", "Show what a seller sold lately")
    .notes(
        "A period is that many UTC dates, the last of them today: day 1, week 7, month 30, quarter 90; `previous` is as many before them. Runs \
         count on the date on which they began. Revenue is what was charged less what was refunded in the period, so it may be below zero. \
         Runs by the seller's own keys are no sales.",
    );

parameters! {
    pub struct DashboardQuery {
        /// How many dates, today the last of them.
        period: Period = Period::Month,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = SellerDashboard)]
pub struct DashboardOut {
    #[schema(value_type = words::FiguresPeriod)]
    period: &'static str,
    /// The first date, `YYYY-MM-DD`.
    start: String,
    /// The last date: today.
    end: String,
    #[serde(flatten)]
    figures: Figures,
    /// The ten with the highest revenue.
    top_products: Vec<TopProduct>,
    previous: Figures,
    change_percent: Growth,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SalesFigures)]
pub struct Figures {
    revenue_credits: i64,
    #[schema(value_type = Usd)]
    revenue_usd: Number,
    #[schema(value_type = Usd)]
    seller_earnings_usd: Number,
    #[schema(value_type = Usd)]
    platform_fee_usd: Number,
    #[schema(minimum = 0)]
    refunded_credits: i64,
    /// Of assets, that succeeded.
    #[schema(minimum = 0)]
    executions: i64,
    /// Pages of endpoints that were answered.
    #[schema(minimum = 0)]
    endpoint_requests: i64,
    /// Runs of either that failed, which cost nothing.
    #[schema(minimum = 0)]
    failed_runs: i64,
    /// Companies for which something succeeded.
    #[schema(minimum = 0)]
    active_buyers: i64,
}

impl From<&Sold> for Figures {
    fn from(sold: &Sold) -> Figures {
        Figures {
            revenue_credits: sold.revenue_credits(),
            revenue_usd: usd(sold.revenue()),
            seller_earnings_usd: usd(sold.earnings()),
            platform_fee_usd: usd(sold.platform_fee()),
            refunded_credits: sold.refunded_credits,
            executions: sold.executions,
            endpoint_requests: sold.requests,
            failed_runs: sold.failed,
            active_buyers: sold.buyers,
        }
    }
}

/// In percent with one decimal; `null` where there was nothing before, or a revenue below zero.
#[derive(Serialize, ToSchema)]
#[schema(as = SalesGrowth)]
pub struct Growth {
    /// `null`, too, where more was refunded than charged before.
    #[schema(value_type = Option<f64>)]
    revenue_credits: Option<Number>,
    #[schema(value_type = Option<f64>)]
    executions: Option<Number>,
    #[schema(value_type = Option<f64>)]
    endpoint_requests: Option<Number>,
    #[schema(value_type = Option<f64>)]
    active_buyers: Option<Number>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = TopProduct)]
pub struct TopProduct {
    product_id: String,
    #[schema(value_type = words::ProductType)]
    product_type: &'static str,
    name: Option<String>,
    revenue_credits: i64,
    /// Executions of an asset, pages of an endpoint.
    #[schema(minimum = 0)]
    uses: i64,
    #[schema(minimum = 0)]
    buyers: i64,
}

impl From<SoldProduct> for TopProduct {
    fn from(product: SoldProduct) -> TopProduct {
        TopProduct {
            product_id: product.id,
            product_type: product.product_type.as_str(),
            name: product.name,
            revenue_credits: product.sold.revenue_credits(),
            uses: product.sold.succeeded(),
            buyers: product.sold.buyers,
        }
    }
}

/// Shows what a seller sold lately.
pub async fn seller_dashboard(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<DashboardQuery>,
) -> Result<Data<DashboardOut>, Problem> {
    let period = query.period;
    let (span, before) = period.spans(caller.now());
    let mut read = api.db().snapshot().await?;
    let sold = sales::over(&mut read, caller.company(), &[span, before]).await?;
    let products = sales::by_product(&mut read, caller.company(), span).await?;
    let (now, former) = (&sold[0], &sold[1]);
    Ok(Data(DashboardOut {
        period: period.as_str(),
        start: span.from.date(),
        end: last_date(span),
        figures: now.into(),
        top_products: products
            .into_iter()
            .take(TOP_PRODUCTS)
            .map(TopProduct::from)
            .collect(),
        previous: former.into(),
        change_percent: Growth {
            revenue_credits: change_percent(now.revenue_credits(), former.revenue_credits()),
            executions: change_percent(now.executions, former.executions),
            endpoint_requests: change_percent(now.requests, former.requests),
            active_buyers: change_percent(now.buyers, former.buyers),
        },
    }))
}
