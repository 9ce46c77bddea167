//! Tables: rows by name, in any column order, as many as there are.

use std::io::{Cursor, Read};
use std::time::Instant;

use debora::WorldKey;
use debora::lab::world::{Recorded, World};
use debora::spec::Spec;

use super::{FREE, SOFT, parse, simulate};

const TABLE: &str = "[world]\nkind = \"table\"\nfile = \"rows.csv\"\n";

fn soft() -> Spec {
    parse(&format!("{SOFT}{TABLE}"))
}

fn pulls(world: &dyn World) -> Vec<Vec<f64>> {
    let mut values = vec![0.0; world.means().len()];
    let mut pull = |number| {
        world.pull(
            WorldKey::from(1u64),
            (number % 2) as u32,
            number,
            &mut values,
        );
        values.clone()
    };
    (0..50).map(&mut pull).collect()
}

#[test]
fn rows_are_those_of_the_library() {
    let spec = soft();
    let rows = "action,reward,price\na,1,0.5\nb,0.25,0\na,0.5,0.125\n";
    let ours = simulate(&spec, rows).unwrap().world;
    let direct = [
        (0, vec![1.0, 0.5]),
        (1, vec![0.25, 0.0]),
        (0, vec![0.5, 0.125]),
    ];
    let direct = Recorded::new(&spec.problem, direct).unwrap();
    assert_eq!(ours.means(), [[0.75, 0.25], [0.3125, 0.0]]);
    assert_eq!(pulls(&*ours), pulls(&direct));
}

#[test]
fn the_same_rows_have_the_same_fingerprint_however_written() {
    let fingerprint = |rows: &str| simulate(&soft(), rows).unwrap().fingerprint;
    let rows = fingerprint("action,reward,price\na,1,0.5\nb,0.25,0\na,0.5,0.125\n");
    for same in [
        "\u{feff}price,action,reward\r\n0.5,a,1\r\n0,b,0.25\r\n0.125,a,0.5",
        "reward , action,\" price\"\n\n1.0, a ,5e-1\n0.25,\"b\",-0.0\n\n.5,a,1.25E-1\n\n",
        // Rows of different actions may change places: each action draws from its own.
        "action,reward,price\nb,0.25,0\na,1,0.5\na,0.5,0.125\n",
    ] {
        assert_eq!(fingerprint(same), rows, "{same}");
    }
    for other in [
        "action,reward,price\na,0.5,0.125\nb,0.25,0\na,1,0.5\n",
        "action,reward,price\na,1,0.5\nb,0.25,0\na,0.5,0.126\n",
        "action,reward,price\na,1,0.5\nb,0.25,0\na,0.5,0.125\nb,0.25,0\n",
        "action,reward,price\na,1,0.5\nb,0.25,0\nb,0.5,0.125\n",
    ] {
        assert_ne!(fingerprint(other), rows, "{other}");
    }
    let elsewhere = parse(&format!("{SOFT}{}", TABLE.replace("rows.csv", "other.csv")));
    let opened = elsewhere.world(&mut |file| {
        assert_eq!(file, "other.csv");
        Ok(Box::new(Cursor::new(
            "action,reward,price\na,1,0.5\nb,0.25,0\na,0.5,0.125\n",
        )))
    });
    assert_eq!(opened.unwrap().fingerprint, rows);
}

#[test]
fn other_columns_are_ignored_where_the_wanted_ones_are_named() {
    let rows = simulate(&soft(), "action,reward,price\na,1,0.5\nb,0.25,0\n").unwrap();
    let named = parse(&format!(
        "{SOFT}{TABLE}columns = {{ action = 'arm', reward = 'clicks', price = 'usd' }}\n"
    ));
    let wide = "day,usd,arm,clicks,note\n1,0.5,a,1,x\n2,0,b,0.25,\"a, b\"\n";
    let named = simulate(&named, wide).unwrap();
    // The same rows: what columns are called is no part of an experiment.
    assert_eq!(named.fingerprint, rows.fingerprint);
    // What is not named has the name it has without.
    let some = parse(&format!("{SOFT}{TABLE}columns = {{ reward = 'clicks' }}\n"));
    let some = simulate(&some, "price,action,clicks,day\n0.5,a,1,1\n0,b,0.25,2\n").unwrap();
    assert_eq!(some.fingerprint, rows.fingerprint);
}

