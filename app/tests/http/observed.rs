//! What was observed beside what replicates, and whether limits were kept: against a plain account of all that was told.

use serde_json::{Value, json};

use crate::{House, SHORT, short_with};

/// What a plain account has of some outcomes: how many, and the sums of reward and price.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    count: u64,
    reward: f64,
    price: f64,
}

impl Account {
    fn add(&mut self, reward: f64, price: f64) {
        self.count += 1;
        self.reward += reward;
        self.price += price;
    }
}

/// Whether a number of the state is this one, but for the rounding of sums.
#[track_caller]
fn near(state: &Value, value: f64) {
    let stated = state.as_f64().unwrap_or_else(|| panic!("{state}"));
    assert!((stated - value).abs() < 1e-12, "{stated}, not {value}");
}

/// Hundreds of rounds of exploration, and then estimates with cells of a tenth of the range.
const EXPLORED: &str = r#"
policy = "soft"
horizon = 20_000
rho = 0.9
delta = 0.1
actions = ["left", "right"]
[reward]
name = "quality"
[[cost]]
name = "price"
range = [0.0, 0.02]
threshold = 0.01
[service]
outcome_wait = "10s"
"#;

/// Plays a round: decides, and tells unless it is to go missing.
async fn play(house: &House, rounds: &[u64], missing: u64) -> [Account; 2] {
    let mut told = [Account::default(); 2];
    let mut place = 0;
    for &n in rounds {
        let decided = house.decide("e", n).await;
        let mut outcomes = Vec::new();
        for decision in decided["decisions"].as_array().unwrap() {
            place += 1;
            // Values with many digits, which sums of floats would round.
            let (reward, price) = (0.1 + 0.0001 * place as f64, 0.02 / 3.0 * (place % 2) as f64);
            if place % missing != 0 {
                told[decision["action"].as_u64().unwrap() as usize].add(reward, price);
                outcomes.push(
                    json!({ "round": decision["round"], "reward": reward, "costs": [price] }),
                );
            }
        }
        house.tell("e", &outcomes.into()).await;
        house.wait(10_000);
        house.service.tick().await.unwrap();
    }
    told
}

#[tokio::test]
async fn means_are_those_of_what_was_told_beside_estimates_and_their_cells() {
    let mut house = House::new();
    house.create("e", EXPLORED).await;
    let told = play(&house, &[500; 6], 5).await;
    let state = house.state("e").await;
    assert!(state["imputed"].as_u64().unwrap() > 3, "{state}");
    let means = state["means"].as_array().unwrap();
    assert_eq!(means.len(), 4);
    for mean in means {
        let account = told[mean["action"].as_u64().unwrap() as usize];
        let sum = if mean["quantity"] == "price" {
            account.price
        } else {
            account.reward
        };
        let observed = &mean["observed"];
        assert_eq!(observed["count"], account.count, "{mean}");
        near(&observed["mean"], sum / account.count as f64);
        let number = |value: &Value| value.as_f64().unwrap();
        let (low, high) = (&observed["interval"]["low"], &observed["interval"]["high"]);
        let mean_told = sum / account.count as f64;
        assert!(
            number(low) < mean_told && mean_told < number(high),
            "{mean}"
        );
        let estimate = &mean["estimate"];
        let cell = &estimate["cell"];
        assert!(
            number(&cell["low"]) <= number(&estimate["value"])
                && number(&estimate["value"]) <= number(&cell["high"]),
            "{mean}"
        );
        let why = mean["why"].as_str().unwrap();
        assert!(
            why.starts_with("The estimate is the middle of the cell from ")
                && why.contains(
                    " were imputed, which the estimate counts and the observed mean does not."
                ),
            "{why}"
        );
    }
    assert_eq!(state["intervals"]["miss"], 0.01);
    house.restart();
    assert_eq!(house.state("e").await, state);
}

