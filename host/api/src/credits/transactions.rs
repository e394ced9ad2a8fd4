use super::csv::{self, Csv};
use super::shape::TransactionOut;
use crate::accepted::is_preferred;
use crate::large::of_lines;
use crate::query::{PAGE_MAX, PER_PAGE_DEFAULT, PER_PAGE_MAX, Since, Until, choices, parameters};
use crate::refusals::INVALID_PERIOD;
use crate::{ApiState, Caller, Either, Integer, List, Operation, Page, Problem, Query, Text};
use axum::extract::State;
use http::HeaderMap;
use souk_store::Part;
use souk_store::statements::{self, LineFilter, LineType, ListError, SEARCHED_MAX};

choices! {
    impl LineType {
        TopUp = "top_up",
        Grant = "grant",
        Charge = "charge",
        Refund = "refund",
        Earning = "earning",
        Payout = "payout",
        Adjustment = "adjustment",
    }
}

choices! {
    pub enum Format {
        Json = "json",
        Csv = "csv",
    }
}

parameters! {
    pub struct Wanted {
        /// Page number, from 1. Default 1; of CSV without `per_page` all lines.
        page: Option<Integer<1, PAGE_MAX>>,
        /// Items per page. Default 50; of CSV without `page` all lines.
        per_page: Option<Integer<1, PER_PAGE_MAX>>,
        /// Only lines of this type.
        r#type: Option<LineType>,
        /// From this date or instant on.
        start_date: Option<Since>,
        /// Up to, not including, this instant; a date is included.
        end_date: Option<Until>,
        /// Only lines of this product.
        product_id: Option<Text<0, 255>>,
        /// Default json, or what `Accept` says.
        format: Option<Format>,
    }
}

pub const OPERATION: Operation = Operation::get(
    "list_transactions",
    "/companies/{company_id}/credits/transactions",
)
.about("Credits", "List a company's statement, newest first")
.notes(
    "What the company paid and received as a buyer, and what it earned as a seller. CSV holds all matching lines, at most 10000, unless a \
     page is asked for; texts that a spreadsheet would calculate begin with an apostrophe there. Of one product, or of one type among others, at \
     most a million lines are looked through (400 `INVALID_PERIOD`): whoever has more names a period.",
)
.refuses(&[INVALID_PERIOD]);

/// Lists the lines of a company's statement.
pub async fn list_transactions(
    State(api): State<ApiState>,
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<Wanted>,
) -> Result<Either<List<TransactionOut>, Csv>, Problem> {
    let page = Page {
        page: query.page.map_or(1, Integer::get),
        per_page: query.per_page.map_or(PER_PAGE_DEFAULT, Integer::get),
    };
    let is_csv = query.format.map_or_else(
        || is_preferred(&headers, csv::CONTENT_TYPE),
        |format| format == Format::Csv,
    );
    let is_whole = is_csv && query.page.is_none() && query.per_page.is_none();
    let part = match is_whole {
        true => Part::first(csv::LINES_MAX),
        false => page.part(),
    };
    let filter = LineFilter {
        kind: query.r#type,
        from: query.start_date.map(|time| time.0),
        to: query.end_date.map(|time| time.0),
        product_id: query.product_id.map(Text::into_string),
    };
    // One instant: a page and the number of all lines are of the same statement.
    let mut read = api.db().snapshot().await?;
    let listed = statements::list(&mut read, caller.company(), &filter, part).await;
    let (lines, total) = listed.map_err(refused)?;
    // Whoever waits for a turn to compute holds no reader.
    drop(read);
    let number = lines.len();
    let lines = lines.into_iter().map(TransactionOut::from);
    if !is_csv {
        let data = lines.collect();
        return Ok(Either::This(List { data, total, page }));
    }
    if is_whole && total > csv::LINES_MAX {
        let message = format!(
            "{total} lines match and one file holds {}: ask for a shorter period, or for pages",
            csv::LINES_MAX
        );
        return Err(Problem::of(INVALID_PERIOD, message));
    }
    let written = of_lines(&api, &caller, number, move || statement(lines)).await;
    written.map(Either::That)
}

fn refused(error: ListError) -> Problem {
    match error {
        ListError::TooMany(lines) => {
            let message = format!(
                "{lines} lines of this period would have to be looked through, and at most {SEARCHED_MAX} are: ask for a shorter period"
            );
            Problem::of(INVALID_PERIOD, message)
        }
        ListError::Store(error) => error.into(),
    }
}

/// The lines as a file. Only what was typed, the description, may look like a formula.
fn statement(lines: impl Iterator<Item = TransactionOut>) -> Result<Csv, Problem> {
    let columns = [
        "id",
        "type",
        "status",
        "amount_credits",
        "amount_usd_cents",
        "balance_after_credits",
        "product_id",
        "purchase_id",
        "execution_id",
        "api_key_id",
        "request_id",
        "reversal_of",
        "description",
        "created_at",
        "posted_at",
    ];
    let lines = lines.map(|line| TransactionOut {
        description: line.description.as_deref().map(csv::disarmed),
        ..line
    });
    Csv::table("transactions.csv", &columns, lines)
}
