//! A company's files: what may not become one.

use crate::world::{Answer, Company, World, now, request};
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request};
use souk_app::files::sweep;
use souk_domain::ids::{CompanyId, FileId};
use souk_store::StoreError;
use souk_store::files::{self, File};
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc;
use tower::ServiceExt;

/// The world's companies may have four of these.
const MIB: usize = 1 << 20;

fn put(company: &Company, name: &str) -> http::request::Builder {
    request(
        Method::PUT,
        &company.key,
        &company.path(&format!("/files/{name}")),
    )
}

/// A body that comes as it is sent, and ends when the sender is dropped.
fn streamed(request: http::request::Builder) -> (mpsc::Sender<Bytes>, Request<Body>) {
    let (sender, receiver) = mpsc::channel(1);
    let frames = stream::unfold(receiver, |mut receiver| async {
        let bytes: Bytes = receiver.recv().await?;
        Some((Ok::<_, Infallible>(bytes), receiver))
    });
    (sender, request.body(Body::from_stream(frames)).unwrap())
}

async fn size(world: &World, company: &Company, name: &str) -> Option<i64> {
    let path = company.path(&format!("/files/{name}"));
    let answer = world.get(&company.key, &path).await;
    answer.at("/data/size_bytes").as_i64()
}

/// What `curl -F` sends is a form with the file in it, which no engine reads.
#[tokio::test]
async fn a_form_is_no_file() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let form = put(&acme, "a.db")
        .header("content-type", "Multipart/form-data; boundary=x")
        .body(Body::from("--x\r\n\r\nwhole\r\n--x--\r\n"))
        .unwrap();
    let refused = world.send(form).await;
    let message = refused.at("/error/message").as_str().unwrap().to_owned();
    assert!(message.contains("--data-binary"), "{message}");
    refused.expect_error(400, "INVALID_REQUEST");
    assert_eq!(size(&world, &acme, "a.db").await, None);
}

/// What a client says to be a part of a file, or packed, does not take the place of the file.
#[tokio::test]
async fn a_part_and_what_is_packed_are_no_file() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let whole = put(&acme, "a.db").body(Body::from("whole")).unwrap();
    world.send(whole).await.expect(201);
    for (name, value, status, code) in [
        ("content-range", "bytes 2-4/5", 400, "INVALID_REQUEST"),
        ("content-encoding", "gzip", 415, "UNSUPPORTED_MEDIA_TYPE"),
        (
            "content-encoding",
            "identity, BR",
            415,
            "UNSUPPORTED_MEDIA_TYPE",
        ),
    ] {
        let part = put(&acme, "a.db").header(name, value);
        let refused = world.send(part.body(Body::from("ole")).unwrap()).await;
        let refused = refused.expect_error(status, code);
        let told = refused.text("/error/message");
        assert!(told.contains("nothing was changed"), "{told}");
        assert_eq!(size(&world, &acme, "a.db").await, Some(5));
    }
    let plain = put(&acme, "a.db").header("content-encoding", "Identity");
    let plain = plain.body(Body::from("another")).unwrap();
    world.send(plain).await.expect(200);
}

/// A request that carries nothing does not empty a file, however it says so.
#[tokio::test]
async fn an_empty_body_changes_nothing() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let whole = put(&acme, "a.db").body(Body::from("whole")).unwrap();
    world.send(whole).await.expect(201);
    let (sender, chunked) = streamed(put(&acme, "a.db"));
    drop(sender);
    let empty = [
        put(&acme, "a.db").body(Body::empty()).unwrap(),
        put(&acme, "a.db")
            .header("content-length", "0")
            .body(Body::empty())
            .unwrap(),
        chunked,
    ];
    for request in empty {
        let refused = world
            .send(request)
            .await
            .expect_error(400, "INVALID_REQUEST");
        assert!(refused.text("/error/message").contains("empty"));
        assert_eq!(size(&world, &acme, "a.db").await, Some(5));
    }
    let new = put(&acme, "new.db").body(Body::empty()).unwrap();
    world.send(new).await.expect_error(400, "INVALID_REQUEST");
    assert_eq!(size(&world, &acme, "new.db").await, None);
}

/// Two uploads at once do not share the room that there is for one of them.
#[tokio::test]
async fn uploads_at_once_stay_within_the_companys_bytes() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let mut uploads = Vec::new();
    for name in ["a.db", "b.db"] {
        let (sender, request) = streamed(put(&acme, name));
        let answer = tokio::spawn(world.router.clone().oneshot(request));
        uploads.push((sender, answer));
    }
    // Both have read how much room there is before either has ended: each takes its first bytes after that.
    for _ in 0..3 {
        for (sender, _) in &uploads {
            // The second one may have been refused by now.
            let _ = sender.send(Bytes::from(vec![b'x'; MIB])).await;
        }
    }
    let mut statuses = Vec::new();
    for (sender, answer) in uploads {
        drop(sender);
        let answer = Answer::of(answer.await.unwrap().unwrap()).await;
        statuses.push(answer.status.as_u16());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409]);
}

