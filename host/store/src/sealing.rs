//! Credentials at rest: AES-256-GCM under a master key, bound to the company and the connection they belong to.
//!
//! A sealed value is `version (1) | key id (4) | nonce (12) | ciphertext and tag`. The associated data holds version, company and
//! connection, so a sealed value that is copied to another row does not open. The key id (the first bytes of the master key's SHA-256)
//! says which master key is needed, so that several can be given while old values are sealed anew.
//!
//! What is handed out by the thousand and kept nowhere, such as the place where a page ended, is a *token*: `version (1) | key id (4) |
//! ciphertext and tag`, AES-256-GCM-SIV under a key that is derived from the master key. Random nonces of 96 bits would begin to repeat after
//! some days of pages, and a repeated one gives GCM's key away; a token has none, and shows only whether two are the same.
//!
//! A *mark* stands for something that is not told (BLAKE3 with a key that is derived as well): only who was told a mark knows it.

use crate::error::StoreError;
use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Key, Nonce};
use aes_gcm_siv::Aes256GcmSiv;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, Mac};
use rand::TryRng;
use sha2::{Digest, Sha256};
use souk_domain::ids::CompanyId;
use std::fs;
use std::io::Write as _;
use std::path::Path;

const VERSION: u8 = 1;
const KEY_ID_BYTES: usize = 4;
const NONCE_BYTES: usize = 12;
const HEAD_BYTES: usize = 1 + KEY_ID_BYTES + NONCE_BYTES;
const TOKEN_VERSION: u8 = 2;
const TOKEN_HEAD_BYTES: usize = 1 + KEY_ID_BYTES;
/// What the key of tokens is derived with.
const TOKENS: &[u8] = b"souk tokens 1";
/// What the key of marks is derived with.
const MARKS: &[u8] = b"souk marks 1";
const MASTER_KEY_BYTES: usize = 32;

#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error("a master key is 32 bytes, written as 64 hexadecimal digits or in base64")]
    MasterKey,
    #[error("sealed with another master key; give the former one in SOUK_MASTER_KEY_OLD")]
    UnknownKey,
    #[error("a sealed value is damaged or belongs to another row")]
    Damaged,
    #[error("{path}: {error}")]
    File { path: String, error: std::io::Error },
    #[error("the system gives no randomness")]
    Randomness,
}

impl From<SealError> for StoreError {
    fn from(error: SealError) -> Self {
        Self::Corrupt(error.to_string())
    }
}

/// Says which master key it is, and gives nothing of it away: the first bytes of its SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyId(pub [u8; KEY_ID_BYTES]);

impl std::fmt::Display for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// Which master key a value was sealed with. `None`: it is no sealed value. Its beginning is enough.
pub fn key_id(sealed: &[u8]) -> Option<KeyId> {
    let (version, rest) = sealed.split_first()?;
    let id = rest.first_chunk()?;
    (*version == VERSION).then_some(KeyId(*id))
}

/// What a sealed value belongs to: it opens for this company and subject only.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    pub company: &'a str,
    /// The connection, or whatever else within the company has the secret.
    pub subject: &'a str,
}

impl<'a> Owner<'a> {
    pub fn of(company: &'a CompanyId, subject: &'a str) -> Owner<'a> {
        Owner {
            company: company.as_str(),
            subject,
        }
    }
}

/// Seals with its first key, opens with any.
#[derive(Clone)]
pub struct Sealer {
    /// Never empty.
    keys: Vec<MasterKey>,
}

#[derive(Clone)]
struct MasterKey {
    id: KeyId,
    cipher: Aes256Gcm,
    tokens: Aes256GcmSiv,
    marks: [u8; blake3::KEY_LEN],
}

