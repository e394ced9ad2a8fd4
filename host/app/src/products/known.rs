//! Filters and orders that a source can never do, as far as that is known without asking it: by what tests have learnt of the same table
//! or statement, this endpoint's or another one's of its company. What nobody has learnt is left to the next test, which asks the source.

use souk_domain::fields::{FieldError, FieldErrors};
use souk_domain::ids::{CompanyId, EndpointId};
use souk_store::AnyConnection;
use souk_store::products::{EndpointDetails, Row, Written, learned};

use super::endpoint::{Learned, LearnedColumn, has_same_source};
use super::snapshot::{read, unreadable};
use crate::definition::{self, Filter, Sort, Sorting};
use crate::failure::Cause;

/// What `written` asks of its source in vain. `before`: the endpoint as it is, if it is there already.
pub async fn impossible(
    db: &mut AnyConnection,
    company: &CompanyId,
    id: &EndpointId,
    written: &Written<EndpointDetails>,
    before: Option<&Row<EndpointId>>,
) -> Result<Vec<FieldError>, Cause> {
    let details = &written.details;
    let before = before.filter(|before| has_same_source(&before.written, written));
    let mut choices = Choices::of(details)?;
    if let Some(before) = before {
        choices.leave_out(&Choices::of(&before.written.details)?);
    }
    if choices.are_none() {
        return Ok(Vec::new());
    }
    let others = learned::of_others(db, company, id, &written.connection_id, details).await?;
    let others = others.iter();
    let known = Known {
        own: before.and_then(Learned::stored),
        others: others
            .filter_map(|text| serde_json::from_str(text).ok())
            .collect(),
    };
    Ok(known.refused(&choices))
}

/// What callers may choose, and the order that rows come in, each with where it stands.
struct Choices {
    filters: Vec<(String, Filter)>,
    order_by: Vec<(String, Sorting)>,
    sorts: Vec<(String, Sort)>,
}

impl Choices {
    fn of(details: &EndpointDetails) -> Result<Choices, Cause> {
        let filters = definition::filters(&read(&details.filters)?);
        let order_by = definition::order_by(&read(&details.order_by)?);
        let sorts = definition::sorts(&read(&details.sorts)?);
        Ok(Choices {
            filters: placed("filters", filters.map_err(|_| unreadable("filters"))?),
            order_by: placed("order_by", order_by.map_err(|_| unreadable("order_by"))?),
            sorts: placed("sorts", sorts.map_err(|_| unreadable("sorts"))?),
        })
    }

    /// What stands there already is the next test's business: a change of something else is not held up by it.
    fn leave_out(&mut self, before: &Choices) {
        leave_out(&mut self.filters, &before.filters);
        leave_out(&mut self.order_by, &before.order_by);
        leave_out(&mut self.sorts, &before.sorts);
    }

    fn are_none(&self) -> bool {
        self.filters.is_empty() && self.order_by.is_empty() && self.sorts.is_empty()
    }

    /// Whatever rows are sorted by, with where it stands.
    fn sortings(&self) -> Vec<(String, &Sorting)> {
        let own = self.order_by.iter();
        let mut all: Vec<(String, &Sorting)> =
            own.map(|(at, sorting)| (at.clone(), sorting)).collect();
        for (at, sort) in &self.sorts {
            let places = sort.order_by.iter().enumerate();
            all.extend(places.map(|(place, sorting)| (format!("{at}.order_by[{place}]"), sorting)));
        }
        all
    }
}

fn placed<T>(member: &str, all: Vec<T>) -> Vec<(String, T)> {
    let all = all.into_iter().enumerate();
    all.map(|(place, one)| (format!("{member}[{place}]"), one))
        .collect()
}

fn leave_out<T: PartialEq>(all: &mut Vec<(String, T)>, before: &[(String, T)]) {
    all.retain(|(_, one)| before.iter().all(|(_, other)| other != one));
}

/// What tests have learnt of one source.
struct Known {
    /// Of this endpoint.
    own: Option<Learned>,
    others: Vec<Learned>,
}

impl Known {
    /// A column as its own test has found it, else as those of others have if they agree on its type. If they do not, the source has
    /// changed in between, and nobody knows what it is now.
    fn column(&self, name: &str) -> Vec<&LearnedColumn> {
        if let Some(column) = self.own.as_ref().and_then(|own| own.column(name)) {
            return vec![column];
        }
        let others = self.others.iter();
        let all: Vec<&LearnedColumn> = others.filter_map(|other| other.column(name)).collect();
        match all.windows(2).all(|two| two[0].is_of_type_of(two[1])) {
            true => all,
            false => Vec::new(),
        }
    }

