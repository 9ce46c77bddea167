//! A place in PostgreSQL for one test.

/// The address of a PostgreSQL schema of its own.
pub fn schema(name: &str) -> String {
    let url = std::env::var("DEBORA_TEST_POSTGRES");
    let url = url.expect(
        "DEBORA_TEST_POSTGRES is not set; run the tests as `scripts/with-postgres cargo test`",
    );
    let schema = format!("{name}_{}", std::process::id());
    let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    client
        .batch_execute(&format!("CREATE SCHEMA {schema}"))
        .unwrap();
    format!("{url}&options=-csearch_path%3D{schema}")
}
