//! A join that compares each row with each other one computes its filter of pairs, and no part of that before.
//!
//! DataFusion computes below such a join, of each row of a side, what the filter says of that side alone, also what stands behind a condition:
//! `a.n = 0 OR 10 / a.n > b.n` failed at a zero. Filters that have a `CASE`, as whatever can fail has behind what cannot, are one piece to it.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::CaseExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// It stands before all rules of DataFusion's.
#[derive(Debug)]
pub struct OfPairs;

impl PhysicalOptimizerRule for OfPairs {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() else {
                return Ok(Transformed::no(node));
            };
            let Some(filter) = join.filter().filter(|filter| chooses(filter)) else {
                return Ok(Transformed::no(node));
            };
            let whole = JoinFilter::new(
                Arc::new(Whole(filter.expression().clone())),
                filter.column_indices().to_vec(),
                filter.schema().clone(),
            );
            let join = NestedLoopJoinExecBuilder::from(join).with_filter(Some(whole));
            let join: Arc<dyn ExecutionPlan> = Arc::new(join.build()?);
            Ok(Transformed::yes(join))
        })
        .data()
    }

    fn name(&self) -> &str {
        "of_pairs"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether there is something in it that is not computed of all pairs.
fn chooses(filter: &JoinFilter) -> bool {
    let filter = filter.expression();
    let has_case = filter.exists(|part| Ok(part.downcast_ref::<CaseExpr>().is_some()));
    has_case.unwrap_or(true)
}

/// A filter that shows none of its parts. The columns that it is computed of are told beside it.
#[derive(Debug)]
struct Whole(Arc<dyn PhysicalExpr>);

impl PartialEq for Whole {
    fn eq(&self, other: &Whole) -> bool {
        self.0.eq(&other.0)
    }
}

impl Eq for Whole {}

impl Hash for Whole {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for Whole {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl PhysicalExpr for Whole {
    fn return_field(&self, input: &Schema) -> Planned<FieldRef> {
        self.0.return_field(input)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Planned<ColumnarValue> {
        self.0.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        _none: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Planned<Arc<dyn PhysicalExpr>> {
        Ok(self)
    }

    fn fmt_sql(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(formatter)
    }
}
