//! What Arrow's reader takes on trust: where blocks and buffers lie, how large they say that they are, and types that there are not. It would
//! end the connector over any of them, so that all are looked at first.

use super::COLUMNS_MAX;
use crate::errors;
use crate::slice::Slice;
use datafusion::arrow::buffer::{Buffer, MutableBuffer};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::ipc::{
    self, Block, Endianness, Footer, Message, MessageHeader, RecordBatch, root_as_footer,
    root_as_message,
};
use souk_sdk::Error;

/// One batch as it lies in the file, and what it unpacks to; and the same of all dictionaries.
pub const BLOCK_BYTES_MAX: u64 = 96 << 20;
/// A footer: columns, and a place of each batch.
const FOOTER_BYTES_MAX: u64 = 8 << 20;
/// Its length and the mark.
const TAIL_BYTES: u64 = 10;
/// Columns and what is in them.
const FIELDS_MAX: usize = 2 * COLUMNS_MAX;
const ROWS_MAX: i64 = i32::MAX as i64;

/// The bytes of a file's footer.
pub fn footer(slice: &Slice) -> Result<Buffer, Error> {
    let end = slice.len().checked_sub(TAIL_BYTES);
    let end = end.ok_or_else(|| errors::unreadable(std::io::ErrorKind::UnexpectedEof.into()))?;
    let tail = slice.bytes(end..slice.len()).map_err(errors::unreadable)?;
    let length = match tail.split_first_chunk() {
        Some((length, b"ARROW1")) => u32::from_le_bytes(*length),
        _ => return Err(broken("it does not end as an Arrow file does")),
    };
    let start = end.checked_sub(length.into());
    let start = start.ok_or_else(|| broken("its footer is longer than the file"))?;
    if end - start > FOOTER_BYTES_MAX {
        return Err(errors::broken(
            "footer_too_large",
            "the file's footer has more than 8 MiB: write larger batches",
        ));
    }
    aligned(slice, start, end - start)
}

/// A footer that says a schema which the reader can have.
pub fn parsed(bytes: &[u8]) -> Result<(Footer<'_>, Schema), Error> {
    let footer = root_as_footer(bytes).map_err(|error| broken(&error.to_string()))?;
    let schema = footer.schema();
    let schema = schema.ok_or_else(|| broken("its footer has no schema"))?;
    if schema.endianness() != Endianness::Little {
        return Err(broken(
            "its numbers are of a machine that is not known here",
        ));
    }
    let mut left = FIELDS_MAX;
    for field in schema.fields().into_iter().flatten() {
        field_is_known(&field, &mut left).ok_or_else(|| match left {
            0 => errors::broken(
                "too_many_columns",
                format!("the file has more than {COLUMNS_MAX} columns"),
            ),
            _ => errors::broken(
                "type_unknown",
                "the file has a column of a type that is not known here, like a union",
            )
            .detail(field.name().unwrap_or_default()),
        })?;
    }
    if schema.fields().is_none() {
        return Err(broken("its schema has no columns"));
    }
    Ok((footer, ipc::convert::fb_to_schema(schema)))
}

/// The bytes of a block, if they are in the file and no more than are left.
pub fn block(slice: &Slice, block: &Block, left: &mut u64) -> Result<Buffer, Error> {
    let outside = || broken("its footer says that a batch lies outside of the file");
    let number = |number: i64| u64::try_from(number).map_err(|_| outside());
    let (start, body) = (number(block.offset())?, number(block.bodyLength())?);
    let length = body.checked_add(number(block.metaDataLength().into())?);
    let length = length.ok_or_else(outside)?;
    let end = start.checked_add(length).ok_or_else(outside)?;
    if end > slice.len() {
        return Err(outside());
    }
    spend(left, length)?;
    aligned(slice, start, length)
}

fn spend(left: &mut u64, bytes: u64) -> Result<(), Error> {
    *left = left.checked_sub(bytes).ok_or_else(|| {
        errors::broken(
            "batch_too_large",
            "a batch of the file, or its dictionaries, have more than 96 MiB: write smaller batches",
        )
    })?;
    Ok(())
}

fn aligned(slice: &Slice, start: u64, length: u64) -> Result<Buffer, Error> {
    let length = usize::try_from(length).map_err(|_| broken("it says a length that is none"))?;
    let mut bytes = MutableBuffer::from_len_zeroed(length);
    slice.fill(start, &mut bytes).map_err(errors::unreadable)?;
    Ok(bytes.into())
}

/// Looks at a block of rows before the reader does.
pub fn check_rows(
    schema: &Schema,
    block: &Block,
    bytes: &[u8],
    left: &mut u64,
) -> Result<(), Error> {
    let (message, body) = message(block, bytes)?;
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        _ => None,
    };
    let batch = batch.ok_or_else(|| broken("a batch of it is none"))?;
    let kinds: Vec<&DataType> = schema
        .fields()
        .iter()
        .map(|field| field.data_type())
        .collect();
    check(&kinds, &batch, body, left)
}

