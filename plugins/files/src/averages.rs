//! `avg`, as it is: what spans of time add up to outgrows 64 bits, where DataFusion's own begins anew. Of all else it is DataFusion's.
//!
//! Start reading at [`avg`].

use crate::errors;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, UInt64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result as Planned;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature,
};
use std::sync::Arc;

/// Digits that a total has.
const DIGITS: u8 = 38;

/// The function that stands in place of DataFusion's of this name.
pub fn avg() -> AggregateUDF {
    AggregateUDF::from(Avg {
        signature: avg_udaf().signature().clone(),
        aliases: avg_udaf().aliases().to_vec(),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Avg {
    signature: Signature,
    aliases: Vec<String>,
}

/// Whether it is done here. What is counted once DataFusion refuses.
fn is_own(average: &DataType, is_distinct: bool) -> bool {
    matches!(average, DataType::Duration(_)) && !is_distinct
}

impl AggregateUDFImpl for Avg {
    fn name(&self) -> &str {
        "avg"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Planned<DataType> {
        avg_udaf().return_type(kinds)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Planned<Box<dyn Accumulator>> {
        let kind = args.return_type().clone();
        match is_own(&kind, args.is_distinct) {
            true => Ok(Box::new(Average {
                total: 0,
                rows: 0,
                kind,
            })),
            false => avg_udaf().accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        // One for each group is made of those for one.
        !is_own(args.return_type(), args.is_distinct)
            && avg_udaf().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Planned<Box<dyn GroupsAccumulator>> {
        avg_udaf().create_groups_accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Planned<Vec<FieldRef>> {
        if !is_own(args.return_type(), args.is_distinct) {
            return avg_udaf().state_fields(args);
        }
        let total = DataType::Decimal128(DIGITS, 0);
        let fields = [("count", DataType::UInt64), ("sum", total)];
        let fields = fields.map(|(part, kind)| {
            let name = format_state_name(args.name, part);
            Arc::new(Field::new(name, kind, true))
        });
        Ok(fields.into())
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

/// An average, from which rows that leave a window are taken again. No number of rows outgrows the total.
#[derive(Debug)]
struct Average {
    total: i128,
    rows: u64,
    kind: DataType,
}

/// The units of spans of time, and how many there are.
fn units(spans: &ArrayRef) -> Planned<(i128, u64)> {
    let units = cast(spans, &DataType::Int64)?;
    let units: &Int64Array = units.as_primitive();
    let total = units.iter().flatten().map(i128::from).sum();
    let rows = units.len() - units.null_count();
    Ok((total, rows as u64))
}

impl Accumulator for Average {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Planned<()> {
        let (total, rows) = units(&values[0])?;
        self.total += total;
        self.rows += rows;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Planned<()> {
        let (total, rows) = units(&values[0])?;
        self.total -= total;
        self.rows -= rows;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Planned<ScalarValue> {
        let average = match self.rows {
            0 => None,
            rows => Some(i64::try_from(self.total / i128::from(rows))),
        };
        let average = average.transpose();
        let average = average.map_err(|_| errors::through(errors::number_too_large()))?;
        ScalarValue::Int64(average).cast_to(&self.kind)
    }

    fn state(&mut self) -> Planned<Vec<ScalarValue>> {
        Ok(vec![
            ScalarValue::UInt64(Some(self.rows)),
            ScalarValue::Decimal128(Some(self.total), DIGITS, 0),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Planned<()> {
        let rows = states[0].as_primitive::<UInt64Type>();
        let totals = states[1].as_primitive::<Decimal128Type>();
        self.rows += rows.iter().flatten().sum::<u64>();
        self.total += totals.iter().flatten().sum::<i128>();
        Ok(())
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}
