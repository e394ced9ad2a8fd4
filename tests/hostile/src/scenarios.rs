//! Who does what to the host, and which answers are right. The matches have no catch-all: a guest, a lie or a damage that nobody tests does
//! not compile.

use crate::bombs::Bomb;
use crate::files::Damage;
use crate::guests::{self, Guest};
use crate::servers::{HttpLie, Lie, PostgresLie, TcpLie};

/// One behaviour of one company.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    pub source: Source,
    pub ask: Ask,
    /// The product's own deadline.
    pub timeout_ms: u32,
    /// Every one of these is a right answer.
    pub right: &'static [Outcome],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A hostile guest, and the server that it is connected to.
    Guest(Guest, Component, Lie),
    /// The bundled connector for PostgreSQL, and the server that lies to it.
    Postgres(Lie),
    /// The bundled connector for sellers' APIs.
    SellerApi(Lie),
    /// The bundled connector for SQLite.
    File(Damage),
    /// The connector `files`, where it is there.
    Bomb(Bomb),
    Work(Work),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    Tcp,
    Http,
    Files,
}

impl Component {
    pub fn wasm(self) -> &'static [u8] {
        match self {
            Component::Tcp => guests::HOSTILE_TCP,
            Component::Http => guests::HOSTILE_HTTP,
            Component::Files => guests::HOSTILE_FILES,
        }
    }

    pub fn engine(self) -> &'static str {
        match self {
            Component::Tcp => "hostile-tcp",
            Component::Http => "hostile-http",
            Component::Files => "hostile-files",
        }
    }
}

/// What is not hostile, but much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A join of about 60 ms in an uploaded SQLite file.
    Joins,
    /// A forecast over some thousand values of such a file.
    Forecasts,
    /// The catalog of a file with two thousand tables.
    Catalogues,
    /// Connectors that take seconds to compile, each time another one.
    Uploads,
    /// Requests that only the host answers.
    Requests,
    /// Requests with keys that nobody has.
    UnknownKeys,
    /// Bodies of 900 KiB that are no request.
    LargeBodies,
}

impl Work {
    pub const ALL: &[Work] = &[
        Work::Joins,
        Work::Forecasts,
        Work::Catalogues,
        Work::Uploads,
        Work::Requests,
        Work::UnknownKeys,
        Work::LargeBodies,
    ];
}

/// How the host is brought to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Executing an asset.
    Asset,
    /// A page of an endpoint.
    Page,
    /// The connection's schema.
    Catalogue,
    /// Whatever the work itself is.
    Itself,
}

/// A status, a code and a blame. An empty word is any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub status: u16,
    pub code: &'static str,
    pub blame: &'static str,
}

const fn outcome(status: u16, code: &'static str, blame: &'static str) -> Outcome {
    Outcome {
        status,
        code,
        blame,
    }
}

pub const FINE: Outcome = outcome(200, "", "");
pub const CONNECTOR: Outcome = outcome(502, "CONNECTOR_FAULT", "connector");
pub const SOURCE: Outcome = outcome(502, "SOURCE_ERROR", "source");
pub const BUSY: Outcome = outcome(429, "SOURCE_RATE_LIMITED", "source");
pub const SELLER: Outcome = outcome(502, "SELLER_API_ERROR", "source");
/// The host's own copy of a file is not what it was.
pub const LOST: Outcome = outcome(503, "CONNECTOR_UNAVAILABLE", "host");
pub const LATE: Outcome = outcome(504, "EXECUTION_TIMEOUT", "");

const BROKEN: &[Outcome] = &[CONNECTOR];
const STUCK: &[Outcome] = &[CONNECTOR, LATE];
const TOO_MUCH: &[Outcome] = &[SOURCE, CONNECTOR];
const BOUNDED: &[Outcome] = &[FINE, SOURCE, CONNECTOR];
const HARMLESS: &[Outcome] = &[FINE];

/// Enough for an answer on a loaded machine.
const PATIENT_MS: u32 = 8_000;
/// For what computes in the sandbox of a host that is not optimised.
const BOMB_MS: u32 = 20_000;
/// For those that never answer.
pub const HASTY_MS: u32 = 1_000;

