//! Runs one statement: read, plan, bind, compare as it says, and take its rows under the request's limits.

use crate::answer::Answer;
use crate::comparisons;
use crate::distinct;
use crate::engine::{Engine, with_rows};
use crate::errors;
use crate::escapes;
use crate::guards;
use crate::ignored;
use crate::ordered;
use crate::parameters::bound;
use crate::places;
use crate::series;
use crate::similar;
use crate::tables::{FiltersWhileRead, FromTheFile};
use crate::types;
use crate::watch::ROWS;
use crate::zones;
use datafusion::common::config::Dialect;
use datafusion::common::tree_node::{TreeNodeRecursion, TreeNodeVisitor};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::error::Result as Planned;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::execute_stream;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{self, Statement, Visit, Visitor};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use futures_util::StreamExt;
use souk_sdk::{Batch, Error, Limits, Query};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Operators of one statement. `a + b + …` nests as deep as it is long, and each rule that looks at it goes as deep.
const OPERATORS_MAX: usize = 400;
/// Tables and queries of one statement.
const TABLES_MAX: usize = 400;
/// Steps of a plan, and how many of them nest: what is done to a plan recurses, too.
const NODES_MAX: usize = 2_000;
const NODES_DEPTH_MAX: usize = 450;

pub fn run(engine: &Engine, query: &Query) -> Result<Answer, Error> {
    engine.clock().allow(query.limits.timeout_ms);
    let kept = engine.kept();
    let is_hungry = kept.begin(&query.text, engine.clock().left());
    match answered(engine, query, is_hungry) {
        // Beside what was kept to be quicker it may have had no room.
        Err(error) if error.code == errors::OUT_OF_MEMORY && kept.let_go() => {
            engine.settle();
            let answer = answered(engine, query, true)?;
            kept.is_hungry(&query.text);
            Ok(answer)
        }
        answered => answered,
    }
}

fn answered(engine: &Engine, query: &Query, from_file: bool) -> Result<Answer, Error> {
    let mut state = engine.begun();
    if from_file {
        state.config_mut().set_extension(Arc::new(FromTheFile));
    }
    let plan = planned(engine, &state, &query.text)?;
    plan_is_bounded(&plan)?;
    read_only(&plan)?;
    let plan = bind(plan, query)?;
    let plan = comparisons::exact(plan).map_err(|error| errors::of_statement(&error))?;
    let state = match batch_rows(engine, &plan)? {
        ROWS => state,
        rows => with_rows(state, rows),
    };
    let stream = engine.finish(begin(state, plan))?;
    rows(engine, stream, &query.limits)
}

/// The plan of a statement as it is carried out, whose columns are called as in the statement as it is written.
fn planned(engine: &Engine, state: &SessionState, text: &str) -> Result<LogicalPlan, Error> {
    let plan_of = |statement: Box<Statement>| {
        engine.finish(state.statement_to_plan(Parsed::Statement(statement)))
    };
    let (statement, before) = parse(state, text)?;
    let by_name = ordered::by_name(&statement).map(|by_name| {
        let unordered = ordered::unordered(before.as_deref().unwrap_or(&statement));
        (Box::new(by_name), Box::new(unordered))
    });
    let (plan, before) = match (plan_of(statement), by_name) {
        // Whatever else is wrong is told of the statement as it is.
        (Err(error), Some((by_name, unordered))) => match plan_of(by_name) {
            Ok(plan) => (plan, Some(unordered)),
            Err(_) => return Err(error),
        },
        (plan, _) => (plan?, before),
    };
    match before.map(plan_of) {
        Some(Ok(before)) => named(plan, &before).map_err(|error| errors::of_statement(&error)),
        _ => Ok(plan),
    }
}

