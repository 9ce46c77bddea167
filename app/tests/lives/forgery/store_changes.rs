//! Single forgeries of a store, in SQL.

/// All of it replaced by what another run with the same key and other outcomes left.
pub const REWRITTEN: &str = "everything rewritten with other outcomes";

/// Each by its name.
pub const ALL: &[(&str, &str)] = &[
    // The store is another one before this is applied.
    (REWRITTEN, ""),
    // Rounds.
    (
        "a reward of an early epoch",
        "UPDATE outcomes SET feedback = (SELECT feedback FROM outcomes WHERE round = 5) WHERE round = 2",
    ),
    (
        "a reward of the last epoch",
        "UPDATE outcomes SET feedback = (SELECT feedback FROM outcomes WHERE round = 26) WHERE round = 28",
    ),
    (
        "an outcome's time",
        "UPDATE outcomes SET at = at + 1 WHERE round = 4",
    ),
    (
        "an outcome's actor",
        "UPDATE outcomes SET actor = (SELECT number FROM actors WHERE name = 'ann') WHERE round = 4",
    ),
    (
        "an imputed outcome called told",
        "UPDATE outcomes SET imputed = 0 WHERE round = 6",
    ),
    (
        "an outcome beyond the horizon",
        "INSERT INTO outcomes SELECT experiment, 29, feedback, imputed, at, actor FROM outcomes WHERE round = 1",
    ),
    // Leases.
    (
        "an action",
        "UPDATE leases SET actions = zeroblob(length(actions)) WHERE kind = 0 AND actions <> zeroblob(length(actions))",
    ),
    (
        "a request's time",
        "UPDATE leases SET at = at - 1 WHERE kind = 0 AND first = 1",
    ),
    (
        "a request's key",
        "UPDATE leases SET request_key = 'request x' WHERE kind = 0 AND first = 1",
    ),
    (
        "a request's asked rounds",
        "UPDATE leases SET asked = asked + 1 WHERE kind = 0 AND first = 1",
    ),
    (
        "a request's waiting clock",
        "UPDATE leases SET waited = waited + 1 WHERE kind = 0 AND first = 1",
    ),
    (
        "a request removed",
        "DELETE FROM leases WHERE kind = 0 AND first = 1",
    ),
    (
        "overtime and its outcomes removed",
        "DELETE FROM leases WHERE kind = 1; DELETE FROM uncounted WHERE kind = 1",
    ),
    (
        "a request's key that is held back",
        "CREATE TEMP TABLE swapped AS SELECT (SELECT request_key FROM leases WHERE kind = 0 AND first = 1) AS inside,
            (SELECT request_key FROM leases WHERE kind = 2 ORDER BY epoch, first LIMIT 1) AS outside;
        UPDATE leases SET request_key = '' WHERE request_key = (SELECT inside FROM swapped);
        UPDATE leases SET request_key = (SELECT inside FROM swapped) WHERE request_key = (SELECT outside FROM swapped);
        UPDATE leases SET request_key = (SELECT outside FROM swapped) WHERE request_key = ''",
    ),
    (
        "a held back action",
        "UPDATE leases SET actions = zeroblob(length(actions)) WHERE kind = 2 AND first = 1",
    ),
    (
        "holdback and its outcomes removed",
        "DELETE FROM leases WHERE kind = 2; DELETE FROM uncounted WHERE kind = 2",
    ),
    // Uncounted outcomes.
    (
        "a late outcome's values",
        "UPDATE uncounted SET feedback = (SELECT feedback FROM outcomes WHERE round = 5) WHERE kind = 0 AND number = 3",
    ),
    (
        "a late outcome removed",
        "DELETE FROM uncounted WHERE kind = 0 AND number = 3",
    ),
    (
        "the last fact removed",
        "DELETE FROM uncounted WHERE position = (SELECT max(position) FROM uncounted)",
    ),
    (
        "an overtime outcome's values",
        "UPDATE uncounted SET feedback = (SELECT feedback FROM outcomes WHERE round = 5) WHERE kind = 1 AND position = (SELECT min(position) FROM uncounted WHERE kind = 1)",
    ),
    (
        "a holdback outcome's values",
        "UPDATE uncounted SET feedback = (SELECT feedback FROM outcomes WHERE round = 5) WHERE kind = 2 AND position = (SELECT min(position) FROM uncounted WHERE kind = 2)",
    ),
    (
        "an uncounted outcome's position",
        "UPDATE uncounted SET position = position + 1 WHERE position = (SELECT max(position) FROM uncounted)",
    ),
    (
        "two uncounted outcomes in the other order",
        "UPDATE uncounted SET position = 2 * (SELECT max(position) FROM uncounted) - 1 - position WHERE position > (SELECT max(position) FROM uncounted) - 2",
    ),
    // Events.
    (
        "a reason",
        "UPDATE events SET reason = 'none' WHERE what = 'paused'",
    ),
    (
        "when it was paused",
        "UPDATE events SET at = at - 5 WHERE what = 'paused'",
    ),
    (
        "paused and resumed hidden",
        "DELETE FROM events WHERE what IN ('paused', 'resumed')",
    ),
    (
        "what happened",
        "UPDATE events SET what = 'closed' WHERE what = 'paused'",
    ),
    (
        "an event's number",
        "UPDATE events SET number = number + 10",
    ),
    // The experiment.
    ("its id", "UPDATE experiments SET id = 'other'"),
    (
        "when it was created",
        "UPDATE experiments SET created_at = created_at - 1",
    ),
    (
        "its key",
        "UPDATE experiments SET key = replace(replace(key, '0', '1'), '2', '3')",
    ),
    (
        "its values version",
        "UPDATE experiments SET values_version = 1",
    ),
    (
        "the name of an actor",
        "UPDATE actors SET name = 'carl' WHERE name = 'ann'",
    ),
    // Epochs.
    (
        "when the last epoch closed",
        "UPDATE epochs SET closed_at = closed_at + 1 WHERE epoch = (SELECT max(epoch) FROM epochs)",
    ),
    (
        "an estimate",
        "UPDATE epochs SET record = replace(record, '\"mean\":0.', '\"mean\":0.1') WHERE epoch = 2",
    ),
    (
        "an epoch's hash",
        "UPDATE epochs SET hash = rounds_hash WHERE epoch = 1",
    ),
    (
        "what an epoch's hash is over",
        "UPDATE epochs SET leases_hash = NULL, journal_end = NULL, journal = NULL WHERE epoch = 1",
    ),
    (
        "a snapshot",
        "UPDATE epochs SET snapshot = x'00' WHERE epoch = 1",
    ),
    (
        "an epoch added",
        "INSERT INTO epochs SELECT experiment, epoch + 100, record, snapshot, opened_at, closed_at, rounds_hash, hash, leases_hash, journal_end, journal FROM epochs WHERE epoch = 0",
    ),
    // Counts.
    (
        "the number of late outcomes",
        "UPDATE progress SET progress = json_set(progress, '$.late', json_extract(progress, '$.late') + 1)",
    ),
    (
        "the head",
        "UPDATE progress SET progress = json_set(progress, '$.head', json_extract(progress, '$.digest'))",
    ),
    // What hides things, or could.
    (
        "a trigger",
        "CREATE TRIGGER quiet AFTER INSERT ON outcomes BEGIN DELETE FROM outcomes WHERE round = new.round; END",
    ),
    ("a table", "CREATE TABLE hidden (x)"),
    ("a column", "ALTER TABLE outcomes ADD COLUMN note TEXT"),
    ("an index gone", "DROP INDEX lease_requests"),
    (
        "rows of no experiment",
        "INSERT INTO outcomes SELECT 99, round, feedback, imputed, at, actor FROM outcomes WHERE round = 1",
    ),
];
