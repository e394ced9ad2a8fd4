//! The steps of a plan that may hold a statement's thread for long give way, and look at the time and the memory.

use crate::errors;
use crate::pieces::Pieces;
use crate::watch::Watch;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::lit;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder,
};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What reads, and what makes many rows of few, is handed on in pieces, and gives way after each so many. A join that finds nothing, or keeps
/// to itself what it finds, hands nothing on, however long it looks: its filter looks at the time.
#[derive(Debug)]
pub struct GiveWay(pub Arc<Watch>);

impl GiveWay {
    fn watched(&self, node: Arc<dyn ExecutionPlan>) -> Planned<Arc<dyn ExecutionPlan>> {
        if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
            return match self.looking(join.filter(), *join.join_type()) {
                Some(filter) => {
                    let join = NestedLoopJoinExecBuilder::from(join).with_filter(Some(filter));
                    Ok(Arc::new(join.build()?))
                }
                None => Ok(node),
            };
        }
        if let Some(join) = node.downcast_ref::<HashJoinExec>() {
            return match self.looking(join.filter(), *join.join_type()) {
                Some(filter) => join.builder().with_filter(Some(filter)).build_exec(),
                None => Ok(node),
            };
        }
        Ok(node)
    }

    /// The filter of a join, which looks at the time. One that hands on whatever it finds needs none.
    fn looking(&self, filter: Option<&JoinFilter>, kind: JoinType) -> Option<JoinFilter> {
        match filter {
            Some(filter) => Some(self.filter(filter)),
            None if is_told_at_the_end(kind) => Some(self.filter(&always())),
            None => None,
        }
    }

    fn filter(&self, filter: &JoinFilter) -> JoinFilter {
        let watched = Watched {
            filter: filter.expression().clone(),
            watch: self.0.clone(),
        };
        JoinFilter::new(
            Arc::new(watched),
            filter.column_indices().to_vec(),
            filter.schema().clone(),
        )
    }
}

impl PhysicalOptimizerRule for GiveWay {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Planned<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let begins_or_multiplies =
                node.children().len() != 1 || node.name().starts_with("Unnest");
            if !begins_or_multiplies {
                return Ok(Transformed::no(node));
            }
            let pieces = Arc::new(Pieces::new(self.watched(node)?, self.0.clone()));
            let gives_way: Arc<dyn ExecutionPlan> = Arc::new(CooperativeExec::new(pieces));
            Ok(Transformed::yes(gives_way))
        })
        .data()
    }

    fn name(&self) -> &str {
        "give_way"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether a join only marks rows while it compares them, so that a row may be compared with all others before it is handed on.
fn is_told_at_the_end(kind: JoinType) -> bool {
    !matches!(
        kind,
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full
    )
}

fn always() -> JoinFilter {
    let truth = lit(true);
    JoinFilter::new(truth, Vec::new(), Arc::new(Schema::empty()))
}

/// A join's filter, which is asked for a batch of pairs at a time.
#[derive(Debug)]
struct Watched {
    filter: Arc<dyn PhysicalExpr>,
    watch: Arc<Watch>,
}

impl PartialEq for Watched {
    fn eq(&self, other: &Watched) -> bool {
        self.filter.eq(&other.filter)
    }
}

impl Eq for Watched {}

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.filter.hash(state);
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt(formatter)
    }
}

impl PhysicalExpr for Watched {
    fn return_field(&self, input: &Schema) -> Planned<FieldRef> {
        self.filter.return_field(input)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Planned<ColumnarValue> {
        self.watch.clock.check().map_err(errors::through)?;
        self.filter.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.filter]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Planned<Arc<dyn PhysicalExpr>> {
        let filter = children.pop().unwrap_or_else(|| self.filter.clone());
        Ok(Arc::new(Watched {
            filter,
            watch: self.watch.clone(),
        }))
    }

    fn fmt_sql(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt_sql(formatter)
    }
}