/// Every scenario of the short form, most dangerous guests first.
pub fn all() -> Vec<Scenario> {
    let mut all: Vec<Scenario> = Guest::ALL.iter().map(|guest| of_guest(*guest)).collect();
    // What a guest on a directory does runs in another way in the host than what one on a wire does.
    let elsewhere = [
        Guest::LoopsInQuery,
        Guest::LoopsInOpen,
        Guest::EatsMemoryAtOnce,
        Guest::TrapsAtOnce,
        Guest::TooManyRows,
        Guest::Honest,
    ];
    all.extend(elsewhere.map(|guest| Scenario {
        name: format!("{} (files)", guest.name()),
        source: Source::Guest(guest, Component::Files, Lie::Tcp(TcpLie::Silent)),
        ..of_guest(guest)
    }));
    all.extend(Lie::all().flat_map(of_lie));
    all.extend(Damage::ALL.iter().map(|damage| of_damage(*damage)));
    all.extend(Work::ALL.iter().map(|work| of_work(*work)));
    all
}

/// What the short form does where the connector `files` is given.
pub fn of_bombs() -> Vec<Scenario> {
    Bomb::ALL.iter().map(|bomb| of_bomb(*bomb)).collect()
}

/// What the command measures unless it is told more: the guests, the work, and the lies that never end.
pub fn is_measured(scenario: &Scenario) -> bool {
    match scenario.source {
        Source::Guest(..) | Source::Work(_) => true,
        Source::Postgres(Lie::Tcp(lie)) => lie == TcpLie::GarbageForEver,
        Source::Postgres(Lie::Postgres(lie)) => matches!(
            lie,
            PostgresLie::ParameterStatusForEver
                | PostgresLie::ParameterStatusInsteadOfRows
                | PostgresLie::RowsForEver
                | PostgresLie::HugeErrorForEver
        ),
        Source::SellerApi(Lie::Http(lie)) => matches!(
            lie,
            HttpLie::HeadersForEver | HttpLie::TinyChunksForEver | HttpLie::HugeBody
        ),
        Source::File(damage) => matches!(damage, Damage::ViewBomb | Damage::LargeValue),
        Source::Postgres(_) | Source::SellerApi(_) | Source::Bomb(_) => false,
    }
}

/// Honest work keeps its processors: the bounds of the issue differ for it.
pub fn is_honest(scenario: &Scenario) -> bool {
    match scenario.source {
        Source::Work(_) => true,
        Source::Guest(guest, ..) => matches!(guest, Guest::Honest | Guest::HonestComputing),
        _ => scenario.right == HARMLESS,
    }
}

