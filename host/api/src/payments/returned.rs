use crate::{Access, Operation};

pub const OPERATION: Operation = Operation::get("payment_returned", "/payments/return")
    .about(
        "Credits",
        "Where a payer's browser ends, unless the top-up said otherwise",
    )
    .access(Access::Public);

/// Claims nothing: only the provider's event says whether the payment came.
pub async fn payment_returned() -> &'static str {
    "You can close this page. If you have paid, the credits are in the balance as soon as the payment is confirmed.\n"
}
