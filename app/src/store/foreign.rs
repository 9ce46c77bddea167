//! What a store holds that this program never makes: tables, columns, indices, triggers, views, and rows of no experiment.
//!
//! What is expected is not written down a second time: it is read from an empty store in memory. A file's must be the same
//! text for text. PostgreSQL keeps no text, so its objects are compared in words:
//!
//! ```text
//! table T    column T.c    index on T (a, b)    unique index on T (a)    index on T (a), partial
//! ```

use std::collections::BTreeSet;
use std::sync::LazyLock;

use anyhow::Result;
use rusqlite::Connection;

use super::schema;

/// The objects of a store of this version: as they were made, and in words.
static EXPECTED: LazyLock<[BTreeSet<String>; 2]> = LazyLock::new(|| {
    // Once: an audit of a store looks again for each experiment.
    let empty = || -> Result<[BTreeSet<String>; 2]> {
        let file = Connection::open_in_memory()?;
        file.execute_batch(schema::TABLES)?;
        Ok([texts(&file, AS_MADE)?, texts(&file, IN_WORDS)?])
    };
    empty().expect("an empty store can be made in memory")
});

// Names that begin with sqlite_ are SQLite's own: it refuses them to everyone else.
const AS_MADE: &str = "SELECT type || ' ' || name || ': ' || sql FROM sqlite_schema
    WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";

// Primary keys by themselves: an integer one has no index in SQLite, and one in PostgreSQL.
const IN_WORDS: &str = "
    SELECT type || ' ' || name FROM sqlite_schema WHERE type <> 'index'
    UNION ALL SELECT 'column ' || t.name || '.' || c.name
        FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'
    UNION ALL SELECT iif(i.\"unique\", 'unique ', '') || 'index on ' || t.name || ' ('
            || (SELECT group_concat(name, ', ') FROM pragma_index_info(i.name)) || ')'
            || iif(i.partial, ', partial', '')
        FROM sqlite_schema t, pragma_index_list(t.name) i WHERE t.type = 'table' AND i.origin <> 'pk'
    UNION ALL SELECT 'unique index on ' || t.name || ' (' || (SELECT group_concat(name, ', ')
            FROM (SELECT name FROM pragma_table_info(t.name) WHERE pk > 0 ORDER BY pk)) || ')'
        FROM sqlite_schema t WHERE t.type = 'table'";

/// The same of PostgreSQL's schema, a text a row.
pub const IN_POSTGRES: &str = "
    SELECT CASE relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' ELSE 'object ' || relkind::text END
            || ' ' || relname
        FROM pg_class WHERE relnamespace = current_schema()::regnamespace
            AND relkind NOT IN ('i', 'S', 'c')
    UNION ALL SELECT 'column ' || c.relname || '.' || a.attname
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
            AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL SELECT CASE WHEN i.indisunique THEN 'unique ' ELSE '' END || 'index on ' || c.relname
            || ' (' || (SELECT string_agg(coalesce(a.attname, '?'), ', ' ORDER BY k.place)
                FROM unnest(i.indkey) WITH ORDINALITY k (number, place)
                LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
                    AND k.number > 0)
            || ')' || CASE WHEN i.indpred IS NULL THEN '' ELSE ', partial' END
            || CASE WHEN i.indisvalid THEN '' ELSE ', broken' END
        FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
        WHERE c.relnamespace = current_schema()::regnamespace
    UNION ALL SELECT 'trigger ' || t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal
    UNION ALL SELECT 'rule ' || r.rulename FROM pg_rules r
        WHERE r.schemaname = current_schema()
    UNION ALL SELECT 'policy ' || p.policyname FROM pg_policies p
        WHERE p.schemaname = current_schema()";

/// In what a file differs from an empty store.
pub fn in_sqlite(file: &Connection) -> Result<Vec<String>> {
    Ok(differences(&EXPECTED[0], &texts(file, AS_MADE)?))
}

/// In what a PostgreSQL schema does, by what it answers to [`IN_POSTGRES`].
pub fn in_postgres(found: &BTreeSet<String>) -> Result<Vec<String>> {
    Ok(differences(&EXPECTED[1], found))
}

fn texts(file: &Connection, sql: &str) -> Result<BTreeSet<String>> {
    let mut statement = file.prepare(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn differences(expected: &BTreeSet<String>, found: &BTreeSet<String>) -> Vec<String> {
    // Which it is, without the statement that made it.
    let name = |object: &String| object.split(':').next().unwrap_or_default().to_owned();
    let more = found.difference(expected).map(name);
    let less = expected
        .difference(found)
        .map(|object| format!("that it lacks {}", name(object)));
    more.chain(less).collect()
}

/// The query for rows of no experiment, in words, and for experiments without progress, which are found through it.
pub fn strays() -> String {
    let tables = [
        "progress",
        "epochs",
        "leases",
        "outcomes",
        "uncounted",
        "events",
        "webhook_cursors",
    ];
    // From each experiment to the next, in the index: to read every row would take as long as the audit itself.
    let walk = |table| {
        format!(
            "{table}_of (number) AS (
                SELECT min(experiment) FROM {table}
                UNION ALL SELECT (SELECT min(experiment) FROM {table} WHERE experiment > {table}_of.number)
                    FROM {table}_of WHERE {table}_of.number IS NOT NULL)"
        )
    };
    let found = |table| {
        format!(
            "UNION ALL SELECT 'a row of {table} of no experiment, number ' || number FROM {table}_of
                WHERE number IS NOT NULL AND number NOT IN (SELECT number FROM experiments)"
        )
    };
    format!(
        "WITH RECURSIVE {} SELECT 'an experiment without progress, number ' || number FROM experiments
            WHERE number NOT IN (SELECT experiment FROM progress) {}",
        tables.map(walk).join(", "),
        tables.map(found).join(" ")
    )
}
