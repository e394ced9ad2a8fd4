//! Whether pages of an endpoint may ask for something after a change that they did not ask for before it, on the same source in the same
//! order. What is only taken away needs no word from the source.

use souk_store::products::EndpointDetails;

use super::snapshot::{read, unreadable};
use crate::definition::{self, Field, Filter, Sort};
use crate::failure::Cause;

/// Whether all fields, filters and sorts of `after` are among those of `before`, whatever they are called.
pub(super) fn no_more(before: &EndpointDetails, after: &EndpointDetails) -> bool {
    match (Asks::of(before), Asks::of(after)) {
        (Ok(before), Ok(after)) => before.covers(&after),
        _ => false,
    }
}

struct Asks {
    fields: Vec<Field>,
    filters: Vec<Filter>,
    sorts: Vec<Sort>,
}

impl Asks {
    fn of(details: &EndpointDetails) -> Result<Asks, Cause> {
        let fields = definition::fields(&read(&details.fields)?);
        let filters = definition::filters(&read(&details.filters)?);
        let sorts = definition::sorts(&read(&details.sorts)?);
        Ok(Asks {
            fields: fields.map_err(|_| unreadable("fields"))?,
            filters: filters.map_err(|_| unreadable("filters"))?,
            sorts: sorts.map_err(|_| unreadable("sorts"))?,
        })
    }

    fn covers(&self, other: &Asks) -> bool {
        let mut fields = other.fields.iter();
        let mut filters = other.filters.iter();
        let mut sorts = other.sorts.iter();
        fields.all(|field| self.has_field(field))
            && filters.all(|filter| self.has_filter(filter))
            && sorts.all(|sort| self.has_sort(sort))
    }

    fn has_field(&self, field: &Field) -> bool {
        self.fields.iter().any(|one| one.name == field.name)
    }

    fn has_filter(&self, filter: &Filter) -> bool {
        let mut same = self.filters.iter().filter(|one| one.field == filter.field);
        same.any(|one| {
            let mut operators = filter.operators.iter();
            operators.all(|operator| one.operators.contains(operator))
        })
    }