/// What another host committed meanwhile counts: it is looked at again by the transaction that makes the file.
#[tokio::test]
async fn an_upload_that_was_overtaken_is_refused() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let (sender, request) = streamed(put(&acme, "a.db"));
    let answer = tokio::spawn(world.router.clone().oneshot(request));
    sender.send(Bytes::from(vec![b'x'; MIB])).await.unwrap();
    sender.send(Bytes::from(vec![b'x'; MIB])).await.unwrap();
    let other = File {
        name: "b.db".into(),
        upload_id: FileId::generate().to_string(),
        size_bytes: 3 * MIB as i64,
        sha256: String::new(),
        created_at: now(),
        updated_at: now(),
    };
    world
        .db
        .write(async |write| -> Result<_, StoreError> {
            let company = CompanyId::parse(&acme.id).unwrap();
            files::put(write, &company, &other).await.unwrap();
            Ok(())
        })
        .await
        .unwrap();
    drop(sender);
    let answer = Answer::of(answer.await.unwrap().unwrap()).await;
    let refused = answer.expect_error(409, "FILE_QUOTA_EXCEEDED");
    assert!(refused.text("/error/message").contains("together"));
    assert_eq!(size(&world, &acme, "a.db").await, None);
}

/// What has come whole becomes the file, with its bytes, although its client hangs up while it is written down; and a file is deleted with its bytes
/// although nobody waits for that.
#[tokio::test]
async fn who_hangs_up_at_the_end_leaves_nothing_half_done() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let whole = put(&acme, "a.db").body(Body::from("before")).unwrap();
    world.send(whole).await.expect(201);
    let whole = put(&acme, "b.db").body(Body::from("deleted")).unwrap();
    world.send(whole).await.expect(201);
    let replaces = put(&acme, "a.db").body(Body::from("whole")).unwrap();
    let deletes = request(Method::DELETE, &acme.key, &acme.path("/files/b.db"));
    let deletes = deletes.body(Body::empty()).unwrap();

    world.hang_up(vec![replaces, deletes]).await;

    let since = Instant::now();
    while size(&world, &acme, "a.db").await != Some(5)
        || size(&world, &acme, "b.db").await.is_some()
    {
        let waited = since.elapsed();
        assert!(waited < Duration::from_secs(60), "it was given up");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let company = CompanyId::parse(&acme.id).unwrap();
    let mut read = world.db.read().await.unwrap();
    let file = files::get(&mut read, &company, "a.db").await.unwrap();
    let uploads = world.state.app().files_dir.join(&acme.id);
    let path = uploads.join(file.unwrap().upload_id).join("a.db");
    assert_eq!(std::fs::read(path).unwrap(), b"whole");
}

/// Commits of what names an upload fail from now on.
async fn refuse_commits(world: &World) {
    // What fails at the end of the transaction, and no earlier.
    let of_sqlite = [
        "CREATE TABLE refusals (company_id TEXT REFERENCES companies (id) DEFERRABLE INITIALLY DEFERRED)",
        "CREATE TRIGGER refusal AFTER INSERT ON files BEGIN INSERT INTO refusals VALUES ('nobody'); END",
    ];
    let of_postgres = [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$",
        "CREATE CONSTRAINT TRIGGER refusal AFTER INSERT ON files DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()",
    ];
    change(world, of_sqlite, of_postgres).await;
}

/// And no more.
async fn take_commits(world: &World) {
    let (of_sqlite, of_postgres) = ("DROP TRIGGER refusal", "DROP TRIGGER refusal ON files");
    change(world, [of_sqlite], [of_postgres]).await;
}

