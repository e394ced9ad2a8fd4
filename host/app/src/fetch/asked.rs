//! A page that is asked of a source: its shape, the values that are bound, and where it begins.

use sha2::{Digest, Sha256};
use souk_domain::ids::CompanyId;
use souk_domain::pages::Page;
use souk_domain::sql::{After, Operator, Slot, Window};
use souk_sandbox::Value;
use souk_store::sealing::Owner;

use super::cursor::Position;
use crate::App;
use crate::binding::Named;
use crate::failure::Cause;
use crate::products::{Chosen, EndpointSnapshot, Learned, Shape};

/// A page as JSON stays well below what a client can parse at once.
pub(super) const PAGE_BYTES_MAX: u64 = 16 << 20;
/// Three numbers and a filter or two. Nothing but a first size.
const MEANT_BYTES: usize = 128;

/// A page of an endpoint that may be asked for.
pub struct Asked<'a> {
    pub page: Page,
    pub(super) shape: Shape,
    /// Of the filters, in their order.
    pub(super) values: Vec<Value>,
    /// Where the page begins.
    pub(super) from: Position,
    /// What a cursor goes on with, beside the order.
    pub(super) used: Vec<Used<'a>>,
}

/// A filter that is used, before its values are read.
pub(super) struct Used<'a> {
    /// As the source is asked: `eq` may be several texts there.
    pub chosen: Chosen,
    /// As the caller asked.
    pub operator: Operator,
    /// As the caller wrote it.
    pub name: &'a str,
    pub text: &'a str,
}

impl Asked<'_> {
    /// The first page as the source gives it.
    pub fn first(limit: u32, learned: Option<&Learned>) -> Asked<'static> {
        let mut asked = Asked {
            page: Page { start: 0, limit },
            shape: Shape {
                fields: None,
                conditions: Box::default(),
                sort: None,
                after: None,
                is_learned: learned.is_some(),
                window: Window::Bound,
            },
            values: Vec::new(),
            from: Position::of_start(0),
            used: Vec::new(),
        };
        asked.begin_at(Position::of_start(0));
        asked
    }

    /// The same, from another place on.
    pub(super) fn begin_at(&mut self, position: Position) {
        self.page.start = position.start;
        self.shape.after = position.after.as_ref().map(|(keys, ties)| After {
            nulls: keys
                .iter()
                .map(|key| matches!(key, Value::Null(_)))
                .collect(),
            ties: *ties > 0,
        });
        self.shape.window = match position.offset() {
            0 => Window::First(self.page.fetch()),
            _ => Window::Bound,
        };
        self.from = position;
    }

    /// What is bound at the places of a statement.
    pub(super) fn bound(&self, slots: &[Slot]) -> Vec<Value> {
        let rows = i64::from(self.page.fetch());
        let offset = i64::try_from(self.from.offset()).unwrap_or(i64::MAX - rows);
        let keys = self.from.after.as_ref().map_or(&[][..], |(keys, _)| keys);
        let value = |slot: &Slot| match slot {
            Slot::Value(place) => self.values.get(*place).cloned(),
            Slot::Key(place) => keys.get(*place).cloned(),
            Slot::Rows => Some(Value::Int64(rows)),
            Slot::Offset => Some(Value::Int64(offset)),
            Slot::Reach => Some(Value::Int64(rows + offset)),
        };
        slots
            .iter()
            .map(|slot| value(slot).unwrap_or(Value::Null(None)))
            .collect()
    }

    /// Whether anything of the caller's is bound.
    pub(super) fn has_values(&self) -> bool {
        !self.values.is_empty()
    }

    /// The filter whose value is bound at this place of a statement, as the caller wrote it.
    pub(super) fn filter_at(&self, slots: &[Slot], place: usize) -> Option<Named> {
        let Slot::Value(value) = *slots.get(place)? else {
            return None;
        };
        let mut end = 0;
        let used = self.used.iter().find(|used| {
            end += used.chosen.values;
            value < end
        })?;
        Some(Named {
            told: format!("filter \"{}\"", used.name),
            field: used.name.to_owned(),
        })
    }

    /// A digest of the filters and the order, with which alone a cursor leads on.
    pub(super) fn goes_on_with(
        &self,
        endpoint: &EndpointSnapshot,
        learned: Option<&Learned>,
    ) -> String {
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        };
        for order in endpoint.order(learned, self.shape.sort) {
            part(order.field);
            part(if order.descending { "desc" } else { "asc" });
        }
        self.each_filter(endpoint, part);
        hex::encode(&hash.finalize()[..8])
    }

    /// The filters as the caller asked for them, part by part.
    fn each_filter(&self, endpoint: &EndpointSnapshot, mut part: impl FnMut(&str)) {
        for used in &self.used {
            part(&endpoint.plan.filters[used.chosen.filter].field);
            part(used.operator.word());
            part(used.text);
        }
    }

    /// What stands for rows of this digest where this company is told of them. It is of what was asked as well: who has paid for a row could ask by it, for
    /// nothing, which filters the row passes, or which place it has in an order.
    pub(super) fn mark(
        &self,
        app: &App,
        endpoint: &EndpointSnapshot,
        company: &CompanyId,
        digest: u64,
    ) -> Result<u64, Cause> {
        let mut meant = Vec::with_capacity(MEANT_BYTES);
        let sort = self.shape.sort.map_or(0, |place| place as u64 + 1);
        for number in [digest, self.page.start, sort] {
            meant.extend_from_slice(&number.to_be_bytes());
        }
        self.each_filter(endpoint, |part| {
            meant.extend_from_slice(&(part.len() as u64).to_be_bytes());
            meant.extend_from_slice(part.as_bytes());
        });
        let owner = Owner::of(company, endpoint.row.id.as_str());
        app.sealer
            .mark(owner, &meant)
            .map_err(|error| Cause::Internal(format!("rows cannot be marked: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value that the source refuses is told as the filter that it belongs to, whichever of its values it is. What is no filter's is nobody's.
    #[test]
    fn a_bound_value_is_told_by_its_filter() {
        let used = |operator, name: &'static str, values| Used {
            chosen: Chosen {
                filter: 0,
                operator,
                values,
            },
            operator,
            name,
            text: "",
        };
        let mut asked = Asked::first(1, None);
        asked.used = vec![
            used(Operator::Eq, "status", 1),
            used(Operator::In, "filters[id][in]", 4),
            used(Operator::Gte, "day[gte]", 1),
        ];
        // The order of a statement is its own, and one with several parts binds a value for each.
        let slots = [
            Slot::Value(5),
            Slot::Key(0),
            Slot::Value(1),
            Slot::Value(4),
            Slot::Value(0),
            Slot::Value(5),
            Slot::Rows,
        ];
        let told = |place| asked.filter_at(&slots, place).map(|named| named.field);
        let fields: Vec<Option<String>> = (0..=slots.len()).map(told).collect();
        let fields: Vec<Option<&str>> = fields.iter().map(Option::as_deref).collect();
        let (list, day) = (Some("filters[id][in]"), Some("day[gte]"));
        assert_eq!(
            fields,
            [day, None, list, list, Some("status"), day, None, None]
        );
    }
}