    fn has_sort(&self, sort: &Sort) -> bool {
        self.sorts.iter().any(|one| one.order_by == sort.order_by)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use souk_domain::ids::{AssetId, CompanyId, ConnectionId, EndpointId, UserId};
    use souk_domain::products::{AssetType, ProductStatus, ResultType, SourceKind};
    use souk_domain::time::Timestamp;
    use souk_store::products::{AssetDetails, Row, Written};

    use super::super::endpoint::{Learned, LearnedColumn};
    use super::super::snapshot::Sells;
    use super::*;

    fn endpoint(fields: Value, filters: Value, sorts: Value) -> EndpointDetails {
        EndpointDetails {
            source_schema: None,
            source_table: Some("matches".to_owned()),
            sql_logic: None,
            fields: fields.to_string(),
            order_by: json!(["id"]).to_string(),
            filters: filters.to_string(),
            sorts: sorts.to_string(),
            default_limit: 10,
            max_limit: 10,
        }
    }

    /// What is renamed or taken away asks for no more; a field, an operator, an order or another source does.
    #[test]
    fn an_endpoint_asks_for_more_where_something_comes_along() {
        let two = json!([{"name": "id"}, {"name": "team"}]);
        let ranges = json!([{"field": "id", "operators": ["eq", "gte"]}]);
        let newest = json!([{"name": "newest", "order_by": ["-id"]}]);
        let before = endpoint(two.clone(), ranges.clone(), newest.clone());
        let asks_no_more = |after: &EndpointDetails| EndpointId::asks_no_more(&before, after);
        let last = json!([{"name": "last", "order_by": ["-id"]}]);
        let first = json!([{"name": "newest", "order_by": ["id"]}]);
        for (fields, filters, sorts, expected) in [
            (two.clone(), ranges.clone(), newest.clone(), true),
            (
                json!([{"name": "team", "alias": "club"}]),
                json!(["id"]),
                last,
                true,
            ),
            (two.clone(), json!([]), json!([]), true),
            (
                json!([{"name": "goals"}]),
                ranges.clone(),
                newest.clone(),
                false,
            ),
            (two.clone(), json!(["team"]), newest.clone(), false),
            (
                two.clone(),
                json!([{"field": "id", "operators": ["lt"]}]),
                newest.clone(),
                false,
            ),
            (two.clone(), ranges.clone(), first, false),
        ] {
            let after = endpoint(fields, filters, sorts);
            assert_eq!(asks_no_more(&after), expected, "{after:?}");
        }
        let longer = EndpointDetails {
            max_limit: 1_000,
            ..before.clone()
        };
        assert!(asks_no_more(&longer));
        let other = EndpointDetails {
            source_table: Some("match".to_owned()),
            ..before.clone()
        };
        let sorted = EndpointDetails {
            order_by: json!(["-id"]).to_string(),
            ..before.clone()
        };
        assert!(!asks_no_more(&other) && !asks_no_more(&sorted));
    }

    /// A published endpoint, of which this is known.
    fn row(details: EndpointDetails, learned: &Learned) -> Row<EndpointId> {
        let at = Timestamp::from_micros(0);
        Row {
            id: EndpointId::generate(),
            company_id: CompanyId::generate(),
            company_handle: "acme".to_owned(),
            user_id: UserId::generate(),
            written: Written {
                connection_id: ConnectionId::generate(),
                name: "an endpoint".to_owned(),
                slug: "an-endpoint".to_owned(),
                description: String::new(),
                category: None,
                labels: "{}".to_owned(),
                timeout_ms: 1_000,
                allow_ai_training: false,
                details,
            },
            status: ProductStatus::Published,
            learned: serde_json::to_string(learned).ok(),
            sample: None,
            sampled_at: None,
            is_suspended: false,
            created_at: at,
            updated_at: at,
            published_at: None,
        }
    }

    /// Pages go on by what a publication has learnt where a change asks for no more; by what else is known of the source no page is read.
    #[test]
    fn what_was_learnt_holds_where_no_more_is_asked_for() {
        let column = |name: &str| LearnedColumn {
            name: name.to_owned(),
            kind: "int64".to_owned(),
            ..LearnedColumn::default()
        };
        let learned = |types_only: bool| Learned {
            columns: vec![column("id"), column("team")],
            key: vec!["id".to_owned()],
            types_only,
        };
        let two = json!([{"name": "id"}, {"name": "team"}]);
        let details = endpoint(two, json!(["id"]), json!([]));
        let less = endpoint(json!([{"name": "id", "alias": "no"}]), json!([]), json!([]));
        let more = endpoint(json!([{"name": "goals"}]), json!(["id"]), json!([]));
        let elsewhere = EndpointDetails {
            source_table: Some("match".to_owned()),
            ..details.clone()
        };
        for (known, after, expected) in [
            (false, &less, Some(false)),
            (false, &details, Some(false)),
            (false, &more, Some(true)),
            (true, &less, Some(true)),
            (false, &elsewhere, None),
        ] {
            let before = row(details.clone(), &learned(known));
            let written = Written {
                details: after.clone(),
                ..before.written.clone()
            };
            let left = EndpointId::still_learned(&before, &written);
            let left = left.map(|text| serde_json::from_str::<Learned>(&text).unwrap());
            assert_eq!(left, expected.map(learned), "{after:?}");
        }
    }

    /// Another unit, title or mark, and another number that must stand behind a result, ask for no more; another column or parameter does.
    #[test]
    fn an_asset_asks_for_more_where_something_else_is_read() {
        let privacy = |size: u32, column: &str| {
            Some(json!({"min_group_size": size, "privacy_unit_column": column}).to_string())
        };
        let before = AssetDetails {
            asset_type: AssetType::Calculation,
            sport: None,
            source_kind: SourceKind::Sql,
            source: "SELECT sum(goals), count(*) AS people FROM matches".to_owned(),
            parameters: "[]".to_owned(),
            result_type: ResultType::Number,
            unit: None,
            visualization: None,
            prediction: None,
            privacy: privacy(5, "people"),
            freshness_column: None,
        };
        let changed = |change: fn(&mut AssetDetails)| {
            let mut after = before.clone();
            change(&mut after);
            after
        };
        let strict = AssetDetails {
            privacy: privacy(1_000, "people"),
            ..before.clone()
        };
        for after in [
            changed(|after| after.unit = Some("goals".to_owned())),
            strict,
        ] {
            assert!(AssetId::asks_no_more(&before, &after), "{after:?}");
        }
        let chart = |visualization: Value| AssetDetails {
            asset_type: AssetType::Visualization,
            result_type: ResultType::Chart,
            visualization: Some(visualization.to_string()),
            ..before.clone()
        };
        let plain = chart(json!({"x": "team", "mark": "bar"}));
        for (visualization, expected) in [
            (
                json!({"x": "team", "mark": "line", "title": "Goals by team"}),
                true,
            ),
            (json!({"x": "club", "mark": "bar"}), false),
            (json!({"x": "team", "y": "goals"}), false),
            (json!({"x": "team", "series": "season"}), false),
            (json!({}), false),
        ] {
            let after = chart(visualization);
            assert_eq!(AssetId::asks_no_more(&plain, &after), expected, "{after:?}");
        }
        let counted = AssetDetails {
            privacy: privacy(5, "clubs"),
            ..before.clone()
        };
        for after in [
            changed(|after| after.source = "SELECT 1".to_owned()),
            changed(|after| after.result_type = ResultType::String),
            changed(|after| after.freshness_column = Some("at".to_owned())),
            changed(|after| after.privacy = None),
            changed(|after| {
                after.parameters = json!([{"name": "n", "type": "integer"}]).to_string()
            }),
            counted,
        ] {
            assert!(!AssetId::asks_no_more(&before, &after), "{after:?}");
        }
    }
}
