//! The one cookie: the session of a user who is signed in.
//!
//! Its name makes browsers refuse it from anything but this host over TLS, for all paths ([RFC 6265bis](https://httpwg.org/http-extensions/draft-ietf-httpbis-rfc6265bis.html)):
//! no subdomain, of which each seller has one, can set or see it. Knows nothing of who is signed in.

use http::{HeaderMap, HeaderValue, header};
use souk_domain::sessions::{LIFE_MAX, Token, TokenError};

pub(crate) const NAME: &str = "__Host-session";

/// Has a browser forget the cookie.
pub(crate) const FORGET: HeaderValue =
    HeaderValue::from_static("__Host-session=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0");

/// The session's token, if there is a cookie. One that came twice is none of ours.
pub(crate) fn session(headers: &HeaderMap) -> Option<Result<Token, TokenError>> {
    let lines = headers.get_all(header::COOKIE).iter();
    let pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    let mut found = pairs.filter_map(|pair| {
        let pair = pair.trim_ascii().strip_prefix(NAME.as_bytes())?;
        pair.strip_prefix(b"=")
    });
    let one = found.next()?;
    Some(match found.next() {
        None => std::str::from_utf8(one)
            .map_err(|_| TokenError)
            .and_then(Token::parse),
        Some(_) => Err(TokenError),
    })
}

/// Gives a browser the cookie, for as long as a session can last.
pub(crate) fn give(token: &Token) -> Result<HeaderValue, header::InvalidHeaderValue> {
    let (token, seconds) = (token.expose(), LIFE_MAX.as_secs());
    let cookie =
        format!("{NAME}={token}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={seconds}");
    let mut value = HeaderValue::from_str(&cookie)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&'static str]) -> Option<Result<String, TokenError>> {
        let mut headers = HeaderMap::new();
        for line in lines {
            let line = HeaderValue::from_bytes(line.as_bytes()).unwrap();
            headers.append(header::COOKIE, line);
        }
        session(&headers).map(|token| token.map(|token| token.expose().to_owned()))
    }

    /// The cookie is found among others, and nothing that only looks like it is taken for it.
    #[test]
    fn a_cookie_is_read_as_it_was_given() {
        const TOKEN: &str = "0123456789012345678901234567890123456789abc";
        const LINE: &str = "a=b; __Host-session=0123456789012345678901234567890123456789abc;c=d";
        assert_eq!(read(&[LINE]), Some(Ok(TOKEN.to_owned())));
        assert_eq!(read(&["a=b", LINE]), Some(Ok(TOKEN.to_owned())));
        assert_eq!(read(&[LINE, LINE]), Some(Err(TokenError)));
        assert_eq!(read(&["__Host-session=short"]), Some(Err(TokenError)));
        assert_eq!(read(&["__Host-session=\u{e9}"]), Some(Err(TokenError)));
        assert_eq!(
            read(&["session=1; __Host-sessions=2", "__host-session=3"]),
            None
        );
        let token = Token::parse(TOKEN).unwrap();
        let given = give(&token).unwrap();
        assert_eq!(
            given.to_str().unwrap(),
            format!(
                "__Host-session={TOKEN}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=604800"
            )
        );
    }
}