/// A statement as it is carried out, and as it was before that if its columns had other names then.
fn parse(
    state: &SessionState,
    text: &str,
) -> Result<(Box<Statement>, Option<Box<Statement>>), Error> {
    bounded(text)?;
    let parsed = state
        .sql_to_statement(text, &Dialect::PostgreSQL)
        .map_err(|error| errors::of_statement(&error))?;
    match parsed {
        Parsed::Statement(mut statement) if matches!(*statement, Statement::Query(_)) => {
            few_tables(&statement)?;
            distinct::rewrite(&mut statement);
            escapes::rewrite(&mut statement)?;
            similar::rewrite(&mut statement)?;
            let is_named = ignored::cuts(&statement) || zones::are_named(&statement);
            let before = is_named.then(|| statement.clone());
            zones::rewrite(&mut statement);
            ignored::rewrite(&mut statement)?;
            series::check(state, &statement)?;
            Ok((statement, before))
        }
        _ => Err(refused()),
    }
}

/// A plan whose columns are named as those of `before`.
fn named(plan: LogicalPlan, before: &LogicalPlan) -> Planned<LogicalPlan> {
    let (columns, wanted) = (plan.schema().columns(), before.schema().fields());
    let names = wanted.iter().map(|field| field.name().as_str());
    let pairs = columns.iter().zip(names.clone());
    let has_them =
        columns.len() != names.len() || pairs.clone().all(|(column, name)| column.name == name);
    if has_them {
        return Ok(plan);
    }
    let columns: Vec<Expr> = pairs
        .map(|(column, name)| match column.name == name {
            true => Expr::Column(column.clone()),
            false => Expr::Column(column.clone()).alias(name),
        })
        .collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
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
        true => Err(too_deep(format!(
            "the statement has more than {OPERATORS_MAX} operators"
        ))),
        false => Ok(()),
    }
}

fn too_deep(message: String) -> Error {
    Error::source_failed("statement_too_deep", message)
}

/// Refuses what tables make large: each of a list in `FROM` is joined to all before it, and of a `WITH` that the next uses twice
/// there are twice as many.
fn few_tables(statement: &Statement) -> Result<(), Error> {
    let mut tables = Tables::default();
    let _: ControlFlow<()> = statement.visit(&mut tables);
    match tables.counted > TABLES_MAX {
        true => Err(too_deep(format!(
            "the statement makes more than {TABLES_MAX} tables and queries of itself"
        ))),
        false => Ok(()),
    }
}

/// How many tables and queries there are, with those of each `WITH` wherever it is named.
#[derive(Default)]
struct Tables {
    counted: usize,
    /// What each `WITH` has.
    named: HashMap<String, usize>,
    open: Vec<OpenQuery>,
}

struct OpenQuery {
    counted: usize,
    /// Of its `WITH`, those that were not looked at yet, the next one last.
    names: Vec<String>,
}

impl Visitor for Tables {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        let names = with.map(|table| table.alias.name.value.to_lowercase());
        let mut names: Vec<String> = names.collect();
        names.reverse();
        self.open.push(OpenQuery { counted: 1, names });
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ast::ObjectName) -> ControlFlow<()> {
        let counted = self
            .named
            .get(&name.to_string().replace('"', "").to_lowercase());
        let counted = counted.copied().unwrap_or(1);
        match self.open.last_mut() {
            Some(query) => query.counted = query.counted.saturating_add(counted),
            None => self.counted = self.counted.saturating_add(counted),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &ast::Query) -> ControlFlow<()> {
        let Some(query) = self.open.pop() else {
            return ControlFlow::Continue(());
        };
        match self.open.last_mut() {
            None => self.counted = self.counted.saturating_add(query.counted),
            Some(around) => match around.names.pop() {
                // One of that name elsewhere may be larger.
                Some(name) => {
                    let counted = self.named.entry(name).or_default();
                    *counted = query.counted.max(*counted);
                }
                None => around.counted = around.counted.saturating_add(query.counted),
            },
        }
        ControlFlow::Continue(())
    }
}

