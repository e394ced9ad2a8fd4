//! Runs one statement: read, plan, bind, and take its rows under the request's limits.

use crate::answer::Answer;
use crate::engine::Engine;
use crate::errors;
use crate::escapes;
use crate::parameters::bound;
use crate::values;
use datafusion::common::config::Dialect;
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::error::Result as Planned;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SQLOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use futures_util::StreamExt;
use souk_sdk::{Batch, Error, Limits, Query};

/// Operators of one statement. `a + b + …` nests as deep as it is long, and each rule that looks at it goes as deep.
const OPERATORS_MAX: usize = 400;

pub fn run(engine: &Engine, query: &Query) -> Result<Answer, Error> {
    engine.clock().allow(query.limits.timeout_ms);
    let statement = parse(engine, &query.text)?;
    let plan = engine.finish(engine.state().statement_to_plan(statement))?;
    read_only(&plan)?;
    let plan = bind(plan, query)?;
    let stream = engine.finish(begin(engine, plan))?;
    rows(engine, stream, &query.limits)
}

fn parse(engine: &Engine, text: &str) -> Result<Parsed, Error> {
    bounded(text)?;
    let parsed = engine
        .state()
        .sql_to_statement(text, &Dialect::PostgreSQL)
        .map_err(|error| errors::of_statement(&error))?;
    match parsed {
        Parsed::Statement(mut statement) if matches!(*statement, Statement::Query(_)) => {
            escapes::rewrite(&mut statement)?;
            Ok(Parsed::Statement(statement))
        }
        _ => Err(refused()),
    }
}

fn refused() -> Error {
    Error::permission(
        "statement_refused",
        "the statement does something other than read",
    )
}

/// Refuses what would nest too deep before anything recurses over it.
fn bounded(text: &str) -> Result<(), Error> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text)
        .tokenize()
        .map_err(|error| {
            Error::source_failed(
                "syntax_error",
                "the statement is not valid SQL for DataFusion",
            )
            .detail(error.to_string())
        })?;
    let mut operators = 0;
    for token in &tokens {
        let is_value = matches!(
            token,
            Token::Whitespace(_)
                | Token::Number(..)
                | Token::SingleQuotedString(_)
                | Token::Placeholder(_)
                | Token::Comma
                | Token::LParen
                | Token::RParen
                | Token::Period
        );
        match token {
            Token::Word(word) => operators += usize::from(is_operator(word)),
            _ => operators += usize::from(!is_value),
        }
    }
    match operators > OPERATORS_MAX {
        true => Err(Error::source_failed(
            "statement_too_deep",
            format!("the statement has more than {OPERATORS_MAX} operators"),
        )),
        false => Ok(()),
    }
}

fn is_operator(word: &datafusion::sql::sqlparser::tokenizer::Word) -> bool {
    use datafusion::sql::sqlparser::keywords::Keyword;
    matches!(
        word.keyword,
        Keyword::AND
            | Keyword::OR
            | Keyword::NOT
            | Keyword::IS
            | Keyword::LIKE
            | Keyword::UNION
            | Keyword::INTERSECT
            | Keyword::EXCEPT
            | Keyword::JOIN
            | Keyword::BETWEEN
            | Keyword::WHEN
    )
}

/// Nothing in it makes, changes or sets anything, whatever it looks like.
fn read_only(plan: &LogicalPlan) -> Result<(), Error> {
    SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false)
        .verify_plan(plan)
        .map_err(|error| refused().detail(error.strip_backtrace()))
}

fn bind(plan: LogicalPlan, query: &Query) -> Result<LogicalPlan, Error> {
    let wanted = plan
        .get_parameter_names()
        .map_err(|error| errors::of_statement(&error))?
        .len();
    let given = query.parameters.len();
    if wanted != given {
        return Err(Error::source_failed(
            "parameter_count",
            format!("the statement takes {wanted} parameters, not {given}"),
        ));
    }
    if given == 0 {
        return Ok(plan);
    }
    let mut values: Vec<ScalarValue> = Vec::with_capacity(given);
    for (at, value) in query.parameters.iter().enumerate() {
        values.push(bound(value).map_err(|error| error.parameter(at))?);
    }
    plan.with_param_values(ParamValues::from(values))
        .map_err(|error| errors::of_statement(&error))
}

async fn begin(engine: &Engine, plan: LogicalPlan) -> Planned<SendableRecordBatchStream> {
    let physical = engine.state().create_physical_plan(&plan).await?;
    execute_stream(physical, engine.state().task_ctx())
}

fn rows(
    engine: &Engine,
    mut stream: SendableRecordBatchStream,
    limits: &Limits,
) -> Result<Answer, Error> {
    let schema = stream.schema();
    let columns = schema
        .fields()
        .iter()
        .map(|field| values::column(field))
        .collect::<Vec<_>>();
    let mut batches: Vec<Batch> = Vec::new();
    let (mut count, mut bytes) = (0u64, 0u64);
    while let Some(batch) = engine.finish(async { stream.next().await.transpose() })? {
        count += batch.num_rows() as u64;
        if count > u64::from(limits.rows_max) {
            return Err(Error::too_many_rows(limits.rows_max));
        }
        let left = limits.bytes_max - bytes;
        let (chunks, size) = values::chunks(&batch, &columns, left)?;
        bytes += size;
        batches.push(Batch {
            rows: batch.num_rows() as u32,
            chunks,
        });
    }
    Ok(Answer { columns, batches })
}
