//! Posts as HTML, for platforms that take nothing else: CommonMark with tables and struck text, read by `pulldown-cmark`. HTML in it stays the
//! text that it is, and so does a link that leads to no page, so that nothing of what comes out runs anywhere.

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

/// What an address may begin with, in small letters.
const SCHEMES: [&str; 3] = ["https:", "http:", "mailto:"];

/// The HTML of a Markdown text. Every tag in it was written here, and every address begins with `https:`, `http:` or `mailto:`.
pub fn html(markdown: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    // Of links and images in one another, whether each leads somewhere.
    let mut kept = Vec::new();
    let events = Parser::new_ext(markdown, options).filter_map(|event| harmless(event, &mut kept));
    let mut out = String::with_capacity(markdown.len() + markdown.len() / 4);
    pulldown_cmark::html::push_html(&mut out, events);
    out
}

fn harmless<'a>(event: Event<'a>, kept: &mut Vec<bool>) -> Option<Event<'a>> {
    let is_kept = match &event {
        Event::Start(Tag::Link {
            link_type: LinkType::Email,
            ..
        }) => true,
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            leads_to_a_page(dest_url)
        }
        Event::End(TagEnd::Link | TagEnd::Image) => return kept.pop()?.then_some(event),
        _ => return Some(as_text(event)),
    };
    kept.push(is_kept);
    is_kept.then(|| untitled(event))
}

fn as_text(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        other => other,
    }
}

/// Nothing but the address is an attribute.
fn untitled(mut event: Event<'_>) -> Event<'_> {
    if let Event::Start(Tag::Link { title, .. } | Tag::Image { title, .. }) = &mut event {
        *title = "".into();
    }
    event
}

fn leads_to_a_page(address: &str) -> bool {
    SCHEMES.iter().any(|scheme| {
        let start = address.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