/// The cost of all rounds, of those told, of the open epoch and of overtime, each by the account.
#[tokio::test]
async fn a_limit_has_the_average_of_what_was_counted_told_and_overtime() {
    let house = House::new();
    let rules = "on_wait = 'serve'\noutcome_wait = '10s'\nimpute = { cost = { price = 0.015 } }";
    house.create("e", &short_with(rules)).await;
    let told = play(&house, &[64; 4], 5).await;
    let count = told[0].count + told[1].count;
    let sum = told[0].price + told[1].price;
    let state = house.state("e").await;
    let imputed = state["imputed"].as_u64().unwrap();
    let limit = state["limits"][0].clone();
    assert_eq!(
        (&limit["name"], &limit["threshold"], &limit["count"]),
        (&json!("price"), &json!(0.01), &json!(count + imputed))
    );
    near(&limit["realised_told"], sum / count as f64);
    let all = (sum + 0.015 * imputed as f64) / (count + imputed) as f64;
    near(&limit["realised"], all);
    assert_eq!(limit["realised_overtime"], Value::Null);
    // In epochs this short no cell is smaller than the range, so that each estimate is its middle.
    near(&limit["expected"]["value"], 0.01);
    assert_eq!(limit["last_epoch"]["count"], 0);
    // The next epoch, left open, and an overtime decision beyond it.
    let decided = house.decide("e", 64).await;
    let decisions = decided["decisions"].as_array().unwrap();
    let first = &decisions[0];
    let outcome = json!([{ "round": first["round"], "reward": 0.5, "costs": [0.002] }]);
    house.tell("e", &outcome).await;
    let overtime = house.decide("e", 2).await;
    assert_eq!(overtime["overtime"], true);
    for (serial, price) in [(1, 0.004), (2, 0.008)] {
        let outcome = json!([{ "epoch": overtime["epoch"], "overtime": serial, "reward": 1, "costs": [price] }]);
        // Twice: what is repeated is observed once.
        house.tell("e", &outcome).await;
        house.tell("e", &outcome).await;
    }
    let limit = house.state("e").await["limits"][0].clone();
    near(&limit["realised_overtime"], 0.006);
    assert_eq!(limit["last_epoch"]["count"], 1);
    near(&limit["last_epoch"]["realised"], 0.002);
    near(
        &limit["realised"],
        (sum + 0.015 * imputed as f64 + 0.002) / (count + imputed + 1) as f64,
    );
}