fn of_guest(guest: Guest) -> Scenario {
    use Component::{Files, Http, Tcp};
    const NOBODY: Lie = Lie::Tcp(TcpLie::Silent);
    const ECHO: Lie = Lie::Tcp(TcpLie::Echoes);
    const DEAF: Lie = Lie::Tcp(TcpLie::NeverReads);
    const API: Lie = Lie::Http(HttpLie::Honest);
    const SLOW_API: Lie = Lie::Http(HttpLie::Late);
    let (component, peer, right) = match guest {
        Guest::Honest | Guest::TrapsOnDrop => (Http, API, HARMLESS),
        Guest::HonestComputing => (Files, NOBODY, HARMLESS),
        Guest::LoopsInQuery | Guest::LoopsInOpen | Guest::LoopsInStart => (Http, API, STUCK),
        Guest::LoopsInSchema => (Http, API, STUCK),
        Guest::LoopsInCancel | Guest::TrapsInCancel => (Http, API, STUCK),
        Guest::LoopsInReceive => (Tcp, ECHO, STUCK),
        Guest::PlaysPingPong | Guest::ComputesWhileReceiving => (Tcp, ECHO, STUCK),
        Guest::NeverDone => (Http, API, BROKEN),
        Guest::WaitsForEver => (Http, API, &[LATE][..]),
        Guest::NeverReady => (Tcp, NOBODY, STUCK),
        Guest::RequestsForEver => (Http, API, STUCK),
        Guest::FloodsSends => (Tcp, DEAF, STUCK),
        Guest::FloodsAsides | Guest::FloodsErrands => (Tcp, NOBODY, BOUNDED),
        // The row comes when the errand has failed as it should.
        Guest::ErrandsOfErrands | Guest::ErrandsThatLoop => (Tcp, NOBODY, HARMLESS),
        Guest::ErrandsThatNeverEnd => (Tcp, NOBODY, HARMLESS),
        Guest::PausesForEver => (Http, API, &[LATE][..]),
        Guest::PausesInStart => (Tcp, NOBODY, STUCK),
        Guest::FloodsPauses => (Http, API, BROKEN),
        // Before any of them is answered.
        Guest::FloodsRequests | Guest::FloodsRequestsInOpen => (Http, SLOW_API, BROKEN),
        Guest::RecursesForEver
        | Guest::EatsMemoryAtOnce
        | Guest::EatsMemoryInOpen
        | Guest::TrapsAtOnce
        | Guest::TrapsAfterAWhile
        | Guest::TrapsInOpen
        | Guest::PanicsWithALongMessage
        | Guest::ExitsTheProcess => (Http, API, BROKEN),
        Guest::WritesToTheLog | Guest::PrintsInPieces => (Http, API, STUCK),
        Guest::EatsMemorySlowly | Guest::HoldsMemory => (Http, API, HARMLESS),
        // Of what is granted a wire, since that begins on a worker.
        Guest::FillsMemory => (Tcp, NOBODY, HARMLESS),
        Guest::TooManyRows | Guest::TooManyColumns | Guest::TooManyBytes => (Http, API, TOO_MUCH),
        Guest::TinyBatches | Guest::LongDecimals => (Http, API, TOO_MUCH),
        Guest::LargeValues | Guest::EmptyBatches => (Http, API, BOUNDED),
        Guest::LongColumnNames | Guest::NewShapesEveryTime => (Http, API, BOUNDED),
        Guest::LargeCatalogue => (Http, API, BOUNDED),
        Guest::DeepJson | Guest::InvalidUtf8 | Guest::MalformedDecimals => (Http, API, TOO_MUCH),
        Guest::LiesAboutRows | Guest::LiesAboutLengths | Guest::LiesAboutAlignment => {
            (Http, API, BROKEN)
        }
        Guest::FloodsEvents | Guest::UnknownIds | Guest::ReadyTwice => (Http, API, BROKEN),
        // The first end is the answer; the second one ends the session.
        Guest::DoneTwice => (Http, API, BOUNDED),
        // The host tries again on another wire, for as long as the caller waits.
        Guest::ClosesAtOnce => (Tcp, ECHO, &[SOURCE, CONNECTOR, LATE][..]),
        Guest::StartsTlsLate => (Tcp, ECHO, BROKEN),
        Guest::LargeErrors => (Http, API, &[SOURCE][..]),
        Guest::RetriesInACentury => (Http, API, &[BUSY][..]),
        Guest::LargeSessionErrors | Guest::GrowsResources => (Http, API, BROKEN),
    };
    let never_answers = matches!(
        guest,
        Guest::LoopsInCancel
            | Guest::TrapsInCancel
            | Guest::PlaysPingPong
            | Guest::ComputesWhileReceiving
            | Guest::NeverReady
            | Guest::PausesForEver
            | Guest::WaitsForEver
            | Guest::PausesInStart
            | Guest::RequestsForEver
            | Guest::FloodsSends
            | Guest::LoopsInQuery
            | Guest::ClosesAtOnce
    );
    Scenario {
        name: guest.name().to_owned(),
        source: Source::Guest(guest, component, peer),
        ask: match guest {
            Guest::LoopsInSchema | Guest::LargeCatalogue => Ask::Catalogue,
            Guest::LargeValues => Ask::Page,
            _ => Ask::Asset,
        },
        timeout_ms: if never_answers { HASTY_MS } else { PATIENT_MS },
        right,
    }
}

/// A lie of TCP alone is told to both connectors that speak over a wire.
fn of_lie(lie: Lie) -> Vec<Scenario> {
    const MAY_BE_READ: &[Outcome] = &[FINE, SOURCE, LATE];
    const MAY_BE_TAKEN: &[Outcome] = &[FINE, SELLER, LATE];
    const MORE_THAN_GIVEN: &[Outcome] = &[SOURCE, outcome(400, "INVALID_PARAMETER", "caller")];
    let scenario = |source: Source, right| Scenario {
        name: format!("{source:?}"),
        source,
        ask: Ask::Asset,
        timeout_ms: if right == HARMLESS {
            PATIENT_MS
        } else {
            HASTY_MS
        },
        right,
    };
    let postgres = |right| scenario(Source::Postgres(lie), right);
    let seller = |right| scenario(Source::SellerApi(lie), right);
    match lie {
        Lie::Tcp(_) => vec![postgres(&[SOURCE, LATE]), seller(&[SELLER, LATE])],
        Lie::Postgres(told) => vec![postgres(match told {
            PostgresLie::Honest => HARMLESS,
            // The connector passes texts on as they are, and the host finds that they are none.
            PostgresLie::NullBytesInText => &[SOURCE, CONNECTOR],
            // More than were given, whoever asked.
            PostgresLie::ParametersByTheThousand => MORE_THAN_GIVEN,
            PostgresLie::UnknownTypes | PostgresLie::LongColumnNames => MAY_BE_READ,
            _ => &[SOURCE, LATE],
        })],
        Lie::Http(told) => vec![seller(match told {
            HttpLie::Honest | HttpLie::Late => HARMLESS,
            HttpLie::LongerThanAnnounced | HttpLie::TrailersForEver => MAY_BE_TAKEN,
            HttpLie::SaysRetryInACentury => &[BUSY],
            _ => &[SELLER, LATE],
        })],
    }
}

