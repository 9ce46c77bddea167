//! What a store holds that this program never makes: tables, columns, indices, triggers and views, in words that both databases
//! share, and rows of no experiment.
//!
//! ```text
//! table T    column T.c    index on T (a, b)    unique index on T (a)    index on T (a), partial
//! ```
//!
//! What is expected is not written down a second time: it is read from an empty store in memory.

use std::collections::BTreeSet;

use anyhow::Result;
use rusqlite::Connection;

use super::schema;

/// The tables whose rows belong to an experiment.
pub const OF_EXPERIMENTS: [&str; 6] = [
    "progress", "epochs", "leases", "outcomes", "asides", "events",
];

/// What a store of this version holds.
pub fn expected() -> Result<BTreeSet<String>> {
    let empty = Connection::open_in_memory()?;
    empty.execute_batch(schema::META)?;
    for migration in schema::MIGRATIONS {
        empty.execute_batch(migration)?;
    }
    in_sqlite(&empty)
}

/// What a file holds.
pub fn in_sqlite(file: &Connection) -> Result<BTreeSet<String>> {
    let mut objects = BTreeSet::new();
    let mut add = |sql: &str| -> Result<()> {
        let mut statement = file.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            objects.insert(row.get(0)?);
        }
        Ok(())
    };
    // Names that begin with sqlite_ are SQLite's own: it refuses them to everyone else.
    add("SELECT type || ' ' || name FROM sqlite_schema
        WHERE type <> 'index' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")?;
    // Hidden columns, which are generated ones, too.
    add("SELECT 'column ' || t.name || '.' || c.name
        FROM sqlite_schema t, pragma_table_xinfo(t.name) c
        WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")?;
    add(
        "SELECT iif(i.\"unique\", 'unique ', '') || 'index on ' || t.name || ' ('
            || (SELECT group_concat(coalesce(name, '?'), ', ') FROM pragma_index_info(i.name))
            || ')' || iif(i.partial, ', partial', '')
        FROM sqlite_schema t, pragma_index_list(t.name) i
        WHERE t.type = 'table' AND i.origin <> 'pk'",
    )?;
    // Primary keys by themselves: an integer one has no index in SQLite, and one in PostgreSQL.
    add(
        "SELECT 'unique index on ' || t.name || ' (' || (SELECT group_concat(name, ', ')
            FROM (SELECT name FROM pragma_table_info(t.name) WHERE pk > 0 ORDER BY pk)) || ')'
        FROM sqlite_schema t
        WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    Ok(objects)
}

/// The same of PostgreSQL's schema, a text a row.
pub const IN_POSTGRES: &str = "
    SELECT CASE relkind WHEN 'r' THEN 'table ' WHEN 'v' THEN 'view ' ELSE relkind || ' ' END || relname
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

/// What one store holds more or less than expected, in words.
pub fn differences(expected: &BTreeSet<String>, found: &BTreeSet<String>) -> Vec<String> {
    let more = found.difference(expected).cloned();
    let less = expected
        .difference(found)
        .map(|object| format!("that it lacks the {object}"));
    more.chain(less).collect()
}

/// The query for the numbers of no experiment that a table's rows have.
pub fn strays(table: &str) -> String {
    // From each number to the next, in the index: to read every row would take as long as the audit itself.
    format!(
        "WITH RECURSIVE found (number) AS (
            SELECT min(experiment) FROM {table}
            UNION ALL
            SELECT (SELECT min(experiment) FROM {table} WHERE experiment > found.number)
                FROM found WHERE found.number IS NOT NULL)
        SELECT number FROM found WHERE number IS NOT NULL
            AND number NOT IN (SELECT number FROM experiments)"
    )
}