/// The same for the values of a dictionary.
pub fn check_dictionary(
    schema: &Schema,
    block: &Block,
    bytes: &[u8],
    left: &mut u64,
) -> Result<(), Error> {
    let (message, body) = message(block, bytes)?;
    let dictionary = match message.header_type() {
        MessageHeader::DictionaryBatch => message.header_as_dictionary_batch(),
        _ => None,
    };
    let dictionary = dictionary.ok_or_else(|| broken("a dictionary of it is none"))?;
    // The reader goes by these numbers too.
    #[expect(deprecated)]
    let fields = schema.fields_with_dict_id(dictionary.id());
    let values = match fields.first().map(|field| field.data_type()) {
        Some(DataType::Dictionary(_, values)) => values,
        _ => return Err(broken("a dictionary of it is that of no column")),
    };
    let batch = dictionary.data();
    let batch = batch.ok_or_else(|| broken("a dictionary of it has no values"))?;
    check(&[values], &batch, body, left)
}

fn message<'a>(block: &Block, bytes: &'a [u8]) -> Result<(Message<'a>, &'a [u8]), Error> {
    let head = usize::try_from(block.metaDataLength()).unwrap_or_default();
    let (Some(mark), Some(body)) = (bytes.first_chunk::<4>(), bytes.get(head..)) else {
        return Err(broken("a batch of it has no head"));
    };
    // As the reader does it: older files have no mark.
    let start = if *mark == [0xff; 4] { 8 } else { 4 };
    let bytes = bytes.get(start..).unwrap_or_default();
    let message = root_as_message(bytes).map_err(|error| broken(&error.to_string()))?;
    Ok((message, body))
}

fn check(
    kinds: &[&DataType],
    batch: &RecordBatch<'_>,
    body: &[u8],
    left: &mut u64,
) -> Result<(), Error> {
    let mut walk = Walk {
        nodes: batch.nodes().into_iter().flatten().map(of_node).collect(),
        buffers: batch
            .buffers()
            .into_iter()
            .flatten()
            .map(of_buffer)
            .collect(),
        views: batch.variadicBufferCounts().into_iter().flatten().collect(),
        is_packed: batch.compression().is_some(),
        body,
        unpacked: 0,
    };
    // The reader takes the first of each.
    walk.nodes.reverse();
    walk.buffers.reverse();
    walk.views.reverse();
    let wrong = || broken("a batch of it says something that it does not have");
    for kind in kinds {
        match walk.array(kind) {
            Some(rows) if rows == batch.length() => {}
            _ => return Err(wrong()),
        }
    }
    if !walk.views.is_empty() {
        return Err(wrong());
    }
    spend(left, walk.unpacked)
}

fn of_node(node: &ipc::FieldNode) -> (i64, i64) {
    (node.length(), node.null_count())
}

fn of_buffer(buffer: &ipc::Buffer) -> (i64, i64) {
    (buffer.offset(), buffer.length())
}

/// Goes through a batch as the reader does; what is there next stands last.
struct Walk<'a> {
    /// Rows, and how many of them are NULL.
    nodes: Vec<(i64, i64)>,
    /// Where it begins, and its length.
    buffers: Vec<(i64, i64)>,
    /// How many buffers a column of views has.
    views: Vec<i64>,
    is_packed: bool,
    body: &'a [u8],
    unpacked: u64,
}

impl Walk<'_> {
    /// How many rows an array has, if all of it is there.
    fn array(&mut self, kind: &DataType) -> Option<i64> {
        let (rows, nulls) = self.nodes.pop()?;
        if !(0..=ROWS_MAX).contains(&rows) || !(0..=rows).contains(&nulls) {
            return None;
        }
        match kind {
            DataType::Null | DataType::RunEndEncoded(..) => {}
            _ => {
                let bits = self.buffer()?;
                if nulls > 0 && bits < (rows as u64).div_ceil(8) {
                    return None;
                }
            }
        }
        match kind {
            DataType::Null => {}
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
                self.buffers(2)?;
            }
            DataType::Utf8View | DataType::BinaryView => {
                let count = self.views.pop().filter(|count| *count >= 0)?;
                self.buffers(count.checked_add(1)?)?;
            }
            DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => {
                self.buffers(1)?;
                self.array(field.data_type())?;
            }
            DataType::ListView(field) | DataType::LargeListView(field) => {
                self.buffers(2)?;
                self.array(field.data_type())?;
            }
            DataType::FixedSizeList(field, _) => {
                self.array(field.data_type())?;
            }
            DataType::Struct(fields) => {
                for field in fields {
                    self.array(field.data_type())?;
                }
            }
            DataType::RunEndEncoded(ends, values) => {
                self.array(ends.data_type())?;
                self.array(values.data_type())?;
            }
            DataType::Union(..) => return None,
            _ => self.buffers(1)?,
        }
        Some(rows)
    }

    fn buffers(&mut self, count: i64) -> Option<()> {
        (0..count).try_for_each(|_| self.buffer().map(|_| ()))
    }

    /// How many bytes the next buffer has, unpacked.
    fn buffer(&mut self) -> Option<u64> {
        let (start, length) = self.buffers.pop()?;
        let (start, length) = (usize::try_from(start).ok()?, usize::try_from(length).ok()?);
        let bytes = self.body.get(start..start.checked_add(length)?)?;
        if bytes.is_empty() || !self.is_packed {
            return Some(length as u64);
        }
        let (unpacked, rest) = bytes.split_first_chunk()?;
        match i64::from_le_bytes(*unpacked) {
            -1 => Some(rest.len() as u64),
            unpacked => {
                let unpacked = u64::try_from(unpacked).ok()?;
                self.unpacked = self.unpacked.checked_add(unpacked)?;
                Some(unpacked)
            }
        }
    }
}

