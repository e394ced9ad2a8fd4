//! Floats as PostgreSQL has them in order: one zero, and one that is no number, which is greater than all that are.
//!
//! DataFusion compares a zero with a sign as the one without, and sorts it before that one, so that rows between two pages are lost; and what
//! is no number it sorts before all numbers where it has a sign, as what processors make of `0 / 0` has. Here there is neither, from reading
//! on: a table's floats, those in lists, structures and maps, too, are leveled above its scan, and `exact` levels what is computed.
//!
//! Start reading at [`as_read`] and [`leveled`].

use datafusion::arrow::array::{
    Array, ArrayData, ArrayRef, ArrowPrimitiveType, AsArray, make_array,
};
use datafusion::arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, ScalarValue};
use datafusion::error::Result as Planned;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use std::sync::Arc;

type Half = <Float16Type as ArrowPrimitiveType>::Native;

/// The plan with the floats of its tables as `level` makes them. What a column is called stays.
pub fn as_read(plan: LogicalPlan, level: impl Fn(Expr) -> Expr) -> Planned<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = &node else {
            return Ok(Transformed::no(node));
        };
        let schema = scan.projected_schema.clone();
        if !schema
            .iter()
            .any(|(_, field)| has_floats(field.data_type()))
        {
            return Ok(Transformed::no(node));
        }
        let columns = schema.iter().map(|(table, field)| {
            let column = Expr::Column(Column::from((table, field)));
            match has_floats(field.data_type()) {
                true => level(column).alias_qualified(table.cloned(), field.name()),
                false => column,
            }
        });
        let columns = Projection::try_new(columns.collect(), Arc::new(node))?;
        Ok(Transformed::yes(LogicalPlan::Projection(columns)))
    })
    .data()
}

/// Whether values of this type are floats, or lists, structures or maps of some.
pub fn has_floats(kind: &DataType) -> bool {
    match kind {
        DataType::List(of)
        | DataType::LargeList(of)
        | DataType::ListView(of)
        | DataType::LargeListView(of)
        | DataType::FixedSizeList(of, _)
        | DataType::Map(of, _) => has_floats(of.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        _ => kind.is_floating(),
    }
}

/// The same floats without the sign of a zero, and of what is no number.
pub fn leveled(floats: &ArrayRef) -> Planned<ArrayRef> {
    Ok(match floats.data_type() {
        DataType::Float16 => Arc::new(
            floats
                .as_primitive::<Float16Type>()
                .unary::<_, Float16Type>(half),
        ),
        DataType::Float32 => Arc::new(
            floats
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(single),
        ),
        DataType::Float64 => Arc::new(
            floats
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(double),
        ),
        kind if has_floats(kind) => nested(floats)?,
        _ => floats.clone(),
    })
}

/// The same lists, structures or maps, of leveled floats.
fn nested(array: &ArrayRef) -> Planned<ArrayRef> {
    let data = array.to_data();
    let parts = data.child_data().iter();
    let parts = parts.map(|part| Ok(leveled(&make_array(part.clone()))?.to_data()));
    let parts: Vec<ArrayData> = parts.collect::<Planned<_>>()?;
    Ok(make_array(data.into_builder().child_data(parts).build()?))
}

/// The same of one that is written down or bound; `None` where it is so already.
pub fn leveled_value(value: &ScalarValue) -> Option<ScalarValue> {
    match value {
        ScalarValue::Float16(Some(float)) => {
            let level = half(*float);
            (level.to_bits() != float.to_bits()).then_some(ScalarValue::Float16(Some(level)))
        }
        ScalarValue::Float32(Some(float)) => {
            let level = single(*float);
            (level.to_bits() != float.to_bits()).then_some(ScalarValue::Float32(Some(level)))
        }
        ScalarValue::Float64(Some(float)) => {
            let level = double(*float);
            (level.to_bits() != float.to_bits()).then_some(ScalarValue::Float64(Some(level)))
        }
        _ => None,
    }
}

fn half(float: Half) -> Half {
    Half::from_f32(single(float.to_f32()))
}

fn single(float: f32) -> f32 {
    match float.is_nan() {
        true => f32::NAN,
        // The sum of zeros of both signs has none.
        false => float + 0.0,
    }
}

fn double(float: f64) -> f64 {
    match float.is_nan() {
        true => f64::NAN,
        false => float + 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_and_what_is_no_number_have_no_sign() {
        let doubles = [-0.0, 0.0, -f64::NAN, f64::NAN, -1.5, f64::NEG_INFINITY];
        let wanted = [0.0, 0.0, f64::NAN, f64::NAN, -1.5, f64::NEG_INFINITY];
        for (float, wanted) in doubles.into_iter().zip(wanted) {
            assert_eq!(double(float).to_bits(), wanted.to_bits(), "{float}");
            let (float, wanted) = (float as f32, wanted as f32);
            assert_eq!(single(float).to_bits(), wanted.to_bits(), "{float}");
            let (float, wanted) = (Half::from_f32(float), Half::from_f32(wanted));
            assert_eq!(half(float).to_bits(), wanted.to_bits(), "{float}");
        }
        assert_eq!(half(Half::from_bits(1)).to_bits(), 1);
    }
}
