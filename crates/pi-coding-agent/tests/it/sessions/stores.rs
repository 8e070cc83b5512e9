//! One conformance test for every store, and sessions in a store of one's own.

use async_trait::async_trait;
use pi_ai::Message;
use pi_coding_agent::session::{
    NewSession, Persistence, SessionEnvironment, SessionManager,
    store::{AppendError, JsonlStore, MemoryStore, SessionStore, StoreError, check_store},
};

use super::{said, say};

/// A store without quick access to its bytes, whose every operation has to wait.
#[derive(Clone, Default)]
struct Remote(MemoryStore);

#[async_trait]
impl SessionStore for Remote {
    async fn read(&mut self, from: u64, sink: &mut (dyn for<'a> FnMut(&'a [u8]) + Send)) -> Result<u64, StoreError> {
        tokio::task::yield_now().await;
        self.0.read(from, sink).await
    }

    async fn append(&mut self, at: u64, bytes: &[u8]) -> Result<(), AppendError> {
        tokio::task::yield_now().await;
        self.0.append(at, bytes).await
    }

    async fn sync(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[tokio::test]
async fn every_store_keeps_its_promises() {
    let memory = MemoryStore::default();
    check_store(async || memory.clone()).await.unwrap();
    let remote = Remote::default();
    check_store(async || remote.clone()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    check_store(async || JsonlStore::open(&path, &SessionEnvironment::default()).unwrap()).await.unwrap();
}

/// Says the end is always where the writer wants it.
#[derive(Clone, Default)]
struct Careless(MemoryStore);

#[async_trait]
impl SessionStore for Careless {
    async fn read(&mut self, from: u64, sink: &mut (dyn for<'a> FnMut(&'a [u8]) + Send)) -> Result<u64, StoreError> {
        self.0.read(from, sink).await
    }

    async fn append(&mut self, _at: u64, bytes: &[u8]) -> Result<(), AppendError> {
        let end = self.0.to_vec().len() as u64;
        self.0.append(end, bytes).await
    }

    async fn sync(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[tokio::test]
async fn a_store_that_overwrites_is_found_out() {
    let store = Careless::default();
    let broken = check_store(async || store.clone()).await.unwrap_err();
    assert!(broken.contains("not the end"), "{broken}");
}

#[tokio::test]
async fn a_session_lives_in_a_store_of_the_applications_own() {
    let store = Remote::default();
    let open = async || {
        let new = NewSession { cwd: "/project".into(), ..NewSession::default() };
        SessionManager::open_store(store.clone(), new, SessionEnvironment::default()).await.unwrap()
    };
    let session = open().await;
    assert_eq!(session.persistence(), Persistence::Store);
    let one = say(&session, "one").await;
    say(&session, "two").await;
    // Another handle has the same session; each takes in what the other appends.
    let other = open().await;
    assert_eq!(said(&other), ["one", "two"]);
    say(&other, "three").await;
    session.branch(&one).await.unwrap();
    say(&session, "another two").await;
    assert_eq!(said(&session), ["one", "another two"]);
    assert_eq!(session.with(|session| session.len()), 4);
    session.end_turn().await.unwrap();
    drop((session, other));
    let session = open().await;
    assert_eq!(said(&session), ["one", "another two"]);
    assert_eq!(session.cwd(), std::path::Path::new("/project"));
    assert_eq!(session.entry(one.as_str()).unwrap().id, one);
}

#[tokio::test]
async fn dropping_an_append_to_a_slow_store_does_not_lose_it() {
    let store = Remote::default();
    let session =
        SessionManager::open_store(store.clone(), NewSession::default(), SessionEnvironment::default()).await.unwrap();
    {
        let mut append = Box::pin(session.append_message(Message::user("one")));
        assert!(futures::poll!(&mut append).is_pending());
    }
    say(&session, "two").await;
    assert_eq!(said(&session), ["one", "two"]);
}
