//! The short form of the proof: every guest, every lie and every damaged file once, with a neighbour that must not notice. Nothing here
//! asserts times (but that a deadline ends things at all); statuses, blame, money, memory, descriptors and sessions are asserted.
//!
//! `SOUK_HOSTILE_ONLY=word` runs only the scenarios whose name contains the word, `SOUK_HOSTILE_EXCEPT=one,other` leaves some out.

mod deeds;
mod log;
mod trial;

use souk_hostile::components::{DESCRIBES, marked, with_instances};
use souk_hostile::guests::{self, Guest};
use souk_hostile::scenarios::{self, Scenario, Source, Work};

use trial::Trial;

/// The scenarios of one kind.
fn scenarios(wanted: impl Fn(&Source) -> bool) -> Vec<Scenario> {
    let only = std::env::var("SOUK_HOSTILE_ONLY").unwrap_or_default();
    let mut all = scenarios::all();
    let except = std::env::var("SOUK_HOSTILE_EXCEPT").unwrap_or_default();
    let is_excepted = |name: &str| {
        let mut words = except.split(',').filter(|word| !word.is_empty());
        words.any(|word| name.contains(word))
    };
    all.retain(|scenario| wanted(&scenario.source) && scenario.name.contains(&only));
    all.retain(|scenario| !is_excepted(&scenario.name));
    // It computes until its time is over, which is shown by little of it as well.
    let loops = all
        .iter_mut()
        .filter(|scenario| matches!(scenario.source, Source::Guest(Guest::LoopsInOpen, ..)));
    loops.for_each(|scenario| scenario.timeout_ms = scenarios::HASTY_MS);
    // First what takes longest: the others run beside it.
    all.sort_by_key(|scenario| {
        let is_long = matches!(
            scenario.source,
            Source::Work(Work::Uploads) | Source::Guest(Guest::ErrandsThatNeverEnd, ..)
        );
        !is_long
    });
    all
}

/// Whatever a guest does, it is told apart, costs nobody anything, and its neighbour is served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_guest_hurts_its_neighbour() {
    let trial = Trial::start().await;
    for component in [
        guests::HOSTILE_TCP,
        guests::HOSTILE_HTTP,
        guests::HOSTILE_FILES,
    ] {
        trial.platform_connector(component).await;
    }
    let guests = |source: &Source| matches!(source, Source::Guest(..) | Source::Work(_));
    deeds::all_in_turn(&trial, scenarios(guests)).await;
    trial.end().await;
}

/// Whatever a source says to a bundled connector, it is the source's fault and no wait outlives its deadline.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_source_breaks_a_bundled_connector() {
    let trial = Trial::start().await;
    let lies = scenarios(|source| matches!(source, Source::Postgres(_) | Source::SellerApi(_)));
    deeds::all_in_turn(&trial, lies).await;
    trial.end().await;
}

/// The same for what stands in an uploaded file, or becomes of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_file_breaks_the_file_connector() {
    let trial = Trial::start().await;
    let files = scenarios(|source| matches!(source, Source::File(_)));
    deeds::all_in_turn(&trial, files).await;
    trial.end().await;
}

/// The same for files of other kinds, and what is asked of them: each alone, so that what it took of the machine is its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the connector `files`: tests/run --all-engines"]
async fn real_files_hurt_no_neighbour() {
    let path = std::env::var_os("SOUK_FILES_COMPONENT").expect("tests/run --all-engines");
    let wasm = std::fs::read(path).expect("the component");
    let trial = Trial::start().await;
    trial.platform_connector(&wasm).await;
    let only = std::env::var("SOUK_HOSTILE_ONLY").unwrap_or_default();
    let mut bombs = scenarios::of_bombs();
    bombs.retain(|scenario| scenario.name.contains(&only));
    deeds::one_by_one(&trial, bombs).await;
    trial.end().await;
}

/// A component that cannot say what it is never becomes a connector; one made of many instances hurts nobody but itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_component_hurts_while_it_is_loaded() {
    let trial = Trial::start().await;
    let company = trial.company_without_limit("uploader").await;
    let path = company.path("/connectors?activate=true");
    for (number, describes) in DESCRIBES.iter().enumerate() {
        let wasm = marked(guests::HOSTILE_HTTP, describes, number as u32 + 1);
        let refusal = company.client.post_wasm(&path, wasm).await;
        assert!(refusal.status.is_client_error(), "{describes}: {refusal:?}");
    }
    let many = |number, instances| {
        let wasm = marked(guests::HOSTILE_HTTP, "well", number);
        with_instances(&wasm, instances)
    };
    let uploaded = company.client.post_wasm(&path, many(100, INSTANCES)).await;
    if uploaded.status.is_success() {
        deeds::crowd(&trial.watched, &company).await;
    }
    // That is no failure of the host.
    let refusal = company.client.post_wasm(&path, many(101, 200)).await;
    assert!(refusal.status.is_client_error(), "{refusal:?}");
    trial.end().await;
}

/// With the component's own: the most that one may have.
const INSTANCES: usize = 12;
