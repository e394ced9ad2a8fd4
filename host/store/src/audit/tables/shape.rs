//! What the list says of a table and of each of its columns.

/// How a column is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    AsIs,
    /// Microseconds, shown as an instant.
    Time,
    /// 0 or 1, shown as a boolean.
    Flag,
    /// Text that is JSON.
    Json,
    /// Only that it is there, and that it changed.
    Secret,
    /// Not at all: nobody decides it, or others show it. A change of nothing else leaves no line.
    Not,
}

/// A table whose rows are audited.
pub struct Table {
    pub name: &'static str,
    /// What its rows are called.
    pub subject: &'static str,
    /// Which row it is, as SQL; `{}` is the row.
    pub id: &'static str,
    /// Whose row it is, as SQL that may be NULL: then it is the company that was acted in.
    pub company: &'static str,
    /// False: rows come and go with something else, and only changes are of interest.
    pub whole: bool,
    pub columns: &'static [(&'static str, Shown)],
}

pub(super) const fn table(
    name: &'static str,
    subject: &'static str,
    columns: &'static [(&'static str, Shown)],
) -> Table {
    Table {
        name,
        subject,
        id: "{}.id",
        company: "{}.company_id",
        whole: true,
        columns,
    }
}
