//! `sum`, as it is: DataFusion's own begins anew where a total outgrows its type.
//!
//! Whole numbers, spans of time and decimals are added up in 128 bits, decimals of 256 bits in as many, and what is told has to be within the type
//! that a sum has. Intervals are added up in `intervals`; floats are DataFusion's affair.
//!
//! Start reading at [`sum`].

use crate::errors;
use crate::intervals;
use datafusion::arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BooleanArray, Decimal128Array,
    Decimal256Array, ListArray, PrimitiveArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, sum_checked};
use datafusion::arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Field,
    FieldRef, Int64Type, UInt64Type,
};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result as Planned};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

/// Digits that 128 bits hold, and 256.
const DIGITS: u8 = 38;
const WIDE_DIGITS: u8 = 76;
/// Digits that a sum has more than what is added up, as DataFusion has it.
const MORE_DIGITS: u8 = 10;

/// The function that stands in place of DataFusion's of this name.
pub fn sum() -> AggregateUDF {
    AggregateUDF::from(Sum {
        signature: sum_udaf().signature().clone(),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sum {
    signature: Signature,
}

/// What a sum of this type is added up as; `None` where it is not done here.
fn wide(sum: &DataType) -> Option<DataType> {
    match sum {
        DataType::Int64 | DataType::UInt64 | DataType::Duration(_) => {
            Some(DataType::Decimal128(DIGITS, 0))
        }
        DataType::Decimal128(_, scale) => Some(DataType::Decimal128(DIGITS, *scale)),
        DataType::Decimal256(_, scale) => Some(DataType::Decimal256(WIDE_DIGITS, *scale)),
        _ => None,
    }
}

impl AggregateUDFImpl for Sum {
    fn name(&self) -> &str {
        "sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Planned<DataType> {
        match kinds {
            [DataType::Decimal32(digits, scale) | DataType::Decimal64(digits, scale)] => {
                Ok(DataType::Decimal128(digits + MORE_DIGITS, *scale))
            }
            _ => sum_udaf().return_type(kinds),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Planned<Box<dyn Accumulator>> {
        let sum = args.return_type().clone();
        if let DataType::Interval(unit) = sum {
            return Ok(intervals::total(unit, args.is_distinct));
        }
        match (wide(&sum), args.is_distinct) {
            (None, _) => sum_udaf().accumulator(args),
            (Some(DataType::Decimal256(..)), false) => Total::<Decimal256Type>::boxed(sum),
            (Some(DataType::Decimal256(..)), true) => Distinct::<Decimal256Type>::boxed(sum),
            (Some(_), false) => Total::<Decimal128Type>::boxed(sum),
            (Some(_), true) => Distinct::<Decimal128Type>::boxed(sum),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Planned<Box<dyn Accumulator>> {
        match (wide(args.return_type()), args.return_type()) {
            (Some(_), _) | (None, DataType::Interval(_)) => self.accumulator(args),
            (None, _) => sum_udaf().create_sliding_accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        match wide(args.return_type()) {
            None => sum_udaf().groups_accumulator_supported(args),
            Some(_) => !args.is_distinct,
        }
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Planned<Box<dyn GroupsAccumulator>> {
        let sum = args.return_type().clone();
        if let DataType::Interval(unit) = sum {
            return Ok(intervals::groups(unit));
        }
        match wide(&sum) {
            None => sum_udaf().create_groups_accumulator(args),
            Some(DataType::Decimal256(..)) => Groups::<Decimal256Type>::boxed(sum),
            Some(_) => Groups::<Decimal128Type>::boxed(sum),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Planned<Vec<FieldRef>> {
        let Some(wide) = wide(args.return_type()) else {
            return sum_udaf().state_fields(args);
        };
        let field = match args.is_distinct {
            true => Field::new_list(
                format_state_name(args.name, "sum distinct"),
                Field::new_list_field(wide, true),
                false,
            ),
            false => Field::new(format_state_name(args.name, "sum"), wide, true),
        };
        Ok(vec![Arc::new(field)])
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// What is added up in so many bits.
trait Wide: DecimalType + Debug + Sized {
    /// The numbers that are added up, or totals of some of them.
    fn numbers(array: &ArrayRef) -> Planned<PrimitiveArray<Self>>;

    /// Totals as values of the sum's type.
    fn told(totals: PrimitiveArray<Self>, sum: &DataType) -> Planned<ArrayRef>;
}

impl Wide for Decimal128Type {
    fn numbers(array: &ArrayRef) -> Planned<Decimal128Array> {
        Ok(match array.data_type() {
            DataType::Int64 => array
                .as_primitive::<Int64Type>()
                .unary::<_, Decimal128Type>(i128::from),
            DataType::UInt64 => array
                .as_primitive::<UInt64Type>()
                .unary::<_, Decimal128Type>(i128::from),
            DataType::Decimal32(..) => array
                .as_primitive::<Decimal32Type>()
                .unary::<_, Decimal128Type>(i128::from),
            DataType::Decimal64(..) => array
                .as_primitive::<Decimal64Type>()
                .unary::<_, Decimal128Type>(i128::from),
            DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().clone(),
            DataType::Duration(_) => {
                let units = cast(array, &DataType::Int64)?;
                units
                    .as_primitive::<Int64Type>()
                    .unary::<_, Decimal128Type>(i128::from)
            }
            other => return Err(not_added_up(other)),
        })
    }

    fn told(totals: Decimal128Array, sum: &DataType) -> Planned<ArrayRef> {
        Ok(match sum {
            DataType::Int64 => Arc::new(within::<Int64Type>(&totals)?),
            DataType::UInt64 => Arc::new(within::<UInt64Type>(&totals)?),
            DataType::Duration(_) => cast(&within::<Int64Type>(&totals)?, sum)?,
            _ => Arc::new(totals.with_data_type(sum.clone())),
        })
    }
}

impl Wide for Decimal256Type {
    fn numbers(array: &ArrayRef) -> Planned<Decimal256Array> {
        match array.data_type() {
            DataType::Decimal256(..) => Ok(array.as_primitive::<Decimal256Type>().clone()),
            other => Err(not_added_up(other)),
        }
    }

    fn told(totals: Decimal256Array, sum: &DataType) -> Planned<ArrayRef> {
        Ok(Arc::new(totals.with_data_type(sum.clone())))
    }
}

fn within<T: ArrowPrimitiveType>(totals: &Decimal128Array) -> Planned<PrimitiveArray<T>>
where
    T::Native: TryFrom<i128>,
{
    totals.try_unary(|total| {
        T::Native::try_from(total).map_err(|_| errors::through(errors::number_too_large()))
    })
}

fn not_added_up(kind: &DataType) -> DataFusionError {
    DataFusionError::Internal(format!("{kind} is not added up here"))
}

/// Totals, as many of them as `are_there`.
fn array<W: Wide>(
    totals: Vec<W::Native>,
    are_there: Vec<bool>,
    sum: &DataType,
) -> PrimitiveArray<W> {
    let totals = PrimitiveArray::<W>::new(totals.into(), Some(are_there.into()));
    totals.with_data_type(kept_as::<W>(sum))
}

/// [`wide`], of what is added up here.
fn kept_as<W: Wide>(sum: &DataType) -> DataType {
    wide(sum).unwrap_or(W::DEFAULT_TYPE)
}

/// One total, from which rows that leave a window are taken again.
#[derive(Debug)]
struct Total<W: Wide> {
    total: W::Native,
    rows: usize,
    sum: DataType,
}

impl<W: Wide> Total<W> {
    fn boxed(sum: DataType) -> Planned<Box<dyn Accumulator>> {
        Ok(Box::new(Total::<W> {
            total: W::Native::default(),
            rows: 0,
            sum,
        }))
    }

    fn array(&self) -> PrimitiveArray<W> {
        array(vec![self.total], vec![self.rows > 0], &self.sum)
    }
}

impl<W: Wide> Accumulator for Total<W> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Planned<()> {
        let numbers = W::numbers(&values[0])?;
        if let Some(more) = sum_checked(&numbers)? {
            self.total = self.total.add_checked(more)?;
        }
        self.rows += numbers.len() - numbers.null_count();
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Planned<()> {
        let numbers = W::numbers(&values[0])?;
        if let Some(less) = sum_checked(&numbers)? {
            self.total = self.total.sub_checked(less)?;
        }
        self.rows -= numbers.len() - numbers.null_count();
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Planned<ScalarValue> {
        ScalarValue::try_from_array(&W::told(self.array(), &self.sum)?, 0)
    }

    fn state(&mut self) -> Planned<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::try_from_array(&self.array(), 0)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Planned<()> {
        self.update_batch(states)
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// The total of numbers that are counted once, however often they are there.
#[derive(Debug)]
struct Distinct<W: Wide> {
    rows: HashMap<W::Native, usize>,
    total: W::Native,
    sum: DataType,
}

impl<W: Wide> Distinct<W>
where
    W::Native: Eq + Hash,
{
    fn boxed(sum: DataType) -> Planned<Box<dyn Accumulator>> {
        Ok(Box::new(Distinct::<W> {
            rows: HashMap::new(),
            total: W::Native::default(),
            sum,
        }))
    }
}

impl<W: Wide> Accumulator for Distinct<W>
where
    W::Native: Eq + Hash,
{
    fn update_batch(&mut self, values: &[ArrayRef]) -> Planned<()> {
        for number in W::numbers(&values[0])?.iter().flatten() {
            let rows = self.rows.entry(number).or_default();
            if *rows == 0 {
                self.total = self.total.add_checked(number)?;
            }
            *rows += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Planned<()> {
        for number in W::numbers(&values[0])?.iter().flatten() {
            let Some(rows) = self.rows.get_mut(&number) else {
                continue;
            };
            *rows -= 1;
            if *rows == 0 {
                self.rows.remove(&number);
                self.total = self.total.sub_checked(number)?;
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Planned<ScalarValue> {
        let is_there = !self.rows.is_empty();
        let total = array::<W>(vec![self.total], vec![is_there], &self.sum);
        ScalarValue::try_from_array(&W::told(total, &self.sum)?, 0)
    }

    fn state(&mut self) -> Planned<Vec<ScalarValue>> {
        let kind = kept_as::<W>(&self.sum);
        let numbers = PrimitiveArray::<W>::from_iter_values(self.rows.keys().copied());
        let numbers = numbers.with_data_type(kind.clone());
        let ends = OffsetBuffer::from_lengths([numbers.len()]);
        let field = Arc::new(Field::new_list_field(kind, true));
        let list = ListArray::new(field, ends, Arc::new(numbers), None);
        Ok(vec![ScalarValue::List(Arc::new(list))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Planned<()> {
        for numbers in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[numbers])?;
        }
        Ok(())
    }

    fn size(&self) -> usize {
        let entry = size_of::<(W::Native, usize)>() + 1;
        size_of::<Self>() + self.rows.capacity() * entry
    }
}

/// A total for each group.
struct Groups<W: Wide> {
    totals: Vec<W::Native>,
    are_there: Vec<bool>,
    sum: DataType,
}

impl<W: Wide> Groups<W> {
    fn boxed(sum: DataType) -> Planned<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups::<W> {
            totals: Vec::new(),
            are_there: Vec::new(),
            sum,
        }))
    }

    fn add(&mut self, group: usize, number: W::Native) -> Planned<()> {
        let total = &mut self.totals[group];
        *total = total.add_checked(number)?;
        self.are_there[group] = true;
        Ok(())
    }

    fn take(&mut self, groups: EmitTo) -> PrimitiveArray<W> {
        let totals = groups.take_needed(&mut self.totals);
        let are_there = groups.take_needed(&mut self.are_there);
        array(totals, are_there, &self.sum)
    }
}

/// Whether a row is one of those that are added up.
fn counts(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl<W: Wide> GroupsAccumulator for Groups<W> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Planned<()> {
        self.totals.resize(total_groups, W::Native::default());
        self.are_there.resize(total_groups, false);
        let numbers = W::numbers(&values[0])?;
        if numbers.null_count() == 0 && filter.is_none() {
            for (number, group) in numbers.values().iter().zip(groups) {
                self.add(*group, *number)?;
            }
            return Ok(());
        }
        for (row, group) in groups.iter().enumerate() {
            if numbers.is_valid(row) && counts(filter, row) {
                self.add(*group, numbers.value(row))?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, groups: EmitTo) -> Planned<ArrayRef> {
        W::told(self.take(groups), &self.sum)
    }

    fn state(&mut self, groups: EmitTo) -> Planned<Vec<ArrayRef>> {
        Ok(vec![Arc::new(self.take(groups))])
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        total_groups: usize,
    ) -> Planned<()> {
        self.update_batch(states, groups, None, total_groups)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Planned<Vec<ArrayRef>> {
        let numbers = W::numbers(&values[0])?;
        let rows = 0..numbers.len();
        let are_there = rows.map(|row| numbers.is_valid(row) && counts(filter, row));
        let are_there: Vec<bool> = are_there.collect();
        let state = array::<W>(numbers.values().to_vec(), are_there, &self.sum);
        Ok(vec![Arc::new(state)])
    }

    fn size(&self) -> usize {
        self.totals.capacity() * size_of::<W::Native>() + self.are_there.capacity()
    }
}
