//! What is said before a login, and the login (MS-TDS 2.2.6.4, 2.2.6.5).

/// What a client asks of TLS.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Encryption {
    Off,
    On,
    NotSupported,
}

const VERSION: u8 = 0;
const ENCRYPTION: u8 = 1;
const END: u8 = 0xff;

/// What the client's first message asks for.
pub fn asked(body: &[u8]) -> Option<Encryption> {
    let mut at = 0;
    while *body.get(at)? != END {
        let option = body.get(at..at + 5)?;
        let from = usize::from(u16::from_be_bytes([option[1], option[2]]));
        if option[0] == ENCRYPTION {
            return Some(match *body.get(from)? {
                1 | 3 => Encryption::On,
                2 => Encryption::NotSupported,
                _ => Encryption::Off,
            });
        }
        at += 5;
    }
    None
}

/// The answer to it: SQL Server 2022, and whether TLS follows.
pub fn answer(encryption: u8) -> Vec<u8> {
    let mut out = vec![VERSION, 0, 11, 0, 6, ENCRYPTION, 0, 17, 0, 1, END];
    out.extend_from_slice(&[16, 0, 4, 10, 0, 0, encryption]);
    out
}

pub struct Login {
    pub user: String,
    pub password: String,
    pub database: String,
    pub server: String,
    pub reads_only: bool,
    pub packet_bytes: u32,
    pub version: u32,
}

impl Login {
    pub fn read(body: &[u8]) -> Option<Login> {
        let number = |at: usize| Some(u32::from_le_bytes(body.get(at..at + 4)?.try_into().ok()?));
        let field = |at: usize| -> Option<Vec<u8>> {
            let short = |at: usize| {
                Some(usize::from(u16::from_le_bytes([
                    *body.get(at)?,
                    *body.get(at + 1)?,
                ])))
            };
            let (from, units) = (short(at)?, short(at + 2)?);
            Some(body.get(from..from + 2 * units)?.to_vec())
        };
        let text = |at: usize| Some(units(&field(at)?));
        // Each byte has its halves changed after it was made another one.
        let plain = |bytes: Vec<u8>| -> Vec<u8> {
            bytes
                .into_iter()
                .map(|byte| (byte ^ 0xa5).rotate_left(4))
                .collect()
        };
        Some(Login {
            version: number(4)?,
            packet_bytes: number(8)?,
            reads_only: body.get(26)? & 0x20 != 0,
            user: text(40)?,
            password: units(&plain(field(44)?)),
            server: text(52)?,
            database: text(68)?,
        })
    }
}

pub fn units(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes
        .chunks_exact(2)
        .map(|unit| u16::from_le_bytes([unit[0], unit[1]]))
        .collect();
    String::from_utf16_lossy(&units)
}
