//! Reference lists: what people choose from when they describe a company, a user, a connection or a product. Ids are stable for ever: an
//! entry may be added or renamed, its id is never given to another.

pub mod cloud_providers;
pub mod industries;

pub use cloud_providers::CLOUD_PROVIDERS;
pub use industries::INDUSTRIES;

/// Something to choose, with its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub id: i64,
    pub name: &'static str,
    /// In a sentence; empty where the name says it all.
    pub description: &'static str,
}

const fn choice(id: i64, name: &'static str, description: &'static str) -> Choice {
    Choice {
        id,
        name,
        description,
    }
}

/// Whether a list has an entry with this id.
pub fn is_choice(list: &[Choice], id: i64) -> bool {
    list.iter().any(|choice| choice.id == id)
}

/// What people do in their company.
pub const JOB_FUNCTIONS: &[Choice] = &[
    choice(1, "Executive management", ""),
    choice(2, "Strategy and business development", ""),
    choice(3, "Product management", ""),
    choice(4, "Project and programme management", ""),
    choice(5, "Data analysis", ""),
    choice(6, "Data science and machine learning", ""),
    choice(7, "Data engineering", ""),
    choice(8, "Data governance", ""),
    choice(9, "Software engineering", ""),
    choice(10, "IT operations and infrastructure", ""),
    choice(11, "Information security", ""),
    choice(12, "Research and development", ""),
    choice(13, "Design and user research", ""),
    choice(14, "Marketing", ""),
    choice(15, "Sales", ""),
    choice(16, "Customer service and success", ""),
    choice(17, "Finance and accounting", ""),
    choice(18, "Risk, audit and compliance", ""),
    choice(19, "Legal", ""),
    choice(20, "Human resources", ""),
    choice(21, "Procurement", ""),
    choice(22, "Supply chain and logistics", ""),
    choice(23, "Manufacturing and production", ""),
    choice(24, "Quality management", ""),
    choice(25, "Coaching and performance analysis", ""),
    choice(26, "Scouting and recruitment of players", ""),
    choice(27, "Medicine and health", ""),
    choice(28, "Journalism and publishing", ""),
    choice(29, "Education and training", ""),
    choice(30, "Public administration", ""),
    choice(99, "Other", ""),
];

/// What an asset's answers are used for.
pub const ASSET_USE_CASES: &[Choice] = &[
    choice(
        1,
        "Forecasting",
        "What a quantity will be: demand, attendance, revenue, scores.",
    ),
    choice(
        2,
        "Benchmarking",
        "How one team, player, product or company stands against others.",
    ),
    choice(
        3,
        "Performance measurement",
        "Key figures of a person, team or process over time.",
    ),
    choice(
        4,
        "Pricing",
        "What to ask or pay for a product, a ticket, a transfer or a contract.",
    ),
    choice(
        5,
        "Customer segmentation",
        "Groups of customers that behave alike.",
    ),
    choice(
        6,
        "Churn and retention",
        "Who is likely to leave, and who stays.",
    ),
    choice(
        7,
        "Customer lifetime value",
        "What a customer is worth over the whole relationship.",
    ),
    choice(
        8,
        "Marketing attribution",
        "Which activity led to which sale.",
    ),
    choice(9, "Recommendation", "What somebody may want next."),
    choice(
        10,
        "Fraud and anomaly detection",
        "What does not look like the rest.",
    ),
    choice(
        11,
        "Credit and counterparty risk",
        "Whether somebody will pay.",
    ),
    choice(
        12,
        "Odds and probabilities",
        "How likely an outcome of a match or event is.",
    ),
    choice(
        13,
        "Match analysis",
        "What happened in a match, and why it ended as it did.",
    ),
    choice(
        14,
        "Player evaluation and scouting",
        "Whom to watch, field or sign.",
    ),
    choice(
        15,
        "Injury and load management",
        "How much strain is healthy, and when to rest.",
    ),
    choice(
        16,
        "Fan and audience engagement",
        "What spectators and readers care about.",
    ),
    choice(
        17,
        "Sponsorship valuation",
        "What being seen is worth to a sponsor.",
    ),
    choice(
        18,
        "Inventory and replenishment",
        "How much to hold, and when to order.",
    ),
    choice(
        19,
        "Logistics and routing",
        "How to get things from one place to another.",
    ),
    choice(
        20,
        "Predictive maintenance",
        "Which machine will fail, and when to mend it.",
    ),
    choice(
        21,
        "Quality monitoring",
        "Whether what is made is as it should be.",
    ),
    choice(
        22,
        "Workforce planning",
        "How many people are needed, where and when.",
    ),
    choice(
        23,
        "Market research",
        "How large a market is, who is in it, and where it goes.",
    ),
    choice(
        24,
        "Investment research",
        "What informs the choice of an investment.",
    ),
    choice(
        25,
        "Sustainability reporting",
        "Emissions, energy and other figures that a report needs.",
    ),
    choice(
        26,
        "Regulatory reporting",
        "Figures in the form that an authority asks for.",
    ),
    choice(
        27,
        "Journalism and storytelling",
        "Facts and charts for articles and broadcasts.",
    ),
    choice(
        28,
        "Training of models",
        "Features and labels for machine learning, where the seller allows it.",
    ),
];