impl MasterKey {
    fn of(bytes: [u8; MASTER_KEY_BYTES]) -> Result<MasterKey, SealError> {
        let digest = Sha256::digest(bytes);
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&digest[..KEY_ID_BYTES]);
        let derived = |purpose: &[u8]| -> Result<[u8; blake3::KEY_LEN], SealError> {
            let derive = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&bytes);
            let mut derive = derive.map_err(|_| SealError::MasterKey)?;
            derive.update(purpose);
            Ok(derive.finalize().into_bytes().into())
        };
        let tokens = Aes256GcmSiv::new_from_slice(&derived(TOKENS)?);
        Ok(MasterKey {
            id: KeyId(id),
            cipher: Aes256Gcm::new(Key::<Aes256Gcm>::from_slice(&bytes)),
            tokens: tokens.map_err(|_| SealError::MasterKey)?,
            marks: derived(MARKS)?,
        })
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(..)")
    }
}

impl Sealer {
    /// `current` seals; `former` keys still open what they sealed.
    pub fn new(current: &str, former: &[&str]) -> Result<Self, SealError> {
        let mut keys = Vec::with_capacity(1 + former.len());
        for text in std::iter::once(&current).chain(former) {
            keys.push(MasterKey::of(parse_master_key(text)?)?);
        }
        Ok(Self { keys })
    }

    /// The key of the file, which is made (readable by its owner only) when it does not exist.
    pub fn open(file: &Path) -> Result<Self, SealError> {
        let text = match read_key(file)? {
            Some(text) => text,
            None => make_key(file)?,
        };
        Self::new(&text, &[])
    }

    /// Of the key that seals.
    pub fn key_id(&self) -> KeyId {
        self.keys[0].id
    }

    /// Whether something that was sealed with this key can be opened.
    pub fn knows(&self, id: KeyId) -> bool {
        self.keys.iter().any(|key| key.id == id)
    }

    pub fn seal(&self, owner: Owner<'_>, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let key = self.keys.first().ok_or(SealError::MasterKey)?;
        let mut nonce = [0; NONCE_BYTES];
        fill_random(&mut nonce)?;
        let payload = Payload {
            msg: plain,
            aad: &associated(owner),
        };
        let sealed = key
            .cipher
            .encrypt(Nonce::from_slice(&nonce), payload)
            .map_err(|_| SealError::Damaged)?;
        let mut out = Vec::with_capacity(HEAD_BYTES + sealed.len());
        out.push(VERSION);
        out.extend_from_slice(&key.id.0);
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&sealed);
        Ok(out)
    }

    pub fn unseal(&self, owner: Owner<'_>, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        if sealed.len() < HEAD_BYTES || sealed[0] != VERSION {
            return Err(SealError::Damaged);
        }
        let (id, rest) = sealed[1..].split_at(KEY_ID_BYTES);
        let (nonce, ciphertext) = rest.split_at(NONCE_BYTES);
        let payload = Payload {
            msg: ciphertext,
            aad: &associated(owner),
        };
        self.key(id)?
            .cipher
            .decrypt(Nonce::from_slice(nonce), payload)
            .map_err(|_| SealError::Damaged)
    }

    /// A token: the same for the same owner and text.
    pub fn seal_token(&self, owner: Owner<'_>, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let key = self.keys.first().ok_or(SealError::MasterKey)?;
        let payload = Payload {
            msg: plain,
            aad: &associated(owner),
        };
        let sealed = key
            .tokens
            .encrypt(&aes_gcm_siv::Nonce::default(), payload)
            .map_err(|_| SealError::Damaged)?;
        let mut out = Vec::with_capacity(TOKEN_HEAD_BYTES + sealed.len());
        out.push(TOKEN_VERSION);
        out.extend_from_slice(&key.id.0);
        out.extend_from_slice(&sealed);
        Ok(out)
    }

    /// What [`Sealer::seal_token`] sealed for this owner.
    pub fn unseal_token(&self, owner: Owner<'_>, token: &[u8]) -> Result<Vec<u8>, SealError> {
        let (head, ciphertext) = token
            .split_at_checked(TOKEN_HEAD_BYTES)
            .ok_or(SealError::Damaged)?;
        if head[0] != TOKEN_VERSION {
            return Err(SealError::Damaged);
        }
        let payload = Payload {
            msg: ciphertext,
            aad: &associated(owner),
        };
        self.key(&head[1..])?
            .tokens
            .decrypt(&aes_gcm_siv::Nonce::default(), payload)
            .map_err(|_| SealError::Damaged)
    }

    /// What stands for `meant` where its owner is told: the same for the same owner and meaning, and found out by nobody else.
    pub fn mark(&self, owner: Owner<'_>, meant: &[u8]) -> Result<u64, SealError> {
        let key = self.keys.first().ok_or(SealError::MasterKey)?;
        let mut whole = associated(owner);
        whole.extend_from_slice(meant);
        let mark = blake3::keyed_hash(&key.marks, &whole);
        let first = mark.as_bytes().first_chunk().ok_or(SealError::Damaged)?;
        Ok(u64::from_be_bytes(*first))
    }

    fn key(&self, id: &[u8]) -> Result<&MasterKey, SealError> {
        let mut keys = self.keys.iter();
        keys.find(|key| key.id.0 == id).ok_or(SealError::UnknownKey)
    }
}