fn of_damage(damage: Damage) -> Scenario {
    const MAY_BE_READ: &[Outcome] = &[FINE, SOURCE, LATE];
    Scenario {
        name: format!("File({damage:?})"),
        source: Source::File(damage),
        ask: Ask::Asset,
        timeout_ms: match damage {
            Damage::ViewBomb | Damage::SchemaBomb => HASTY_MS,
            _ => PATIENT_MS,
        },
        right: match damage {
            Damage::None => HARMLESS,
            Damage::SchemaBomb
            | Damage::LargeValue
            | Damage::SprinkledBytes
            | Damage::WrongPageSize
            | Damage::PagesThatAreNotThere
            | Damage::WalWithoutWal
            | Damage::ValueThatIsNotThere
            | Damage::Empty => MAY_BE_READ,
            Damage::BecameAPipe
            | Damage::BecameALink
            | Damage::BecameADirectory
            | Damage::IsGone => &[LOST],
            _ => &[SOURCE, LATE],
        },
    }
}

fn of_bomb(bomb: Bomb) -> Scenario {
    const TOLD: &[Outcome] = &[SOURCE];
    // Where a machine is loaded nothing has to be done in time.
    const TOLD_OR_LATE: &[Outcome] = &[SOURCE, LATE];
    const ANSWERED: &[Outcome] = &[FINE, LATE];
    Scenario {
        name: format!("Bomb({bomb:?})"),
        source: Source::Bomb(bomb),
        ask: Ask::Asset,
        timeout_ms: match bomb {
            Bomb::RowsWithoutEnd | Bomb::MillionsOfNothing => HASTY_MS,
            _ => BOMB_MS,
        },
        right: match bomb {
            Bomb::None => HARMLESS,
            Bomb::LongFooter
            | Bomb::LengthsThatAreNotThere
            | Bomb::SharedBeginnings
            | Bomb::TooManyFiles
            | Bomb::ArchiveOfArchives
            | Bomb::LongNameInAnArchive
            | Bomb::EndlessLine
            | Bomb::EndlessQuote => TOLD,
            // Two of its tables are read, which are not large: all are when the connection is tested.
            Bomb::ManyFooters => &[FINE, SOURCE, LATE],
            Bomb::PutTogether | Bomb::GatheredInAList | Bomb::GroupsWithoutEnd => TOLD_OR_LATE,
            Bomb::LargePages
            | Bomb::OneTextInEachRow
            | Bomb::TinyFiles
            | Bomb::DeepJson
            | Bomb::LongNumbers
            | Bomb::ManyNames
            | Bomb::PutTogetherHonestly => ANSWERED,
            Bomb::RowsWithoutEnd => &[LATE],
            // A second or two on this machine.
            Bomb::MillionsOfNothing => ANSWERED,
            // What lists unfold to is held by the session's memory only: see the connector's README.
            Bomb::ListsOfOneText => &[FINE, SOURCE, CONNECTOR],
        },
    }
}

fn of_work(work: Work) -> Scenario {
    const REFUSED: &[Outcome] = &[outcome(400, "", ""), outcome(413, "", "")];
    const UNKNOWN: &[Outcome] = &[outcome(401, "", ""), outcome(429, "", "")];
    // A slow compiler on a loaded machine may be out of time.
    const COMPILED: &[Outcome] = &[
        outcome(201, "", ""),
        outcome(400, "", ""),
        outcome(409, "", ""),
        outcome(429, "", ""),
        outcome(503, "", ""),
    ];
    Scenario {
        name: format!("honest: {work:?}"),
        source: Source::Work(work),
        ask: match work {
            Work::Joins | Work::Forecasts => Ask::Asset,
            Work::Catalogues => Ask::Catalogue,
            _ => Ask::Itself,
        },
        timeout_ms: 20_000,
        right: match work {
            Work::UnknownKeys => UNKNOWN,
            Work::LargeBodies => REFUSED,
            Work::Uploads => COMPILED,
            _ => HARMLESS,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The issue wants forty behaviours; each is there once.
    #[test]
    fn there_are_more_than_forty_behaviours_and_no_name_twice() {
        let names: std::collections::BTreeSet<String> =
            all().into_iter().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), all().len());
        assert!(Guest::ALL.len() >= 40, "{}", Guest::ALL.len());
    }
}