    fn refused(&self, choices: &Choices) -> Vec<FieldError> {
        let mut errors = FieldErrors::default();
        for (at, filter) in &choices.filters {
            let known = self.column(&filter.field);
            let mut known = known.into_iter();
            let refused = known.find_map(|column| {
                let how = column.refuses(&filter.operators)?;
                Some((column, how))
            });
            if let Some((column, how)) = refused {
                let cannot = format!("compared with a value{}", how.by());
                errors.add(at, "unsupported", told(column, &cannot, "filters"));
            }
        }
        for (field, sorting) in choices.sortings() {
            let known = self.column(&sorting.field);
            if let Some(column) = known.into_iter().find(|column| column.not_sorted) {
                errors.add(field, "unsupported", told(column, "sorted by", "the order"));
            }
        }
        errors.into_vec()
    }
}

fn told(column: &LearnedColumn, cannot: &str, member: &str) -> String {
    format!(
        "\"{}\" is {}, which cannot be {cannot}: leave it out of {member}, or sell a text, a number or a time that a CAST in sql_logic makes of \
         it. So a test has found it; if the source has changed since, test an endpoint that has it among its fields, and save again",
        column.name,
        column.type_name()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use souk_domain::sql::Operator;

    use super::*;

    /// The columns as `name: [kind, native]`.
    fn learned(columns: Value) -> Learned {
        let columns = columns.as_object().unwrap().iter();
        let column = |(name, of): (&String, &Value)| LearnedColumn {
            name: name.clone(),
            kind: of[0].as_str().unwrap().to_owned(),
            native: of[1].as_str().unwrap().to_owned(),
            ..LearnedColumn::default()
        };
        Learned {
            columns: columns.map(column).collect(),
            ..Learned::default()
        }
    }

    /// Where something is refused.
    fn refused(known: &Known, filters: Value, order_by: Value, sorts: Value) -> Vec<String> {
        named(known, &choices(&filters, &order_by, &sorts))
    }

    fn choices(filters: &Value, order_by: &Value, sorts: &Value) -> Choices {
        Choices {
            filters: placed("filters", definition::filters(filters).unwrap()),
            order_by: placed("order_by", definition::order_by(order_by).unwrap()),
            sorts: placed("sorts", definition::sorts(sorts).unwrap()),
        }
    }

    fn named(known: &Known, choices: &Choices) -> Vec<String> {
        let errors = known.refused(choices).into_iter();
        errors.map(|error| error.field).collect()
    }

    /// Documents, lists and bytes are no filters, whatever the operators; what is not known is left to the test, and so is every order of them.
    #[test]
    fn what_is_known_to_be_no_value_is_refused() {
        let known = Known {
            own: Some(learned(
                json!({"doc": ["json", "jsonb"], "raw": ["bytes", "bytea"], "id": ["int64", "int4"]}),
            )),
            others: Vec::new(),
        };
        let filters = json!(["id", "doc", "new", {"field": "raw", "operators": ["gte", "lt"]}]);
        let sorts = json!([{"name": "odd", "order_by": ["doc"]}]);
        assert_eq!(
            refused(&known, filters, json!(["id", "raw"]), sorts),
            ["filters[1]", "filters[3]"]
        );
    }

    /// Only texts begin with something, and true and false have no order: the operator that never works is named.
    #[test]
    fn what_no_value_is_compared_by_is_refused() {
        let columns = json!({"goals": ["int64", "int4"], "fee": ["decimal", "numeric"], "day": ["date", "date"], "won": ["boolean", "bool"], "team": ["text", "text"]});
        let known = Known {
            own: Some(learned(columns)),
            others: Vec::new(),
        };
        let by = |field: &str, operators: Value| json!({"field": field, "operators": operators});
        let works = json!([
            by("goals", json!(["eq", "gt", "in"])),
            by("day", json!(["gte", "lt"])),
            by("won", json!(["eq", "in"])),
            by("team", json!(["gte", "like"])),
            by("unknown", json!(["like"])),
        ]);
        assert!(refused(&known, works, json!([]), json!([])).is_empty());
        let never = json!([
            by("goals", json!(["eq", "like"])),
            by("fee", json!(["like"])),
            by("day", json!(["like", "lt"])),
            by("won", json!(["eq", "gte", "lt", "like"])),
        ]);
        let errors = known.refused(&choices(&never, &json!([]), &json!([])));
        let messages = errors.into_iter().map(|error| error.message);
        let messages: Vec<String> = messages.collect();
        let told = |at: usize, begins: &str| {
            assert!(messages[at].starts_with(begins), "{}", messages[at]);
        };
        let cannot = "which cannot be compared with a value by";
        told(0, &format!("\"goals\" is int4, {cannot} like: leave"));
        told(1, &format!("\"fee\" is numeric, {cannot} like: leave"));
        told(2, &format!("\"day\" is date, {cannot} like: leave"));
        told(
            3,
            &format!("\"won\" is bool, {cannot} gte, lt, like: leave"),
        );
        assert_eq!(messages.len(), 4);
    }

    /// What a trial has refused is refused again where at least the same is asked for; everything that is wrong is named.
    #[test]
    fn what_a_trial_has_refused_is_not_tried_again() {
        let mut own = learned(json!({"serial": ["text", "uuid"], "pair": ["text", "pair"]}));
        own.note_refusal("serial", Some(&[Operator::Eq, Operator::Like]));
        own.note_refusal("pair", None);
        own.note_refusal("nowhere", None);
        let known = Known {
            own: Some(own),
            others: Vec::new(),
        };
        let by = |operators: Value| json!([{"field": "serial", "operators": operators}]);
        for (operators, is_refused) in [
            (json!(["eq"]), false),
            (json!(["like", "lt"]), false),
            (json!(["like", "eq"]), true),
            (json!(["like", "eq", "in"]), true),
        ] {
            let told = refused(&known, by(operators.clone()), json!([]), json!([]));
            assert_eq!(!told.is_empty(), is_refused, "{operators}");
        }
        let sorts = json!([{"name": "a", "order_by": ["serial"]}, {"name": "b", "order_by": ["serial", "-pair"]}]);
        assert_eq!(
            refused(&known, by(json!(["like", "eq"])), json!(["pair"]), sorts),
            ["filters[0]", "order_by[0]", "sorts[1].order_by[1]"]
        );
    }

    /// What stands there already holds up no change beside it, wherever it has moved; what comes along, and what has become of it, is refused.
    #[test]
    fn what_stands_there_already_is_left_to_the_test() {
        let mut own = learned(
            json!({"doc": ["json", "json"], "raw": ["bytes", "blob"], "pair": ["text", "pair"], "id": ["int64", "int4"]}),
        );
        own.note_refusal("pair", None);
        let known = Known {
            own: Some(own),
            others: Vec::new(),
        };
        let odd = json!({"name": "odd", "order_by": ["pair"]});
        let before = || choices(&json!(["doc"]), &json!(["pair"]), &json!([odd]));
        let after = |filters: Value, order_by: Value, sorts: Value| {
            let mut after = choices(&filters, &order_by, &sorts);
            after.leave_out(&before());
            named(&known, &after)
        };
        assert_eq!(named(&known, &before()).len(), 3);
        let moved = after(json!(["id", "doc"]), json!(["id", "pair"]), json!([odd]));
        assert!(moved.is_empty(), "{moved:?}");
        let more = json!({"name": "more", "order_by": ["pair"]});
        let doc = json!({"field": "doc", "operators": ["gte"]});
        assert_eq!(
            after(json!(["raw", doc]), json!(["-pair"]), json!([odd, more])),
            [
                "filters[0]",
                "filters[1]",
                "order_by[0]",
                "sorts[1].order_by[0]"
            ]
        );
    }

    /// The endpoint's own test goes before those of others, and others that contradict each other are not believed.
    #[test]
    fn others_are_believed_where_they_agree() {
        let (doc, text) = (
            learned(json!({"c": ["json", "json"]})),
            learned(json!({"c": ["text", "text"]})),
        );
        let refuses = |own: Option<&Learned>, others: &[&Learned]| {
            let known = Known {
                own: own.cloned(),
                others: others.iter().map(|other| (*other).clone()).collect(),
            };
            !refused(&known, json!(["c"]), json!([]), json!([])).is_empty()
        };
        assert!(refuses(None, &[&doc]) && refuses(None, &[&doc, &doc]));
        assert!(refuses(Some(&doc), &[&text]));
        assert!(!refuses(Some(&text), &[&doc]));
        assert!(!refuses(None, &[&doc, &text]) && !refuses(None, &[]));
        // Of a column that its own test did not see, others may know.
        assert!(refuses(
            Some(&learned(json!({"id": ["int64", "int4"]}))),
            &[&doc]
        ));
    }
}
