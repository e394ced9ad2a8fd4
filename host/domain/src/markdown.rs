//! Posts as HTML, for platforms that take nothing else: headings, paragraphs, quotes, lists, code, rules, emphasis, links and images of
//! Markdown. What it does not know stays the text that it is: tables, footnotes and above all HTML, so that nothing of what comes out
//! runs anywhere. Reads each character a bounded number of times.
//!
//! Start reading at [`html`]; blocks are cut out of lines, and [`Inline`] reads what stands in them.

/// Quotes and lists in one another; deeper ones stay text.
const DEPTH_MAX: usize = 8;
/// Emphasis and brackets that are open at once; more are text.
const OPEN_MAX: usize = 32;
/// Addresses that are looked for.
const URL_BYTES_MAX: usize = 2_000;
/// Of the backticks around code.
const TICKS_MAX: usize = 16;

/// The HTML of a Markdown text. Every tag in it was written here, and every address begins with `https:`, `http:` or `mailto:`.
pub fn html(markdown: &str) -> String {
    let lines: Vec<&str> = markdown.lines().collect();
    let mut out = String::with_capacity(markdown.len() + markdown.len() / 4);
    blocks(&lines, 0, &mut out);
    out
}

fn blocks(mut lines: &[&str], depth: usize, out: &mut String) {
    while let [line, rest @ ..] = lines {
        if is_blank(line) {
            lines = rest;
        } else if let Some(fence) = fence(line) {
            lines = code(rest, fence, out);
        } else if let Some((level, text)) = heading(line) {
            let (open, close) = (format!("<h{level}>"), format!("</h{level}>\n"));
            out.push_str(&open);
            inline(text, out);
            out.push_str(&close);
            lines = rest;
        } else if is_rule(line) {
            out.push_str("<hr>\n");
            lines = rest;
        } else if depth < DEPTH_MAX && quoted(line).is_some() {
            let inner: Vec<&str> = lines.iter().map_while(|line| quoted(line)).collect();
            out.push_str("<blockquote>\n");
            blocks(&inner, depth + 1, out);
            out.push_str("</blockquote>\n");
            lines = &lines[inner.len()..];
        } else if let (true, Some(marker)) = (depth < DEPTH_MAX, marker(line)) {
            lines = list(lines, marker.is_ordered, depth, out);
        } else {
            lines = paragraph(lines, depth, out);
        }
    }
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// The fence that opens code: its character and how many of it.
fn fence(line: &str) -> Option<(char, usize)> {
    let text = line.trim_start();
    let mark = text
        .chars()
        .next()
        .filter(|mark| matches!(mark, '`' | '~'))?;
    let count = text.chars().take_while(|c| *c == mark).count();
    // Code between backticks in a line of text is no fence.
    let is_fence = count >= 3 && !(mark == '`' && text[count..].contains('`'));
    is_fence.then_some((mark, count))
}

fn code<'a, 'b>(
    lines: &'a [&'b str],
    (mark, count): (char, usize),
    out: &mut String,
) -> &'a [&'b str] {
    let closes = |line: &&str| {
        let text = line.trim();
        text.len() >= count && text.chars().all(|c| c == mark)
    };
    let end = lines.iter().position(closes);
    out.push_str("<pre><code>");
    for line in &lines[..end.unwrap_or(lines.len())] {
        escape(line, out);
        out.push('\n');
    }
    out.push_str("</code></pre>\n");
    end.map_or(&[], |end| &lines[end + 1..])
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start();
    let level = text.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &text[level..];
    let is_heading = (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    let text = rest.trim();
    let without = text.trim_end_matches('#');
    let text = match without.is_empty() || without.ends_with(' ') {
        true => without.trim_end(),
        false => text,
    };
    is_heading.then_some((level, text))
}

fn is_rule(line: &str) -> bool {
    let text: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    text.len() >= 3
        && ["-", "*", "_"]
            .iter()
            .any(|mark| text.replace(mark, "").is_empty())
}

fn quoted(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('>')?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

struct Marker {
    is_ordered: bool,
    /// Bytes before the text of the item.
    width: usize,
}

fn marker(line: &str) -> Option<Marker> {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (is_ordered, mark) = match text.as_bytes().get(digits) {
        Some(b'-' | b'*' | b'+') if digits == 0 => (false, 1),
        Some(b'.' | b')') if (1..=9).contains(&digits) => (true, digits + 1),
        _ => return None,
    };
    let rest = &text[mark..];
    let is_item = rest.is_empty() || rest.starts_with([' ', '\t']);
    is_item.then(|| Marker {
        is_ordered,
        width: indent + mark + usize::from(!rest.is_empty()),
    })
}

fn list<'a, 'b>(
    mut lines: &'a [&'b str],
    is_ordered: bool,
    depth: usize,
    out: &mut String,
) -> &'a [&'b str] {
    let tag = if is_ordered { "ol" } else { "ul" };
    out.push_str(&format!("<{tag}>\n"));
    while let Some(first) = lines.first()
        && let Some(marker) =
            marker(first).filter(|marker| marker.is_ordered == is_ordered && !is_rule(first))
    {
        let mut item = vec![&first[marker.width..]];
        let mut used = 1;
        for line in &lines[1..] {
            let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
            match is_blank(line) {
                true => item.push(""),
                false if indent >= 2 => item.push(&line[indent.min(marker.width)..]),
                false => break,
            }
            used += 1;
        }
        // Blank lines at the end are between blocks.
        while item.last().is_some_and(|line| is_blank(line)) && item.len() > 1 {
            item.pop();
        }
        let mut inner = String::new();
        blocks(&item, depth + 1, &mut inner);
        out.push_str("<li>");
        out.push_str(unwrapped(&inner));
        out.push_str("</li>\n");
        lines = &lines[used..];
    }
    out.push_str(&format!("</{tag}>\n"));
    lines
}

