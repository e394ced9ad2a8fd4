//! What is one query and what is none, whatever stands before its words.

use super::*;

#[test]
fn queries_pass() {
    for text in [
        "SELECT 1",
        "select top (5) a from t with (nolock) order by a offset 0 rows fetch next 5 rows only;",
        "WITH c AS (SELECT 1 AS a) SELECT * FROM c -- done; DELETE",
        "(SELECT 1) UNION ALL (SELECT 2)",
        "/* DELETE */ SELECT 'DELETE FROM t; --', N'DROP', [DELETE], \"UPDATE\" FROM t /* ; */ ;  -- x\n",
        "SELECT 'it''s', [a]]b], \"a\"\"b\" FROM [dbo].[order details]",
        "SELECT REPLACE(a, 'x', 'y'), LEFT(b, 2) FROM t WHERE updated_at > @P1 AND is_deleted = 0",
        "SELECT IIF(a = 1, 2, 3), DATEADD(day, -1, x) FROM t CROSS APPLY OPENJSON(j) FOR JSON PATH",
        "SELECT Straße, größe, Ärger FROM Kunden WHERE 名前 = N'日本'",
        "SELECT 0x1F, 1e5, $12.50, -1.5E+3, a.b, t.* FROM t",
        "SELECT CASE WHEN a = 1 THEN 2 END, value, next FROM t AS value",
        "SELECT a$DELETE, #DELETE, @xDELETE FROM #t",
        "SELECT 1 --\r\n",
        r"SELECT 'C:\', [a\], 'a\b' /* \ */ -- \ x",
        "SELECT /* a */ 1 / 2 * 3",
        "SELECT 1., 1.e5, 1.E5, .5e, 1. dataset FROM t AS is_set",
        "SELECT t.reset, [t].reset, \"t\".reset, t . reset, Größe.reset FROM d..asset AS reset",
    ] {
        assert_eq!(
            one_query(text).err().map(|error| error.message),
            None,
            "{text}"
        );
    }
}

/// A statement needs no sign before it, and no white space.
#[test]
fn what_writes_is_refused_wherever_it_stands() {
    for text in [
        "",
        ";",
        "DELETE FROM t",
        "SELECT $1DELETE FROM t",
        "SELECT $DELETE FROM t",
        "SELECT 1e5DELETE FROM t",
        "SELECT 1e+5DELETE FROM t",
        "SELECT 1.DELETE FROM t",
        "SELECT .5DELETE FROM t",
        "SELECT 0x1DELETE FROM t",
        "SELECT 0xDELETE FROM t",
        "SELECT 1.eDELETE FROM t",
        "SELECT 1.e5DELETE FROM t",
        "SELECT 1.E5EXEC p",
        "SELECT 1.e5EXEC(N'COMMIT; DELETE FROM t; BEGIN TRAN')",
        "SELECT 1.e+5EXEC p",
        "SELECT 1.e-DELETE FROM t",
        "SELECT 1.5e5DELETE FROM t",
        "SELECT .5eDELETE FROM t",
        "SELECT $1.eDELETE FROM t",
        "SELECT 0x1.eDELETE FROM t",
        "SELECT 1..e5DELETE FROM t",
        "SELECT a=.e5DELETE FROM t",
        "SELECT .e5DELETE FROM t",
        "SELECT TOP 1NEXT VALUE FOR s",
        "SELECT 'a'DELETE FROM t",
        "SELECT N'a'DELETE FROM t",
        "SELECT [a]DELETE FROM t",
        "SELECT \"a\"DELETE FROM t",
        "SELECT (1)DELETE FROM t",
        "SELECT 1/**/DELETE FROM t",
        "SELECT 1 delete from t",
        "SELECT 1\nDeLeTe t",
        "SELECT 1;DELETE FROM t",
        "SELECT éDELETE FROM t",
        "SELECT a INTO b FROM t",
        "SELECT 1 EXEC p",
        "SELECT 1 EXECUTE('DELETE FROM t')",
        "SELECT * FROM OPENROWSET('x', 'y', 'DELETE FROM t')",
        "SELECT * FROM OPENQUERY(l, 'DELETE FROM t')",
        "SELECT * FROM OPENDATASOURCE('x', 'y').a.b.c",
        "WITH c AS (SELECT 1 AS a) DELETE FROM c",
        "WITH c AS (SELECT 1 AS a) MERGE t USING c ON 1 = 1 WHEN MATCHED THEN UPDATE SET a = 1",
        "WITH c AS (SELECT a FROM t) UPDATE c SET a = 1",
        "SELECT NEXT VALUE FOR s",
        "SELECT NEXT/**/VALUE FOR s",
        "SELECT 1 UPDATETEXT t.c @p 0 0 'x'",
        "SELECT 1 WRITETEXT t.c @p 'x'",
        "SELECT 1 WAITFOR DELAY '1:00'",
        "SELECT 1 SET NOCOUNT ON",
        "SELECT 1 USE master",
        "SELECT 1 DECLARE @x int",
        "SELECT 1\nGO\nDELETE FROM t",
        "SELECT 1 COMMIT",
        "SELECT 1 IF 1 = 1 SELECT 2",
        "SELECT 1 WHILE 1 = 1 SELECT 2",
        "SELECT a FROM t WITH (XLOCK)",
        "SELECT a FROM t WITH (HOLDLOCK)",
        "SELECT a FROM t WITH (SERIALIZABLE)",
        "SELECT a FROM t WITH (REPEATABLEREAD)",
        "SELECT a FROM t WITH (TABLOCK)",
        "SELECT 1 END CONVERSATION @h",
        "SELECT 1 GET CONVERSATION GROUP @g FROM q",
        "{call p}",
        "p",
        "EXEC p",
        "SELECT 1; SELECT 2",
        "SELECT 1;;SELECT 2",
        "SELECT 1; 'a'",
        "'a' SELECT 1",
        "VALUES (1)",
    ] {
        let error = one_query(text).unwrap_err();
        assert_eq!(error.code, "read_only", "{text}");
    }
}