/// As an earlier version left it: without what was observed.
#[tokio::test]
async fn what_an_earlier_version_did_not_keep_is_summed_up_again() {
    let mut house = House::new();
    house
        .create("e", &short_with("outcome_wait = '10s'\n"))
        .await;
    play(&house, &[64; 5], 5).await;
    let decided = house.decide("e", 64).await;
    let first = &decided["decisions"][0];
    let outcome = json!([{ "round": first["round"], "reward": 0.5, "costs": [0.002] }]);
    house.tell("e", &outcome).await;
    let kept = house.state("e").await;
    house.service.stop().unwrap();
    let file = rusqlite::Connection::open(house.folder.join("store.db")).unwrap();
    file.execute("UPDATE progress SET observed = NULL", [])
        .unwrap();
    drop(file);
    house.restart();
    let read = house.state("e").await;
    assert_eq!(
        (&read["means"], &read["limits"]),
        (&kept["means"], &kept["limits"])
    );
    let sentence = read["sample_ratio"]["sentence"].as_str().unwrap();
    assert!(
        sentence.contains(" were closed by an earlier version and are not checked."),
        "{sentence}"
    );
    // A writer goes on from the same sums, and keeps them.
    let next = &decided["decisions"][1];
    let outcome = json!([{ "round": next["round"], "reward": 0.25, "costs": [0.004] }]);
    house.tell("e", &outcome).await;
    let after = house.state("e").await;
    let counts = |state: &Value| {
        let means = state["means"].as_array().unwrap().iter();
        means
            .map(|mean| mean["observed"]["count"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!(
        counts(&after),
        counts(&kept) + 2,
        "one outcome of two quantities"
    );
}

/// A limit of 0.5 on a price that is always the same.
async fn played_at(policy: &str, price: f64) -> Value {
    let house = House::new();
    let spec = format!(
        "policy = '{policy}'\nhorizon = 20_000\nrho = 0.9\ndelta = 0.1\nactions = ['left', 'right']\n[[cost]]\n\
         name = 'price'\nthreshold = 0.5\n"
    );
    let safe = "[safe]\nstrategy = { left = 1.0 }\ncost = { price = 0.1 }\n";
    house
        .create("e", &(spec + if policy == "hard" { safe } else { "" }))
        .await;
    for _ in 0..4 {
        let decided = house.decide("e", 500).await;
        let decisions = decided["decisions"].as_array().unwrap().iter();
        let told = decisions
            .map(|decision| json!({ "round": decision["round"], "reward": 1, "costs": [price] }));
        house.tell("e", &told.collect()).await;
    }
    house.state("e").await
}

#[tokio::test]
async fn limits_are_kept_exceeded_or_not_yet_known_and_hard_ones_raise_the_alarm() {
    for (policy, price, verdict, alerts, beginning) in [
        (
            "soft",
            0.2,
            "kept",
            0,
            "The limit of price was kept: on average 0.2",
        ),
        (
            "soft",
            0.51,
            "unknown",
            0,
            "Whether the limit of price was kept is not known: on average 0.51",
        ),
        (
            "soft",
            0.75,
            "exceeded",
            0,
            "The limit of price was exceeded by 0.25: on average 0.75",
        ),
        (
            "hard",
            0.75,
            "exceeded",
            1,
            "The limit of price was exceeded by 0.25: on average 0.75",
        ),
        (
            "hard",
            0.2,
            "kept",
            0,
            "The limit of price was kept: on average 0.2",
        ),
    ] {
        let state = played_at(policy, price).await;
        let limit = &state["limits"][0];
        assert_eq!(limit["verdict"], verdict, "{limit}");
        let sentence = limit["sentence"].as_str().unwrap();
        assert!(sentence.starts_with(beginning), "{sentence}");
        assert_eq!(state["alerts"].as_array().unwrap().len(), alerts, "{state}");
    }
    let fresh = House::new();
    fresh.create("e", SHORT).await;
    let limit = fresh.state("e").await["limits"][0].clone();
    assert_eq!(
        (&limit["verdict"], &limit["realised"]),
        (&json!("unknown"), &Value::Null)
    );
}

/// Decided and half of it told: 429 of 512 after one action, 512 of 512 after the other.
#[tokio::test]
async fn a_loss_of_15_percent_after_one_action_is_seen_at_once() {
    let house = House::new();
    house
        .create("e", &EXPLORED.replace("rho = 0.9", "rho = 0.3"))
        .await;
    let decided = house.decide("e", 1_024).await;
    let (mut left, mut told) = (0, Vec::new());
    for decision in decided["decisions"].as_array().unwrap() {
        let is_left = decision["action"] == 0;
        left += u64::from(is_left);
        if !is_left || left > 83 {
            told.push(json!({ "round": decision["round"], "reward": 1, "costs": [0.01] }));
        }
    }
    assert_eq!((left, told.len()), (512, 941));
    house.tell("e", &told.into()).await;
    let state = house.state("e").await;
    let check = &state["sample_ratio"];
    assert!(
        check["mismatch"] == true && check["p_value"].as_f64().unwrap() < 1e-12,
        "{check}"
    );
    let sentence = check["sentence"].as_str().unwrap();
    assert!(
        sentence
            .contains("after \"left\" 429 of 512 were told (83.79 %), over all actions 91.89 %"),
        "{sentence}"
    );
    assert_eq!(state["alerts"][0], check["sentence"]);
}

/// One answer in three places: the state, the page and, in the end, the certificate.
#[tokio::test]
async fn page_and_certificate_say_what_the_state_says() {
    let house = House::new();
    house.create("e", EXPLORED).await;
    play(&house, &[500; 3], 5).await;
    let state = house.state("e").await;
    let page = house.get("/experiments/e").await.text();
    let limit = state["limits"][0]["sentence"].as_str().unwrap();
    assert!(
        page.contains("Were the limits kept?") && page.contains(limit),
        "{page}"
    );
    assert!(page.contains("What was observed"), "{page}");
    for mean in state["means"].as_array().unwrap() {
        let why = mean["why"].as_str().unwrap();
        assert!(page.contains(&format!("title=\"{why}\"")), "{why}");
    }
    house
        .post("/v1/experiments/e/close", &json!({}))
        .await
        .expect(200);
    let certificate = house.get("/v1/experiments/e/certificate").await.expect(200);
    for field in ["means", "limits", "intervals", "sample_ratio"] {
        assert_eq!(certificate[field], state[field], "{field}");
    }
}