/// An item that is one paragraph needs none.
fn unwrapped(html: &str) -> &str {
    let inner = html
        .strip_prefix("<p>")
        .and_then(|rest| rest.strip_suffix("</p>\n"));
    match inner {
        Some(inner) if !inner.contains("<p>") => inner,
        _ => html,
    }
}

fn paragraph<'a, 'b>(lines: &'a [&'b str], depth: usize, out: &mut String) -> &'a [&'b str] {
    let interrupts = |line: &str| {
        is_blank(line)
            || fence(line).is_some()
            || heading(line).is_some()
            || is_rule(line)
            || (depth < DEPTH_MAX && (quoted(line).is_some() || marker(line).is_some()))
    };
    let more = lines[1..]
        .iter()
        .take_while(|line| !interrupts(line))
        .count();
    let (own, rest) = lines.split_at(1 + more);
    let mut text = String::new();
    for (place, line) in own.iter().enumerate() {
        if place > 0 {
            text.push('\n');
        }
        text.push_str(line.trim_start());
    }
    out.push_str("<p>");
    inline(text.trim_end(), out);
    out.push_str("</p>\n");
    rest
}

fn inline(text: &str, out: &mut String) {
    let mut inline = Inline {
        text,
        at: 0,
        pieces: Vec::new(),
        open: Vec::new(),
        unclosed: [false; TICKS_MAX],
    };
    inline.read();
    inline.pieces.iter().for_each(|piece| match piece {
        Piece::Text(text) => escape(text, out),
        Piece::Html(html) => out.push_str(html),
    });
}

/// The text in a block, from left to right. What opens something is noted as a piece, which becomes a tag when it is closed.
struct Inline<'a> {
    text: &'a str,
    at: usize,
    pieces: Vec<Piece<'a>>,
    open: Vec<Open>,
    /// So many backticks are not closed by as many any more: nobody looks again.
    unclosed: [bool; TICKS_MAX],
}