/// Where the server could see another text, nobody guesses.
#[test]
fn what_is_not_clear_is_refused() {
    for text in [
        "SELECT 1 /* /* */ DELETE FROM t -- */",
        "SELECT /* /* */ 1 */ 1",
        "SELECT 1 /*/* */ */",
        "SELECT 1 /*/*/ DELETE FROM t --*/",
        "SELECT 1 /*/ DELETE FROM t --*/",
        "SELECT 1 -- x\rDELETE FROM t",
        "SELECT 1 --\r' \nDELETE FROM t --'",
        "SELECT 1 -- x\u{2028}DELETE FROM t",
        "SELECT 1 -- x\u{85}DELETE FROM t",
        "SELECT 1\u{a0}DELETE FROM t",
        "SELECT 1 \u{ff2b}ILL 52",
        "SELECT 1 \u{212a}ILL 52",
        "SELECT 1 \u{131}nsert t values (1)",
        "SELECT 1 \u{130}NSERT t VALUES (1)",
        "SELECT 1 ope\u{149}",
        "SELECT 1 \u{1f0}oin",
        "SELECT \u{20ac}1DELETE FROM t",
        "SELECT 1\u{b}FROM t",
        "SELECT 0x1\\\nAINSERT t SELECT 1",
        "SELECT 0x1\\\r\nAINSERT t SELECT 1",
        "SELECT 0xabc\\\ndef",
        "SELECT a \\ b",
        "SELECT 1 -- \\\nDELETE FROM t",
        "SELECT 1 -- \\\r\nFROM t",
        "SELECT 1 -- \\",
        "SELECT 1 /* *\\\n/ DELETE FROM t -- */",
        "SELECT 1 /* \\\r\n */",
        "SELECT 1\0DELETE FROM t",
        "SELECT '\0'",
    ] {
        let error = one_query(text).unwrap_err();
        assert_eq!(error.code, "read_only", "{text:?}");
    }
    for text in [
        "SELECT 'a",
        "SELECT [a",
        "SELECT \"a",
        "SELECT 1 /* a",
        "SELECT 'a''",
        "/*/ SELECT 1",
    ] {
        assert_eq!(one_query(text).unwrap_err().code, "syntax_error", "{text}");
    }
}

