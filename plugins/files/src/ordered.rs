//! `SELECT s IS NULL, count(*) … GROUP BY s ORDER BY 1`: values that an order names by their places.
//!
//! DataFusion takes a place for the column of that name, which among groups has to be a key, an aggregate or what `AS` calls so: of what is
//! computed of keys and aggregates it knows none, and does not plan the statement. Here such values get names. Only a statement that is not
//! planned as it is written is planned so, and its columns are called as without an order.
//!
//! Start reading at [`by_name`].

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, OrderByKind, Query, SelectItem, SetExpr, Statement, Value, Visit, VisitMut,
    Visitor, VisitorMut,
};
use std::ops::ControlFlow;

/// The statement with names for the values that its orders name by their places; `None` where there is none.
pub fn by_name(statement: &Statement) -> Option<Statement> {
    if Visit::visit(statement, &mut Places).is_continue() {
        return None;
    }
    let mut named = statement.clone();
    let _: ControlFlow<()> = VisitMut::visit(&mut named, &mut Names(0));
    Some(named)
}

/// The statement without these orders.
pub fn unordered(statement: &Statement) -> Statement {
    let mut unordered = statement.clone();
    let _: ControlFlow<()> = VisitMut::visit(&mut unordered, &mut Orders);
    unordered
}

/// Whether there is one.
struct Places;

impl Visitor for Places {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        match places(query).is_empty() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}

/// How many names were given.
struct Names(usize);

impl VisitorMut for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let places = places(query);
        if let SetExpr::Select(select) = query.body.as_mut() {
            for place in places {
                if let Some(item) = select.projection.get_mut(place)
                    && let SelectItem::UnnamedExpr(value) = item
                {
                    self.0 += 1;
                    let expr = std::mem::replace(value, Expr::value(Value::Null));
                    let alias = Ident::new(format!("ordered_{}", self.0));
                    *item = SelectItem::ExprWithAlias { expr, alias };
                }
            }
        }
        ControlFlow::Continue(())
    }
}

struct Orders;

impl VisitorMut for Orders {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if !places(query).is_empty() {
            query.order_by = None;
        }
        ControlFlow::Continue(())
    }
}

/// The places of computed values without a name that the order of a query names by them, where nothing stands for several columns.
fn places(query: &Query) -> Vec<usize> {
    let (Some(order), SetExpr::Select(select)) = (&query.order_by, query.body.as_ref()) else {
        return Vec::new();
    };
    let OrderByKind::Expressions(keys) = &order.kind else {
        return Vec::new();
    };
    let is_one = |item: &SelectItem| {
        matches!(
            item,
            SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
        )
    };
    if !select.projection.iter().all(is_one) {
        return Vec::new();
    }
    let is_computed = |place: &usize| match select.projection.get(*place) {
        Some(SelectItem::UnnamedExpr(value)) => {
            !matches!(value, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        }
        _ => false,
    };
    let places = keys.iter().filter_map(|key| place(&key.expr));
    places.filter(is_computed).collect()
}

/// The place that a key is, from 0 on.
fn place(key: &Expr) -> Option<usize> {
    let Expr::Value(value) = key else {
        return None;
    };
    match &value.value {
        Value::Number(number, _) => number.parse::<usize>().ok()?.checked_sub(1),
        _ => None,
    }
}