/// Refuses what is still too large. It stops at the first step that is too much.
fn plan_is_bounded(plan: &LogicalPlan) -> Result<(), Error> {
    let mut size = PlanSize::default();
    plan.visit_with_subqueries(&mut size)
        .map_err(|error| errors::of_statement(&error))?;
    match size.is_bounded() {
        true => Ok(()),
        false => Err(too_deep(format!(
            "the statement has more than {NODES_MAX} steps, or more than {NODES_DEPTH_MAX} that follow on each other"
        ))),
    }
}

#[derive(Default)]
struct PlanSize {
    nodes: usize,
    depth: usize,
    depth_max: usize,
}

impl PlanSize {
    fn is_bounded(&self) -> bool {
        self.nodes <= NODES_MAX && self.depth_max <= NODES_DEPTH_MAX
    }
}

impl<'n> TreeNodeVisitor<'n> for PlanSize {
    type Node = LogicalPlan;

    fn f_down(&mut self, _node: &'n LogicalPlan) -> Planned<TreeNodeRecursion> {
        self.nodes += 1;
        self.depth += 1;
        self.depth_max = self.depth_max.max(self.depth);
        Ok(match self.is_bounded() {
            true => TreeNodeRecursion::Continue,
            false => TreeNodeRecursion::Stop,
        })
    }

    fn f_up(&mut self, _node: &'n LogicalPlan) -> Planned<TreeNodeRecursion> {
        self.depth -= 1;
        Ok(TreeNodeRecursion::Continue)
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
            | Keyword::IN
            | Keyword::ILIKE
            | Keyword::SIMILAR
            | Keyword::RLIKE
            | Keyword::REGEXP
            | Keyword::AT
            | Keyword::COLLATE
            | Keyword::OVERLAPS
            | Keyword::NOTNULL
            | Keyword::VALUES
            | Keyword::UNNEST
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

/// As many rows at a time as its tables have them: what passes a filter is gathered, too.
fn batch_rows(engine: &Engine, plan: &LogicalPlan) -> Result<usize, Error> {
    let mut rows = ROWS;
    let read = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = engine.table(scan.table_name.table())
        {
            let known = table.opened(engine.watch()).map_err(errors::through)?;
            rows = rows.min(known.batch_rows);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    read.map_err(|error| errors::of_statement(&error))?;
    Ok(rows)
}

async fn begin(mut state: SessionState, plan: LogicalPlan) -> Planned<SendableRecordBatchStream> {
    let plan = comparisons::widened::exact(state.optimize(&plan)?, &state)?.data;
    let plan = guards::guarded(plan)?;
    let while_read = FiltersWhileRead(hands_on_rows(&plan));
    state.config_mut().set_extension(Arc::new(while_read));
    if places::matter(&plan)? {
        state.config_mut().set_extension(Arc::new(FromTheFile));
    }
    let planner = state.query_planner();
    let physical = planner.create_physical_plan(&plan, &state).await?;
    execute_stream(physical, state.task_ctx())
}

/// Whether it answers rows of one table as they are, chosen and ordered.
fn hands_on_rows(mut plan: &LogicalPlan) -> bool {
    loop {
        plan = match plan {
            LogicalPlan::Projection(node) => &node.input,
            LogicalPlan::Filter(node) => &node.input,
            LogicalPlan::Sort(node) => &node.input,
            LogicalPlan::Limit(node) => &node.input,
            LogicalPlan::SubqueryAlias(node) => &node.input,
            other => return matches!(other, LogicalPlan::TableScan(_)),
        }
    }
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
        .map(|field| types::column(field))
        .collect::<Vec<_>>();
    let mut batches: Vec<Batch> = Vec::new();
    let (mut count, mut bytes) = (0u64, 0u64);
    while let Some(batch) = engine.finish(async { stream.next().await.transpose() })? {
        count += batch.num_rows() as u64;
        if count > u64::from(limits.rows_max) {
            return Err(Error::too_many_rows(limits.rows_max));
        }
        let left = limits.bytes_max - bytes;
        let (chunks, size) = types::chunks(&batch, &columns, left)?;
        bytes += size;
        batches.push(Batch {
            rows: batch.num_rows() as u32,
            chunks,
        });
    }
    Ok(Answer { columns, batches })
}