/// Each refused word is, behind anything that may stand before it.
#[test]
fn each_word_is_refused_behind_anything() {
    for word in REFUSED {
        for before in [
            "SELECT 1 ",
            "SELECT $1",
            "SELECT 2e1",
            "SELECT 'a'",
            "SELECT [a]",
            "SELECT 1.",
            "SELECT 1.e",
            "SELECT 1.e5",
            "SELECT 1.E5",
            "SELECT(1)",
            "SELECT 0x0",
        ] {
            let text = format!("{before}{} x", word.to_ascii_lowercase());
            let error = one_query(&text).unwrap_err();
            assert_eq!(error.code, "read_only", "{text}");
            // Quoted it is a name.
            one_query(&format!("{before} AS [{word}]")).unwrap();
        }
    }
    let mut sorted = REFUSED.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), REFUSED.len());
    assert!(!REFUSED.iter().any(|word| word.contains("SS")));
}

/// Pieces in any order: what stands in quotes and comments says nothing, and a word that stands outside of them is found.
#[test]
fn words_are_found_among_anything() {
    let hidden = [
        "'DELETE'",
        "N'it''s; DROP'",
        "[a]]UPDATE]",
        "\"x\"\"EXEC\"",
        "/* INTO; -- */",
        "-- MERGE\n",
        "'--'",
        "'/*'",
        "[--]",
        "\"/*\"",
        "'['",
        "['']",
    ];
    let plain = [
        " ", "\n", "a", "1", "$1", "1e5", "0x1F", "@P1", "(", ")", ",", "+", "t.x", "1.", "1.e",
        "1.E5", "é", "*", "updated", "_into", "#set",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    for round in 0..20_000 {
        let count = 1 + below(8);
        let mut pieces: Vec<&str> = Vec::new();
        for _ in 0..count {
            pieces.push(match below(2) {
                0 => hidden[below(hidden.len())],
                _ => plain[below(plain.len())],
            });
        }
        // Two that meet may be one other: '' in a text, `--`, a longer name. A blank keeps them apart.
        let text = format!("SELECT {}", pieces.join(" "));
        assert_eq!(
            one_query(&text).err().map(|error| error.message),
            None,
            "{round}: {text}"
        );
        let word = REFUSED[below(REFUSED.len())];
        // Right behind anything that is no name: it begins there.
        let at = below(pieces.len());
        let ends_a_name = |piece: &str| {
            piece.ends_with(|last: char| last.is_ascii_alphanumeric())
                && piece
                    .starts_with(|first: char| first.is_ascii_alphabetic() || "@#_".contains(first))
        };
        let apart = if ends_a_name(pieces[at]) { " " } else { "" };
        let (before, after) = pieces.split_at(at + 1);
        let text = format!(
            "SELECT {}{apart}{word} {}",
            before.join(" "),
            after.join(" ")
        );
        assert!(one_query(&text).is_err(), "{round}: {text}");
    }
}

/// A page's two values are the host's own, and so is no value of a first page.
#[test]
fn a_pages_values_are_nobodys() {
    let page =
        "SELECT s.[a]\nFROM [t] AS s\nORDER BY s.[a]\nOFFSET @P2 ROWS FETCH NEXT @P1 ROWS ONLY";
    assert_eq!((callers(page, 2), callers(page, 3)), (0, 1));
    let first = "SELECT 1\nOFFSET 0 ROWS FETCH NEXT 51 ROWS ONLY";
    assert_eq!((callers(first, 0), callers(first, 1)), (0, 1));
    assert_eq!(callers("SELECT @P1", 1), 1);
}

#[test]
fn places_are_counted_where_they_are_places() {
    for (text, wanted) in [
        ("SELECT 1", 0),
        ("SELECT @P1, @p3, @P2", 2),
        ("SELECT '@P3', [@P4] -- @P5\n, @P1", 1),
        ("SELECT @P10", 10),
        ("SELECT @Px, @@ROWCOUNT, @P", 0),
    ] {
        assert_eq!(places(text).unwrap(), wanted, "{text}");
    }
}
