use crate::period::{Period, dates, last_date};
use crate::query::parameters;
use crate::words;
use crate::{ApiState, Caller, Data, Operation, Problem, Query};
use axum::extract::State;
use serde::Serialize;
use souk_store::sales::{self, Buyer};
use utoipa::ToSchema;

const TOP_CUSTOMERS: usize = 10;

pub const OPERATION: Operation = Operation::get("customer_analytics", "/companies/{company_id}/customer-analytics")
    .about("Companies", "Show how a seller's customers come and go")
    .notes(
        "A customer is another company for which something succeeded in the period, which ends with today's UTC date: day 1 date, week 7, month \
         30, quarter 90. New: never before. Returning: at some time before. Churned: in the period before, and not in this one.",
    );

parameters! {
    pub struct CustomersQuery {
        /// How many dates, today the last of them.
        period: Period = Period::Month,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = CustomerAnalytics)]
pub struct CustomersOut {
    #[schema(value_type = words::FiguresPeriod)]
    period: &'static str,
    /// The first date, `YYYY-MM-DD`.
    start: String,
    /// The last date: today.
    end: String,
    #[schema(minimum = 0)]
    total_customers: i64,
    #[schema(minimum = 0)]
    new_customers: i64,
    #[schema(minimum = 0)]
    returning_customers: i64,
    #[schema(minimum = 0)]
    churned_customers: i64,
    /// The ten customers that spent most.
    top_customers: Vec<CustomerOut>,
    /// Ascending, without gaps.
    customers_by_day: Vec<CustomerDay>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = TopCustomer)]
pub struct CustomerOut {
    company_id: String,
    name: Option<String>,
    /// What was charged less what was refunded.
    credits_spent: i64,
    /// Executions of assets and pages of endpoints.
    #[schema(minimum = 0)]
    executions: i64,
}

impl From<Buyer> for CustomerOut {
    fn from(buyer: Buyer) -> CustomerOut {
        CustomerOut {
            company_id: buyer.id,
            name: buyer.name,
            credits_spent: buyer.sold.revenue_credits(),
            executions: buyer.sold.succeeded(),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = CustomerDay)]
pub struct CustomerDay {
    /// `YYYY-MM-DD`
    date: String,
    #[schema(minimum = 0)]
    customers: i64,
}

/// Shows how a seller's customers come and go.
pub async fn customer_analytics(
    State(api): State<ApiState>,
    caller: Caller,
    Query(query): Query<CustomersQuery>,
) -> Result<Data<CustomersOut>, Problem> {
    let period = query.period;
    let (span, before) = period.spans(caller.now());
    let seller = caller.company();
    let days = dates(span);
    let mut read = api.db().snapshot().await?;
    let customers = sales::customers(&mut read, seller, span, before).await?;
    let buyers = sales::by_buyer(&mut read, seller, span).await?;
    let sold = sales::over(&mut read, seller, &days).await?;
    let days = days.iter().zip(sold);
    Ok(Data(CustomersOut {
        period: period.as_str(),
        start: span.from.date(),
        end: last_date(span),
        total_customers: customers.total,
        new_customers: customers.new,
        returning_customers: customers.total - customers.new,
        churned_customers: customers.churned,
        top_customers: buyers
            .into_iter()
            .filter(|buyer| buyer.sold.succeeded() > 0)
            .take(TOP_CUSTOMERS)
            .map(CustomerOut::from)
            .collect(),
        customers_by_day: days
            .map(|(day, sold)| CustomerDay {
                date: day.from.date(),
                customers: sold.buyers,
            })
            .collect(),
    }))
}
