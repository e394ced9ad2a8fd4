use super::*;
use proptest::prelude::*;

/// What people write becomes what they mean.
#[test]
fn markdown_becomes_html() {
    for (markdown, expected) in [
        ("# Goals\n\nMany.", "<h1>Goals</h1>\n<p>Many.</p>\n"),
        (
            "### Three ###\nText\nmore  \nbroken\\\nlines",
            "<h3>Three</h3>\n<p>Text\nmore<br />\nbroken<br />\nlines</p>\n",
        ),
        (
            "a **b *c* d** _e_ snake_case_name",
            "<p>a <strong>b <em>c</em> d</strong> <em>e</em> snake_case_name</p>\n",
        ),
        (
            "***both*** 2 * 3 * 4",
            "<p><em><strong>both</strong></em> 2 * 3 * 4</p>\n",
        ),
        (
            "`a < b` and ``x ` y``",
            "<p><code>a &lt; b</code> and <code>x ` y</code></p>\n",
        ),
        (
            "```rust\nlet a = \"<b>\";\n\n```\nafter",
            "<pre><code class=\"language-rust\">let a = \"&lt;b&gt;\";\n\n</code></pre>\n<p>after</p>\n",
        ),
        (
            "[a *b*](https://x.org/a_b_(c) \"t\") <https://y.org>",
            "<p><a href=\"https://x.org/a_b_(c)\">a <em>b</em></a> <a href=\"https://y.org\">https://y.org</a></p>\n",
        ),
        (
            "![alt \"text\"](https://x.org/i.png)",
            "<p><img src=\"https://x.org/i.png\" alt=\"alt &quot;text&quot;\" /></p>\n",
        ),
        (
            "- one\n- two\n  - inner\n\n1. first\n2. second",
            "<ul>\n<li>one</li>\n<li>two\n<ul>\n<li>inner</li>\n</ul>\n</li>\n</ul>\n<ol>\n<li>first</li>\n<li>second</li>\n</ol>\n",
        ),
        (
            "> quoted\n> > twice",
            "<blockquote>\n<p>quoted</p>\n<blockquote>\n<p>twice</p>\n</blockquote>\n</blockquote>\n",
        ),
        ("---\n\\*not\\*", "<hr />\n<p>*not*</p>\n"),
        ("* * *", "<hr />\n"),
        (
            "|a|b|\n|-|-|\n|1|~~2~~|",
            "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n<tr><td>1</td><td><del>2</del></td></tr>\n</tbody></table>\n",
        ),
        ("", ""),
    ] {
        assert_eq!(html(markdown), expected, "{markdown}");
    }
}

/// Nothing that could run comes out as anything but text.
#[test]
fn what_runs_stays_text() {
    for (markdown, expected) in [
        (
            "<script>alert(1)</script>",
            "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n",
        ),
        ("[x](javascript:alert(1))", "<p>x</p>\n"),
        ("![x](data:image/svg+xml;base64,AA)", "<p>x</p>\n"),
        (
            "[x](https://a.org/\"onmouseover=\"a)",
            "<p><a href=\"https://a.org/%22onmouseover=%22a\">x</a></p>\n",
        ),
        ("<javascript:alert(1)>", "<p>javascript:alert(1)</p>\n"),
        (
            "<!-- [x](https://a.org) -->",
            "<p>&lt;!-- [x](https://a.org) --&gt;</p>\n",
        ),
    ] {
        assert_eq!(html(markdown), expected, "{markdown}");
    }
}

/// A text that opens and never closes is read as fast as any other.
#[test]
fn hostile_texts_are_read_quickly() {
    let began = std::time::Instant::now();
    for unit in [
        "*",
        "**a",
        "_a ",
        "`",
        "``a",
        "[",
        "![",
        "](",
        "[a](",
        "<",
        "> ",
        "- ",
        "\\",
        "* a\n  ",
        "[a](https://",
        "](((",
        "***a** ",
    ] {
        let text = unit.repeat(50_000 / unit.len());
        assert!(!html(&text).is_empty(), "{unit}");
    }
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
}

proptest! {
    /// Whatever is written: every tag is one of ours, it is closed in order, and no attribute holds more than an address or a text.
    #[test]
    fn tags_are_ours_and_balanced(text in "([*_`#>\\[\\]()!<\\-\\\\ \\na-c\"']|https://x|javascript:|<b>){0,60}") {
        let out = html(&text);
        let mut open: Vec<String> = Vec::new();
        let mut rest = out.as_str();
        while let Some(at) = rest.find('<') {
            let end = rest[at..].find('>').expect("a tag ends") + at;
            let tag = &rest[at + 1..end];
            rest = &rest[end + 1..];
            let name = tag.split(' ').next().unwrap_or_default();
            match name.strip_prefix('/') {
                Some(name) => {
                    let closed = open.pop();
                    prop_assert_eq!(closed.as_deref(), Some(name), "{}", out);
                }
                None if ["br", "hr", "img"].contains(&name) => {}
                None => {
                    let known = ["p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li", "pre", "code", "em", "strong", "a"];
                    prop_assert!(known.contains(&name), "{}", out);
                    open.push(name.to_owned());
                }
            }
            if let Some(attribute) = tag.strip_prefix("a ") {
                prop_assert!(attribute.starts_with("href=\"https://x"), "{}", out);
                prop_assert_eq!(attribute.matches('"').count(), 2, "{}", out);
            }
        }
        prop_assert!(open.is_empty(), "{}", out);
    }
}