/// The master key in the file. `None`: there is no such file.
pub fn read_key(file: &Path) -> Result<Option<String>, SealError> {
    match fs::read_to_string(file) {
        Ok(text) => {
            parse_master_key(&text)?;
            Ok(Some(text))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(in_file(file, error)),
    }
}

/// Makes a master key and keeps it in the file, readable by its owner only.
pub fn make_key(file: &Path) -> Result<String, SealError> {
    let mut bytes = [0; MASTER_KEY_BYTES];
    fill_random(&mut bytes)?;
    let text = hex::encode(bytes);
    create_private(file, &text).map_err(|error| in_file(file, error))?;
    Ok(text)
}

/// Whether this is how a master key is written.
pub fn check_key(text: &str) -> Result<(), SealError> {
    parse_master_key(text).map(drop)
}

fn in_file(file: &Path, error: std::io::Error) -> SealError {
    SealError::File {
        path: file.display().to_string(),
        error,
    }
}

/// Lengths first, so that no two owners give the same bytes.
fn associated(owner: Owner<'_>) -> Vec<u8> {
    let mut data = vec![VERSION];
    for part in [owner.company, owner.subject] {
        data.extend_from_slice(&(part.len() as u64).to_be_bytes());
        data.extend_from_slice(part.as_bytes());
    }
    data
}

fn fill_random(out: &mut [u8]) -> Result<(), SealError> {
    rand::rngs::SysRng
        .try_fill_bytes(out)
        .map_err(|_| SealError::Randomness)
}

fn parse_master_key(text: &str) -> Result<[u8; MASTER_KEY_BYTES], SealError> {
    let text = text.trim();
    let bytes = match hex::decode(text) {
        Ok(bytes) => bytes,
        Err(_) => base64(text).ok_or(SealError::MasterKey)?,
    };
    bytes.try_into().map_err(|_| SealError::MasterKey)
}

/// Standard and URL-safe alphabet, padding optional.
fn base64(text: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let standard = text.replace('-', "+").replace('_', "/");
    let engine = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    engine.decode(standard).ok()
}

/// Written and synced under another name first, so that a crash never leaves half a key behind.
fn create_private(file: &Path, text: &str) -> std::io::Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    let mut options = fs::OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut new = options.open(&name)?;
    new.write_all(text.as_bytes())?;
    new.sync_all()?;
    fs::rename(&name, file)?;
    if let Some(directory) = file.parent()
        && let Ok(directory) = fs::File::open(directory)
    {
        directory.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Owner<'_> = Owner {
        company: "com_a",
        subject: "con_1",
    };

    fn key(byte: u8) -> String {
        hex::encode([byte; MASTER_KEY_BYTES])
    }

    /// A sealed value opens for its own row only, and any changed byte is noticed.
    #[test]
    fn sealed_values_are_bound_to_their_row() {
        let sealer = Sealer::new(&key(1), &[]).unwrap();
        let sealed = sealer.seal(OWNER, b"secret").unwrap();
        assert_eq!(sealer.unseal(OWNER, &sealed).unwrap(), b"secret");
        for (company, subject) in [("com_b", "con_1"), ("com_a", "con_2"), ("com_ac", "on_1")] {
            assert!(sealer.unseal(Owner { company, subject }, &sealed).is_err());
        }
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(sealer.unseal(OWNER, &damaged).is_err(), "byte {at}");
        }
    }

    /// A mark is of its owner, its meaning and the master key.
    #[test]
    fn marks_are_their_owners() {
        let sealer = Sealer::new(&key(1), &[]).unwrap();
        let mark = sealer.mark(OWNER, b"rows").unwrap();
        assert_eq!(sealer.mark(OWNER, b"rows").unwrap(), mark);
        assert_ne!(sealer.mark(OWNER, b"rowe").unwrap(), mark);
        for (company, subject) in [("com_b", "con_1"), ("com_a", "con_2"), ("com_ac", "on_1")] {
            let owner = Owner { company, subject };
            assert_ne!(sealer.mark(owner, b"rows").unwrap(), mark);
        }
        let other = Sealer::new(&key(2), &[&key(1)]).unwrap();
        assert_ne!(other.mark(OWNER, b"rows").unwrap(), mark);
    }

    /// A token opens for its own row only, any changed byte is noticed, and it is no other sealed value.
    #[test]
    fn tokens_are_bound_to_their_row() {
        let sealer = Sealer::new(&key(1), &[]).unwrap();
        let token = sealer.seal_token(OWNER, b"place").unwrap();
        assert_eq!(sealer.unseal_token(OWNER, &token).unwrap(), b"place");
        assert_eq!(sealer.seal_token(OWNER, b"place").unwrap(), token);
        let other = sealer.seal_token(OWNER, b"plane").unwrap();
        assert_ne!(token[TOKEN_HEAD_BYTES], other[TOKEN_HEAD_BYTES]);
        for (company, subject) in [("com_b", "con_1"), ("com_a", "con_2"), ("com_ac", "on_1")] {
            let owner = Owner { company, subject };
            assert!(sealer.unseal_token(owner, &token).is_err());
        }
        for at in 0..token.len() {
            let mut damaged = token.clone();
            damaged[at] ^= 1;
            assert!(sealer.unseal_token(OWNER, &damaged).is_err(), "byte {at}");
            assert!(sealer.unseal_token(OWNER, &token[..at]).is_err());
        }
        assert!(sealer.unseal(OWNER, &token).is_err());
        let rotated = Sealer::new(&key(2), &[&key(1)]).unwrap();
        assert_eq!(rotated.unseal_token(OWNER, &token).unwrap(), b"place");
    }

    /// After a rotation the former key still opens.
    #[test]
    fn former_keys_still_open() {
        let old = Sealer::new(&key(1), &[]).unwrap();
        let sealed = old.seal(OWNER, b"secret").unwrap();
        let new = Sealer::new(&key(2), &[&key(1)]).unwrap();
        assert_eq!(new.unseal(OWNER, &sealed).unwrap(), b"secret");
        let other = Sealer::new(&key(3), &[]).unwrap();
        assert!(matches!(
            other.unseal(OWNER, &sealed),
            Err(SealError::UnknownKey)
        ));
    }

    /// The key file is made once, private to its owner, and used from then on.
    #[test]
    fn key_file_is_made_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("master.key");
        let first = Sealer::open(&file).unwrap();
        let sealed = first.seal(OWNER, b"secret").unwrap();
        let second = Sealer::open(&file).unwrap();
        assert_eq!(second.unseal(OWNER, &sealed).unwrap(), b"secret");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(
                fs::metadata(&file).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
    }

    /// Both spellings of a key are read; anything else is refused.
    #[test]
    fn master_keys_are_hex_or_base64() {
        assert!(Sealer::new("AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=", &[&key(1)]).is_ok());
        for bad in ["", "short", &key(1)[1..], "!!!"] {
            assert!(Sealer::new(bad, &[]).is_err(), "{bad}");
        }
    }
}