/// Whether the reader knows such a column, and all that is in it.
fn field_is_known(field: &ipc::Field<'_>, left: &mut usize) -> Option<()> {
    *left = left.checked_sub(1)?;
    field.name()?;
    if let Some(dictionary) = field.dictionary() {
        is_width(dictionary.indexType()?.bitWidth())?;
    }
    let children: Vec<ipc::Field<'_>> = field.children().into_iter().flatten().collect();
    type_is_known(field, &children)?;
    let mut pairs = field.custom_metadata().into_iter().flatten();
    pairs.try_for_each(|pair| pair.key().and(pair.value()).map(|_| ()))?;
    children
        .iter()
        .try_for_each(|child| field_is_known(child, left))
}

fn type_is_known(field: &ipc::Field<'_>, children: &[ipc::Field<'_>]) -> Option<()> {
    use ipc::{DateUnit, IntervalUnit, Precision, TimeUnit, Type};
    let units = TimeUnit::SECOND..=TimeUnit::NANOSECOND;
    let known = match field.type_type() {
        Type::Null | Type::Bool | Type::Binary | Type::BinaryView | Type::LargeBinary => true,
        Type::Utf8 | Type::Utf8View | Type::LargeUtf8 | Type::Struct_ => true,
        Type::Int => return is_width(field.type_as_int()?.bitWidth()),
        Type::FixedSizeBinary => field.type_as_fixed_size_binary()?.byteWidth() > 0,
        Type::FloatingPoint => (Precision::HALF..=Precision::DOUBLE)
            .contains(&field.type_as_floating_point()?.precision()),
        Type::Date => {
            (DateUnit::DAY..=DateUnit::MILLISECOND).contains(&field.type_as_date()?.unit())
        }
        Type::Time => {
            let time = field.type_as_time()?;
            match time.bitWidth() {
                32 => (TimeUnit::SECOND..=TimeUnit::MILLISECOND).contains(&time.unit()),
                64 => (TimeUnit::MICROSECOND..=TimeUnit::NANOSECOND).contains(&time.unit()),
                _ => false,
            }
        }
        Type::Timestamp => units.contains(&field.type_as_timestamp()?.unit()),
        Type::Interval => (IntervalUnit::YEAR_MONTH..=IntervalUnit::MONTH_DAY_NANO)
            .contains(&field.type_as_interval()?.unit()),
        Type::Duration => units.contains(&field.type_as_duration()?.unit()),
        Type::List | Type::LargeList | Type::ListView | Type::LargeListView => children.len() == 1,
        Type::FixedSizeList => {
            children.len() == 1 && field.type_as_fixed_size_list()?.listSize() >= 0
        }
        Type::Map => {
            field.type_as_map()?;
            let entries = children.first()?;
            let parts = entries.children().map_or(0, |parts| parts.len());
            children.len() == 1 && entries.type_type() == Type::Struct_ && parts == 2
        }
        Type::RunEndEncoded => {
            let ends = children.first()?;
            let is_end = ends
                .type_as_int()
                .is_some_and(|ends| ends.is_signed() && [16, 32, 64].contains(&ends.bitWidth()));
            children.len() == 2 && is_end && ends.dictionary().is_none()
        }
        Type::Decimal => {
            let decimal = field.type_as_decimal()?;
            let digits = match decimal.bitWidth() {
                32 => 9,
                64 => 18,
                128 => 38,
                256 => 76,
                _ => return None,
            };
            let (precision, scale) = (decimal.precision(), decimal.scale());
            (1..=digits).contains(&precision) && (-digits..=precision).contains(&scale)
        }
        // Unions, and what comes later.
        _ => false,
    };
    known.then_some(())
}

fn is_width(bits: i32) -> Option<()> {
    [8, 16, 32, 64].contains(&bits).then_some(())
}

fn broken(what: &str) -> Error {
    errors::broken(
        "file_broken",
        "the file is damaged, or not what its name says",
    )
    .detail(what)
}