enum Piece<'a> {
    Text(&'a str),
    Html(String),
}

struct Open {
    what: &'static str,
    piece: usize,
}

const LINK: &str = "[";
const IMAGE: &str = "![";

impl<'a> Inline<'a> {
    fn read(&mut self) {
        while let Some(next) = self.rest().chars().next() {
            let rest = self.rest();
            match next {
                '\\' if rest[1..].starts_with(|c: char| c.is_ascii_punctuation()) => {
                    self.at += 1;
                    self.push_text(1);
                }
                '\\' if rest[1..].starts_with('\n') => self.line_break(2),
                ' ' => {
                    let spaces = rest.len() - rest.trim_start_matches(' ').len();
                    match spaces >= 2 && rest[spaces..].starts_with('\n') {
                        true => self.line_break(spaces + 1),
                        false => self.push_text(spaces),
                    }
                }
                '`' => self.code(),
                '*' | '_' => self.emphasis(next),
                '!' if rest.starts_with(IMAGE) => self.begin(IMAGE),
                '[' => self.begin(LINK),
                ']' => self.end_bracket(),
                '<' => self.address(),
                _ => {
                    let plain = |c: char| {
                        !matches!(c, '\\' | ' ' | '`' | '*' | '_' | '!' | '[' | ']' | '<')
                    };
                    let more = rest[next.len_utf8()..].find(|c| !plain(c));
                    self.push_text(more.map_or(rest.len(), |more| next.len_utf8() + more));
                }
            }
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn push_text(&mut self, bytes: usize) {
        self.pieces.push(Piece::Text(&self.rest()[..bytes]));
        self.at += bytes;
    }

    fn push_html(&mut self, html: impl Into<String>, bytes: usize) {
        self.pieces.push(Piece::Html(html.into()));
        self.at += bytes;
    }

    fn line_break(&mut self, bytes: usize) {
        self.push_html("<br>\n", bytes);
    }

    fn code(&mut self) {
        let rest = self.rest();
        let ticks = rest.bytes().take_while(|byte| *byte == b'`').count();
        if ticks >= TICKS_MAX || self.unclosed[ticks] {
            return self.push_text(ticks);
        }
        let inner = &rest[ticks..];
        let mut at = 0;
        while let Some(found) = inner[at..].find('`') {
            let run = inner[at + found..]
                .bytes()
                .take_while(|byte| *byte == b'`')
                .count();
            if run == ticks {
                let mut html = String::from("<code>");
                escape(inner[..at + found].trim(), &mut html);
                html.push_str("</code>");
                return self.push_html(html, ticks + at + found + run);
            }
            at += found + run;
        }
        self.unclosed[ticks] = true;
        self.push_text(ticks);
    }

    fn emphasis(&mut self, mark: char) {
        let rest = self.rest();
        let run = rest.chars().take_while(|c| *c == mark).count();
        let before = self.text[..self.at].chars().next_back();
        let after = rest[run..].chars().next();
        let is_text = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace());
        let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let is_inner = mark == '_' && is_word(before) && is_word(after);
        let (opens, closes) = (is_text(after) && !is_inner, is_text(before) && !is_inner);
        let (one, two) = match mark {
            '*' => ("*", "**"),
            _ => ("_", "__"),
        };
        let mut left = run;
        while left > 0 {
            // Emphasis does not reach over the edge of a link.
            let inner = || {
                let open = self.open.iter().rev();
                open.map(|open| open.what)
                    .take_while(|what| !matches!(*what, LINK | IMAGE))
            };
            let what = match left {
                1 => one,
                // `***` closes what was opened last.
                _ if closes && inner().find(|what| [one, two].contains(what)) == Some(one) => one,
                _ => two,
            };
            let is_open = inner().any(|open| open == what);
            let tag = if what.len() == 2 { "strong" } else { "em" };
            if closes && is_open {
                while let Some(open) = self.open.pop() {
                    if open.what == what {
                        self.pieces[open.piece] = Piece::Html(format!("<{tag}>"));
                        break;
                    }
                }
                self.push_html(format!("</{tag}>"), what.len());
            } else if opens {
                self.begin(what);
            } else {
                self.push_text(what.len());
            }
            left -= what.len();
        }
    }

    /// It is text until it is closed.
    fn begin(&mut self, what: &'static str) {
        if self.open.len() < OPEN_MAX {
            self.open.push(Open {
                what,
                piece: self.pieces.len(),
            });
        }
        self.push_text(what.len());
    }

    fn end_bracket(&mut self) {
        let bracket = self
            .open
            .iter()
            .rposition(|open| matches!(open.what, LINK | IMAGE));
        let target = self.rest()[1..].strip_prefix('(').and_then(target);
        let (Some(bracket), Some((url, bytes))) = (bracket, target) else {
            if let Some(bracket) = bracket {
                self.open.remove(bracket);
            }
            return self.push_text(1);
        };
        let opened = &self.open[bracket];
        let (is_image, piece) = (opened.what == IMAGE, opened.piece);
        // What is open inside stays text; a link has no link around it.
        self.open.truncate(bracket);
        let bytes = bytes + 2;
        if is_image {
            let mut html = String::from("<img src=\"");
            escape(url, &mut html);
            html.push_str("\" alt=\"");
            for inner in self.pieces.drain(piece..).skip(1) {
                if let Piece::Text(text) = inner {
                    escape(text, &mut html);
                }
            }
            html.push_str("\">");
            return self.push_html(html, bytes);
        }
        self.open.retain(|open| open.what != LINK);
        let mut html = String::from("<a href=\"");
        escape(url, &mut html);
        html.push_str("\">");
        self.pieces[piece] = Piece::Html(html);
        self.push_html("</a>", bytes);
    }

    /// `<https://example.com>`
    fn address(&mut self) {
        let inner = &self.rest()[1..];
        let end = match has_scheme(inner) {
            true => inner
                .bytes()
                .take(URL_BYTES_MAX)
                .position(|byte| byte == b'>'),
            false => None,
        };
        match end.map(|end| &inner[..end]).filter(|url| is_address(url)) {
            Some(url) => {
                let mut html = String::from("<a href=\"");
                escape(url, &mut html);
                html.push_str("\">");
                escape(url, &mut html);
                html.push_str("</a>");
                self.push_html(html, url.len() + 2);
            }
            None => self.push_text(1),
        }
    }
}

/// The address behind `](`, and how many bytes it takes with its closing parenthesis. A title is left out.
fn target(text: &str) -> Option<(&str, usize)> {
    if !has_scheme(text.strip_prefix('<').unwrap_or(text)) {
        return None;
    }
    let mut depth = 0;
    let end = text.bytes().take(URL_BYTES_MAX).position(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' if depth > 0 => depth -= 1,
            b')' | b' ' | b'\n' => return true,
            _ => {}
        }
        false
    })?;
    let url = text[..end].trim_start_matches('<').trim_end_matches('>');
    let behind = &text[end..];
    let close = match behind.starts_with(')') {
        true => 0,
        // A title stands in quotes.
        false => {
            let title = behind.trim_start();
            let skipped = behind.len() - title.len();
            let quote = title
                .chars()
                .next()
                .filter(|quote| matches!(quote, '"' | '\''))?;
            let end = title
                .bytes()
                .take(URL_BYTES_MAX)
                .skip(1)
                .position(|byte| byte == quote as u8)?
                + 2;
            if !title[end..].starts_with(')') {
                return None;
            }
            skipped + end
        }
    };
    is_address(url).then_some((url, end + close + 1))
}

fn has_scheme(text: &str) -> bool {
    ["https://", "http://", "mailto:"].iter().any(|scheme| {
        text.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}

fn is_address(url: &str) -> bool {
    has_scheme(url)
        && !url
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || c == '<' || c == '>')
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