async fn change<const N: usize>(
    world: &World,
    of_sqlite: [&'static str; N],
    of_postgres: [&'static str; N],
) {
    let changed = world.db.write(async |write| -> Result<_, StoreError> {
        let statements = match write.is_shared() {
            true => of_postgres,
            false => of_sqlite,
        };
        for sql in statements {
            sqlx::query(sql).execute(&mut **write).await.unwrap();
        }
        Ok(())
    });
    changed.await.unwrap();
}

/// A commit that fails leaves nobody knowing whether a row names the upload: its bytes stay until the store has told, and go when none does.
#[tokio::test]
async fn what_no_row_names_after_a_failed_commit_is_removed() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let whole = put(&acme, "a.db").body(Body::from("before")).unwrap();
    world.send(whole).await.expect(201);
    refuse_commits(&world).await;

    let uploads = world.state.app().files_dir.join(&acme.id);
    let count = || std::fs::read_dir(&uploads).unwrap().count();
    let refused = put(&acme, "b.db").body(Body::from("refused")).unwrap();
    let refused = world.send(refused).await;
    assert!(!refused.status.is_success(), "{refused:?}");
    // Whoever asks which row names it waits for this, and removing takes no second.
    let company = CompanyId::parse(&acme.id).unwrap();
    let left = world.db.write(async |write| -> Result<_, StoreError> {
        files::lock_company(write, &company).await?;
        let since = Instant::now();
        while count() == 2 && since.elapsed() < Duration::from_secs(1) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(count())
    });
    assert_eq!(left.await.unwrap(), 2, "removed before it was known");
    let since = Instant::now();
    while count() > 1 {
        let waited = since.elapsed();
        assert!(waited < Duration::from_secs(30), "it was left");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(size(&world, &acme, "a.db").await, Some(6));
    assert_eq!(size(&world, &acme, "b.db").await, None);
}

/// An upload whose commit has failed, and in whose place another one is, may have been the file in between: its bytes stay for those who opened it, as
/// those of any file that is replaced.
#[tokio::test]
async fn what_may_have_been_a_file_stays_for_its_readers() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    refuse_commits(&world).await;
    let refused = put(&acme, "a.db").body(Body::from("refused")).unwrap();
    let refused = world.send(refused).await;
    assert!(!refused.status.is_success(), "{refused:?}");
    take_commits(&world).await;
    let whole = put(&acme, "a.db").body(Body::from("whole")).unwrap();
    world.send(whole).await.expect(201);
    let uploads = world.state.app().files_dir.join(&acme.id);
    let count = || std::fs::read_dir(&uploads).unwrap().count();
    assert_eq!(count(), 2);
    // The store is asked two seconds after the commit; a file that was replaced stays for a minute.
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(count(), 2, "removed while it may be read");
    assert_eq!(size(&world, &acme, "a.db").await, Some(5));
}

/// What a company sends is taken at a pace, also what is refused and thrown away: 70 MiB take most of a second, the first 25 nothing.
#[tokio::test]
async fn bodies_are_taken_at_a_pace() {
    let world = World::new().await;
    let acme = world.company("acme").await;
    let since = Instant::now();
    for _ in 0..10 {
        let body = Body::from(Bytes::from_static(&[b' '; 7 * MIB]));
        let lost = request(Method::PUT, &acme.key, "/nowhere").body(body);
        world.send(lost.unwrap()).await.expect(404);
    }
    let took = since.elapsed();
    assert!(took >= Duration::from_millis(400), "{took:?}");
}

/// Whose files they are, as the sweep notes it in their directory.
const MARK: &str = ".store";

/// What lies there under a company, as if nobody had written to it for two days.
fn left(world: &World, company: &str, name: &str) -> PathBuf {
    let left = world.state.app().files_dir.join(company).join(name);
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("a.db"), "left").unwrap();
    for path in [&left.join("a.db"), &left] {
        age(path);
    }
    left
}

fn age(path: &Path) {
    let before = SystemTime::now() - Duration::from_secs(48 * 3_600);
    fs::File::open(path).unwrap().set_modified(before).unwrap();
}

/// What a host left behind is removed by the store whose files these are, and by no other one; nothing of a company that the store does not know is.
#[tokio::test]
async fn only_their_own_store_sweeps_files() {
    let world = World::new().await;
    let (app, acme) = (world.state.app(), world.company("acme").await);
    let mark = app.files_dir.join(MARK);
    let whole = put(&acme, "a.db").body(Body::from("whole")).unwrap();
    world.send(whole).await.expect(201);
    sweep(app).await.unwrap();
    let own = fs::read(&mark).unwrap();

    let broken = left(&world, &acme.id, FileId::generate().as_str());
    let strange = CompanyId::generate();
    let strange = left(&world, strange.as_str(), FileId::generate().as_str());
    fs::write(&mark, CompanyId::generate().as_str()).unwrap();
    sweep(app).await.unwrap();
    assert!(broken.exists() && strange.exists());

    // Nobody knows whose these are: one of their companies is not this store's.
    fs::remove_file(&mark).unwrap();
    sweep(app).await.unwrap();
    assert!(broken.exists() && strange.exists() && !mark.exists());

    fs::write(&mark, own).unwrap();
    sweep(app).await.unwrap();
    assert!(!broken.exists() && strange.exists());
    assert_eq!(size(&world, &acme, "a.db").await, Some(5));
    let uploads = fs::read_dir(app.files_dir.join(&acme.id)).unwrap();
    assert_eq!(uploads.count(), 1);
}

/// What somebody else has put among the files stays, and neither that nor what cannot be looked at keeps a host from starting.
#[tokio::test]
async fn what_is_foreign_among_files_is_left_alone() {
    let world = World::new().await;
    let (app, acme) = (world.state.app(), world.company("acme").await);
    let kept = [
        left(&world, "lost+found", "#123"),
        left(&world, ".snapshot", FileId::generate().as_str()),
        left(&world, "snapshot", FileId::generate().as_str()),
        left(&world, &acme.id, "lost+found"),
        left(&world, &acme.id, "copies"),
    ];
    let broken = left(&world, &acme.id, FileId::generate().as_str());
    let files = [
        app.files_dir.join("README"),
        app.files_dir.join(&acme.id).join("README"),
        app.files_dir
            .join(&acme.id)
            .join(FileId::generate().as_str()),
    ];
    for file in &files {
        fs::write(file, "foreign").unwrap();
        age(file);
    }
    sweep(app).await.unwrap();
    assert!(kept.iter().chain(&files).all(|path| path.exists()));
    assert!(!broken.exists());
}