#[test]
fn the_reward_s_column_may_have_the_reward_s_name() {
    let rewarded = format!("{FREE}[reward]\nname = 'visits'\n{TABLE}");
    let spec = parse(&rewarded);
    let [own, plain] = ["visits", "reward"]
        .map(|name| simulate(&spec, &format!("action,{name}\na,1\nb,0.25\n")).unwrap());
    assert_eq!(own.fingerprint, plain.fingerprint);
}

#[test]
fn semicolons_tabs_and_decimal_commas_are_recognised() {
    let fingerprint = |rows: &str| simulate(&soft(), rows).unwrap().fingerprint;
    let rows = fingerprint("action,reward,price\na,1,0.5\nb,0.25,0\n");
    for same in [
        "action;reward;price\na;1;0.5\nb;0.25;0\n",
        "\u{feff}action;reward;price\r\na;1;0,5\r\nb;0,25;0\r\n",
        "action\treward\tprice\na\t1\t0.5\nb\t0,25\t0\n",
    ] {
        assert_eq!(fingerprint(same), rows, "{same}");
    }
}

#[test]
fn spaces_around_a_name_are_those_of_the_name_or_of_the_file() {
    let spec = parse(&format!(
        "{}{TABLE}",
        SOFT.replace("\"b\"", "\"b \"").replace("price", " price")
    ));
    let world = simulate(&spec, " action, price,reward\n a,0.5,1\nb ,0.25,0\n")
        .unwrap()
        .world;
    assert_eq!(world.means(), [[1.0, 0.0], [0.5, 0.25]]);
}

#[test]
fn values_outside_are_clipped_if_the_spec_says_so() {
    let spec = parse(&format!("outside = 'clip'\n{FREE}{TABLE}"));
    let world = simulate(
        &spec,
        "action,reward\na,-3\na,1\nb,inf\nb,1e300\nb,0.25\nb,0.75\n",
    )
    .unwrap()
    .world;
    assert_eq!(world.means(), [[0.5, 0.75]]);
}

#[test]
fn what_fails_to_read_is_told() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is gone"))
        }
    }
    let start = Cursor::new("action,reward,price\na,1,0.5\n");
    let open = |reader: Box<dyn Read>| {
        let mut reader = Some(reader);
        soft()
            .world(&mut |_| Ok(reader.take().unwrap()))
            .err()
            .unwrap()
            .to_string()
    };
    assert_eq!(
        open(Box::new(Broken)),
        "rows.csv:1: cannot be read: the disk is gone"
    );
    assert_eq!(
        open(Box::new(start.chain(Broken))),
        "rows.csv:3: cannot be read: the disk is gone"
    );
    let bytes = Cursor::new(b"action,reward,price\n\xff\xfe,1,0.5\n".to_vec());
    let message = "rows.csv:2: row 1: unknown action \"\u{fffd}\u{fffd}\"; choose from a, b";
    assert_eq!(open(Box::new(bytes)), message);
}

/// Rows as they are read, so that the test itself keeps none.
struct Endless {
    rows: u64,
    line: Cursor<String>,
}

impl Endless {
    fn new(rows: u64) -> Self {
        Self {
            rows,
            line: Cursor::new("action,reward,price\n".to_owned()),
        }
    }
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.line.read(buffer)?;
        if read > 0 || self.rows == 0 {
            return Ok(read);
        }
        let batch = self.rows.min(1_000);
        let row = |row: u64| {
            format!(
                "{},{},{:.6}\n",
                ["a", "b"][(row % 2) as usize],
                row % 3 / 2,
                (row % 1_000) as f64 / 1e3
            )
        };
        self.line = Cursor::new((0..batch).map(row).collect());
        self.rows -= batch;
        self.line.read(buffer)
    }
}

fn read_many(rows: u64) {
    let (spec, start) = (soft(), Instant::now());
    let simulated = spec
        .world(&mut |_| Ok(Box::new(Endless::new(rows))))
        .unwrap();
    assert!((simulated.world.means()[1][0] - 0.499).abs() < 1e-9);
    println!("{rows} rows in {:.1?}", start.elapsed());
}

#[test]
fn a_hundred_thousand_rows_are_read() {
    read_many(100_000);
}

/// 160 MB of values; `cargo test --release --test fast -- --ignored --nocapture` says how long it takes.
#[test]
#[ignore = "takes seconds in release mode, and 300 MB"]
fn ten_million_rows_are_read() {
    read_many(10_000_000);
}
