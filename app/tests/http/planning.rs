//! Planning and simulating before there is an experiment: what is said is what `debora plan` and `debora replicate` say.

use std::process::Command;

use serde_json::{Value, json};

use crate::kit::scratch::Scratch;
use crate::{House, SHORT};

/// Long enough to see something, and small enough to be simulated in milliseconds.
pub const SEEING: &str = r#"name = "model routing"
policy = "soft"   # of three
horizon = 1e6
rho = 0.3
actions = ["small", "large"]
[reward]
name = "quality"
[[cost]]
name = "price"
range = [0.0, 0.02]
threshold = 0.008
"#;

/// What the program says, of a spec in a file.
pub fn program(arguments: &[&str], spec: &str) -> Value {
    let text = said(arguments, spec, true);
    serde_json::from_str(&text).unwrap()
}

fn said(arguments: &[&str], spec: &str, json: bool) -> String {
    let folder = Scratch::new("planning");
    let file = folder.join("spec.toml");
    std::fs::write(&file, spec).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_debora"));
    command.arg(arguments[0]).arg(&file).args(&arguments[1..]);
    let output = command.args(json.then_some("--json")).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn means(rows: [[f64; 2]; 2]) -> Value {
    let row = |[quality, price]: [f64; 2]| json!({ "quality": quality, "price": price });
    json!({ "small": row(rows[0]), "large": row(rows[1]) })
}

#[tokio::test]
async fn a_plan_is_what_the_program_plans() {
    let house = House::new();
    for spec in [SEEING, SHORT] {
        let planned = house
            .post("/v1/plan", &json!({ "spec": spec }))
            .await
            .expect(200);
        assert_eq!(planned["plan"], program(&["plan"], spec));
        // The program breaks lines; words and their order are the same.
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let spoken = words(&said(&["plan"], spec, false));
        for sentence in planned["sentences"].as_array().unwrap() {
            let sentence = sentence.as_str().unwrap();
            assert!(
                spoken.contains(&words(sentence)),
                "{sentence:?} is not in {spoken}"
            );
        }
    }
    let body = json!({ "spec": SEEING, "gap": 0.01 });
    let planned = house.post("/v1/plan", &body).await.expect(200);
    assert_eq!(planned["plan"], program(&["plan", "--gap", "0.01"], SEEING));
}

#[tokio::test]
async fn a_plan_has_what_will_be_seen_and_when() {
    let house = House::new();
    let planned = house
        .post("/v1/plan", &json!({ "spec": SEEING }))
        .await
        .expect(200);
    let exploration = &planned["exploration"];
    assert_eq!(exploration["rounds"], planned["plan"]["exploration_rounds"]);
    let share = exploration["rounds"].as_f64().unwrap() / 1e6;
    assert_eq!(exploration["share"], share);
    assert_eq!(planned["quantities"], json!(["quality", "price"]));
    let looks = planned["looks"].as_array().unwrap();
    // The first look ends exploration, and the last has the gap that the plan names.
    assert_eq!(looks[0]["round"], exploration["rounds"]);
    assert_eq!(looks.last().unwrap()["gap"], planned["plan"]["detectable"]);
    assert!(
        looks
            .iter()
            .all(|look| look["widths"].as_array().unwrap().len() == 2)
    );
    assert_eq!(planned.get("remedy"), None);
}

#[tokio::test]
async fn the_remedy_of_a_blind_plan_can_be_applied_as_it_is() {
    let house = House::new();
    let short = SEEING.replace("1e6", "200 # a day");
    let planned = house
        .post("/v1/plan", &json!({ "spec": short }))
        .await
        .expect(200);
    assert_eq!(planned["plan"]["blind"], true);
    assert_eq!(
        planned["exploration"],
        json!({ "rounds": null, "share": 1.0 })
    );
    let remedy = &planned["remedy"];
    assert_eq!(remedy["horizon"], planned["plan"]["horizon_needed"]);
    let spec = remedy["spec"].as_str().unwrap();
    assert!(
        spec.contains("# a day") && spec.contains("# of three"),
        "{spec}"
    );
    let again = house
        .post("/v1/plan", &json!({ "spec": spec }))
        .await
        .expect(200);
    assert_eq!(again["plan"]["blind"], false);
    assert_eq!(again["horizon"], remedy["horizon"]);
    let create = json!({ "spec": spec, "id": "e" });
    house.post("/v1/experiments", &create).await.expect(201);
}

#[tokio::test]
async fn a_spec_that_is_refused_has_its_field_and_its_place() {
    let house = House::new();
    let cases = [
        ("1e6", "0", json!(["horizon", 3, 11])),
        ("rho = 0.3\n", "", json!(["rho", null, null])),
        ("0.008", "-8", json!(["cost.0.threshold", 11, 13])),
        ("\"large\"", "\"small\"", json!(["actions.1", 5, 21])),
        ("\"soft\"", "soft", json!([null, 2, 10])),
    ];
    for (right, wrong, place) in cases {
        let body = json!({ "spec": SEEING.replacen(right, wrong, 1) });
        for path in ["/v1/plan", "/v1/experiments"] {
            let refused = house.post(path, &body).await.refused(422, "spec");
            let found = ["field", "line", "column"].map(|key| refused[key].clone());
            assert_eq!(json!(found), place, "{refused}");
        }
    }
    let gap = json!({ "spec": SEEING, "gap": 2 });
    assert_eq!(
        house.post("/v1/plan", &gap).await.refused(422, "unfit")["field"],
        "gap"
    );
}

#[tokio::test]
async fn the_horizon_for_a_gap_is_not_searched_for_if_that_takes_long() {
    let house = House::new();
    let names: Vec<String> = (0..1_025).map(|number| format!("\"{number}\"")).collect();
    let spec = SEEING.replace("\"small\", \"large\"", &names.join(", "));
    house
        .post("/v1/plan", &json!({ "spec": spec }))
        .await
        .expect(200);
    let body = json!({ "spec": spec, "gap": 1e-9 });
    let refused = house.post("/v1/plan", &body).await.refused(422, "unfit");
    assert_eq!(
        (&refused["field"], &refused["value"]),
        (&json!("gap"), &json!(2_050))
    );
    assert!(
        refused["message"].as_str().unwrap().contains("debora plan"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_simulation_is_what_the_program_replicates() {
    let house = House::new();
    let body = json!({ "spec": SEEING, "means": means([[0.4, 0.001], [0.7, 0.015]]), "pairs": 4 });
    let simulated = house.post("/v1/simulate", &body).await.expect(200);
    let pairs = simulated["pairs"].as_u64().unwrap().to_string();
    let spec = simulated["spec"].as_str().unwrap();
    assert!(spec.starts_with(SEEING.trim_end()), "{spec}");
    let world =
        "[world]\nkind = \"bernoulli\"\nreward = [0.4, 0.7]\ncost.\"price\" = [0.001, 0.015]\n";
    assert!(spec.ends_with(world), "{spec}");
    let mut replicated = program(&["replicate", "--pairs", &pairs], spec);
    // How long it took is the program's alone.
    replicated.as_object_mut().unwrap().remove("seconds");
    assert_eq!(simulated["found"], replicated);
    // What is played is within the two prices, and near the threshold, as the better action is too dear.
    let limit = &simulated["limits"][0];
    assert_eq!(
        (&limit["name"], &limit["threshold"]),
        (&json!("price"), &json!(0.008))
    );
    let quantiles = ["p05", "median", "p95"].map(|key| limit[key].as_f64().unwrap());
    assert!(
        quantiles.is_sorted() && quantiles[0] > 0.001 && quantiles[2] < 0.01,
        "{quantiles:?}"
    );
    let identical = format!("identical in {} of {pairs} pairs", replicated["identical"]);
    let sentences = simulated["sentences"].to_string();
    assert!(sentences.contains(&identical), "{sentences}");
}

#[tokio::test]
async fn guesses_that_do_not_fit_are_refused_by_name() {
    let house = House::new();
    let right = means([[0.4, 0.001], [0.7, 0.015]]);
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut means = right.clone();
        change(&mut means);
        json!({ "spec": SEEING, "means": means })
    };
    let cases = [
        (
            changed(&|means| means["small"]["price"] = json!(0.03)),
            "means.small.price",
        ),
        (
            changed(&|means| means["small"] = json!({ "quality": 0.5 })),
            "means.small.price",
        ),
        (
            changed(&|means| means["medium"] = json!({})),
            "means.medium",
        ),
        (
            changed(&|means| means["small"]["cost"] = json!(0.0)),
            "means.small.cost",
        ),
        (
            json!({ "spec": SEEING, "means": right, "pairs": 0 }),
            "pairs",
        ),
        (
            json!({ "spec": format!("{SEEING}[world]\nkind = 'bernoulli'\nreward = [0, 1]\ncost.price = [0, 0]"), "means": right }),
            "world",
        ),
    ];
    for (body, field) in cases {
        let refused = house
            .post("/v1/simulate", &body)
            .await
            .refused(422, "unfit");
        assert_eq!(refused["field"], field, "{refused}");
    }
    // Too many for a second, with what to do instead.
    let actions: Vec<String> = (0..4_201).map(|number| format!("\"a{number}\"")).collect();
    let spec = format!(
        "policy = 'free'\nhorizon = 1e15\nrho = 0.1\nactions = [{}]",
        actions.join(", ")
    );
    let many = json!({ "spec": spec, "means": {} });
    let refused = house
        .post("/v1/simulate", &many)
        .await
        .refused(422, "unfit");
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("debora replicate"),
        "{refused}"
    );
}
