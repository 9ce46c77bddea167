//! The list of experiments: what each line says, in every state; the order, the filters and the search.

use axum::body::Body;
use axum::http::Request;
use debora_cli::store::Role;
use serde_json::{Value, json};

use crate::access::{set_key, token};
use crate::keys::scope_key;
use crate::{House, KEY, Reply, SHORT, outcomes};

/// A price with a limit of 0.5, and epochs that end soon.
fn priced(policy: &str) -> String {
    let safe = if policy == "hard" {
        "[safe]\nstrategy = { left = 1.0 }\ncost = { price = 0.1 }\n"
    } else {
        ""
    };
    format!(
        "policy = '{policy}'\nhorizon = 20_000\nrho = 0.9\ndelta = 0.1\nactions = ['left', 'right']\n[[cost]]\n\
         name = 'price'\nthreshold = 0.5\n{safe}"
    )
}

/// Decides and tells, so often: the reward is the action's number.
async fn play(house: &House, id: &str, times: u64, costs: &Value) {
    for _ in 0..times {
        let decided = house.decide(id, 500).await;
        let told = decided["decisions"].as_array().unwrap().iter().map(
            |decision| json!({ "round": decision["round"], "reward": decision["action"], "costs": costs }),
        );
        house.tell(id, &told.collect()).await;
    }
}

/// The page when all its lines are read: a debug build takes several requests for them.
async fn list(house: &House, path: &str) -> String {
    loop {
        let page = house.get(path).await;
        assert_eq!(page.status, 200, "{}", page.text());
        if !page.text().contains("still being read") {
            return page.text();
        }
    }
}

/// What stands in an experiment's row: texts alone, cell by cell.
#[track_caller]
fn cells(page: &str, id: &str) -> Vec<String> {
    let row = page.split(&format!("<tr id=\"x-{id}\">")).nth(1);
    let row = row.unwrap_or_else(|| panic!("no row of {id} in\n{page}"));
    let row = row.split("</tr>").next().unwrap();
    let texts = |cell: &str| {
        let parts = cell
            .split('<')
            .map(|part| part.split_once('>').map_or(part, |(_, text)| text));
        parts.collect::<String>()
    };
    row.split("</td>")
        .flat_map(|part| part.split("</th>"))
        .map(texts)
        .filter(|text| !text.is_empty())
        .collect()
}

/// The ids of all rows, in order.
fn order(page: &str) -> Vec<&str> {
    let rows = page.split("<tr id=\"x-").skip(1);
    rows.map(|row| row.split('"').next().unwrap()).collect()
}

#[track_caller]
fn says(page: &str, words: &[&str]) {
    for word in words {
        assert!(page.contains(word), "{word:?} is not in\n{page}");
    }
}

#[tokio::test]
async fn every_state_is_told_in_words() {
    let house = House::new();
    house.create("fresh", SHORT).await;
    house.create("waits", SHORT).await;
    house.decide("waits", 1).await;
    house.create("rests", SHORT).await;
    house
        .post("/v1/experiments/rests/pause", &json!({}))
        .await
        .expect(200);
    house.create("ended", SHORT).await;
    house
        .post("/v1/experiments/ended/close", &json!({}))
        .await
        .expect(200);
    house
        .create("over", &SHORT.replace("horizon = 64", "horizon = 3"))
        .await;
    while house.state("over").await["status"] != "done" {
        let decided = house.decide("over", 9).await;
        house.tell("over", &outcomes(&decided, 1.0, 0.005)).await;
    }
    let free = "policy = 'free'\nhorizon = 1e6\nrho = 0.3\ndelta = 0.5\ngrowth = 2\nactions = ['a', 'b']\n";
    house.create("sure", free).await;
    while house.state("sure").await["kind"] != "commit" {
        play(&house, "sure", 1, &json!([])).await;
    }
    house.decide("sure", 100).await;
    house.wait(90_000);

    let page = list(&house, "/").await;
    let short = |id: &str| format!("short epochs{id}");
    let fresh = cells(&page, "fresh");
    assert_eq!(
        fresh,
        [
            &short("fresh"),
            "running",
            "0 of 64",
            "none",
            "0 explore",
            "exploring",
            "price not known",
            "none",
            "90 s"
        ]
    );
    assert_eq!(cells(&page, "waits")[1..3], ["waiting", "1 of 64"]);
    assert_eq!(cells(&page, "rests")[1], "paused");
    assert_eq!(
        [&cells(&page, "ended")[1], &cells(&page, "ended")[3]],
        ["closed", "over"]
    );
    let over = cells(&page, "over");
    assert_eq!([&over[1], &over[2]], ["done", "3 of 3"]);
    let sure = cells(&page, "sure");
    // It has no name, so its id stands alone; it waits for nothing, though outcomes are outstanding.
    assert_eq!([&sure[0], &sure[1]], ["sure", "committed"]);
    assert_eq!([&sure[5], &sure[6]], ["b 100 %", "no costs"]);
    assert!(sure[4].ends_with(" commit"), "{sure:?}");
    says(
        &page,
        &[
            "1 waiting for outcomes, 1 paused, 1 running, 1 committed, 1 closed and 1 done.",
            "Showing 6 experiments.",
        ],
    );
}

#[tokio::test]
async fn leaders_limits_and_alerts_are_those_of_the_state() {
    let house = House::new();
    for (id, policy, price) in [
        ("kept", "soft", 0.2),
        ("above", "soft", 0.75),
        ("broken", "hard", 0.75),
        ("open", "free", 0.51),
    ] {
        house.create(id, &priced(policy)).await;
        play(&house, id, 4, &json!([price])).await;
    }
    let page = list(&house, "/").await;
    for id in ["kept", "above", "broken", "open"] {
        let state = house.state(id).await;
        let row = cells(&page, id);
        let verdict = match state["limits"][0]["verdict"].as_str().unwrap() {
            "unknown" => "not known",
            known => known,
        };
        assert_eq!(row[6], format!("price {verdict}"));
        assert_eq!(
            row[4],
            format!("{} {}", state["epoch"], state["kind"].as_str().unwrap())
        );
        let strategy = state["strategy"].as_object().unwrap();
        let largest = strategy
            .values()
            .map(|share| share.as_f64().unwrap())
            .fold(0.0, f64::max);
        let leader = strategy
            .iter()
            .find(|(_, share)| share.as_f64() == Some(largest))
            .unwrap()
            .0;
        let expected = if state["kind"] == "explore" {
            "exploring"
        } else {
            leader
        };
        assert!(row[5].starts_with(expected), "{row:?} {state}");
    }
    assert_eq!(
        [&cells(&page, "kept")[6], &cells(&page, "above")[6]],
        ["price kept", "price exceeded"]
    );
    assert_eq!(
        [&cells(&page, "above")[7], &cells(&page, "broken")[7]],
        ["none", "1 alert"]
    );
    says(
        &page,
        &[
            "and 1 alert.",
            "title=\"Policy hard promised to keep this limit",
            "title=\"The limit of price was kept: on average 0.2",
        ],
    );

    assert_eq!(order(&list(&house, "/?alerts=yes").await), ["broken"]);
    assert_eq!(order(&list(&house, "/?sort=alerts").await)[0], "broken");
    let limits = list(&house, "/?sort=limits").await;
    assert_eq!(order(&limits), ["broken", "above", "open", "kept"]);
    let limits = list(&house, "/?sort=-limits").await;
    assert_eq!(order(&limits), ["kept", "open", "broken", "above"]);
}

#[tokio::test]
async fn many_costs_are_counted_and_the_worst_are_named() {
    let house = House::new();
    let mut spec =
        "policy = 'free'\nhorizon = 20_000\nrho = 0.9\nactions = ['a', 'b']\n".to_owned();
    for cost in 0..20 {
        spec += &format!("[[cost]]\nname = 'c{cost}'\nthreshold = 0.5\n");
    }
    house.create("e", &spec).await;
    let costs: Vec<f64> = (0..20)
        .map(|cost| if cost > 17 { 0.9 } else { 0.1 })
        .collect();
    play(&house, "e", 2, &json!(costs)).await;
    let page = list(&house, "/").await;
    assert_eq!(
        cells(&page, "e")[6],
        "c18 exceededc19 exceededc0 keptand 17 kept"
    );
}

#[tokio::test]
async fn the_rate_is_of_the_last_minutes_and_outlives_a_restart() {
    let mut house = House::new();
    // Exploration alone has billions of rounds.
    let long = "policy = 'soft'\nhorizon = 1e15\nrho = 0.0001\ndelta = 0.0001\ngrowth = 64\nactions = ['a', 'b']\n";
    house.create("long", long).await;
    house.create("short", SHORT).await;
    house.create("idle", SHORT).await;
    // Until an epoch of the short one has just begun, with a single round.
    let (mut rounds, mut epoch, mut begun) = (0, 0, false);
    loop {
        house.decide("long", 100).await;
        let decided = house.decide("short", 1).await;
        house.tell("short", &outcomes(&decided, 1.0, 0.01)).await;
        house.wait(30_000);
        rounds += 1;
        if begun {
            break;
        }
        let open = house.state("short").await["epoch"].as_u64().unwrap();
        (begun, epoch) = (rounds >= 20 && open > epoch, open);
    }
    for _ in 0..2 {
        let page = list(&house, "/").await;
        let rates = ["long", "short", "idle"].map(|id| cells(&page, id)[3].clone());
        assert_eq!(rates, ["3.3/s", "2/min", "none"]);
        says(
            &page,
            &[
                "title=\"Nothing was decided yet.\"",
                "600 rounds in the last 3 min",
                "8 rounds in the last 4 min",
            ],
        );
        house.restart();
    }
    // Slower the longer nothing is decided, until there is nothing to speak of.
    house.wait(540_000);
    for _ in 0..2 {
        // Whenever a line was read, and on the experiment's page as in the list.
        assert_eq!(cells(&list(&house, "/").await, "short")[3], "37/h");
        let page = house.get("/experiments/short").await.text();
        says(&page, &["The current rate is 37 an hour"]);
        house.restart();
    }
    house.wait(60_000);
    let page = list(&house, "/").await;
    assert_eq!(cells(&page, "short")[3], "none");
    says(
        &page,
        &["No decision in the last 10 minutes; the last one was at 2023-11-14 22:"],
    );
    house.decide("long", 10_000).await;
    assert!(cells(&list(&house, "/").await, "long")[3].ends_with("/s"));
}

#[tokio::test]
async fn the_address_sorts_filters_and_searches() {
    let house = House::new();
    for (id, name) in [
        ("one", "Zebra"),
        ("two", "apple"),
        ("three", "Äpfel & <b>Birnen</b>"),
    ] {
        house.create(id, &SHORT.replace("short epochs", name)).await;
        house.wait(1_000);
    }
    house.decide("two", 1).await;
    let rows = async |path: &str| order(&list(&house, path).await).join(" ");
    assert_eq!(rows("/").await, "three two one");
    assert_eq!(rows("/?sort=-age").await, "one two three");
    assert_eq!(rows("/?sort=name").await, "two one three");
    assert_eq!(rows("/?sort=-name").await, "three one two");
    assert_eq!(rows("/?sort=progress").await, "two three one");
    assert_eq!(
        rows("/?sort=state&q=&state=&before=").await,
        "two three one"
    );
    assert_eq!(rows("/?state=waiting").await, "two");
    assert_eq!(rows("/?state=done").await, "");
    // Whatever the case of its letters, in a name or in an id.
    assert_eq!(rows("/?q=%C3%A4PF").await, "three");
    assert_eq!(rows("/?q=tHrE").await, "three");
    assert_eq!(rows("/?q=apple").await, "two");
    let found = list(&house, "/?q=%3Cb%3E&sort=-name").await;
    says(
        &found,
        &[
            "<bdi>Äpfel &amp; &lt;b&gt;Birnen&lt;/b&gt;</bdi>",
            "aria-sort=\"descending\"",
            "value=\"&lt;b&gt;\"",
            // What the live part asks for, and where a click on the heading leads.
            "hx-get=\"/?q=%3Cb%3E&amp;sort=-name\"",
            "href=\"/?q=%3Cb%3E&amp;sort=name\"",
            "<option value=\"-name\" selected",
            "3 experiments were searched.",
        ],
    );
    assert!(
        !found.contains("<b>") && !found.contains("style="),
        "{found}"
    );
    says(&list(&house, "/?q=zzz").await, &["No experiment matches."]);
    for (path, rule) in [
        ("/?sort=size", "one of name, state"),
        ("/?state=open", "one of waiting, paused"),
    ] {
        let refused = house.get(path).await;
        assert_eq!(refused.status, 422);
        says(&refused.text(), &[rule]);
    }
}

#[tokio::test]
async fn a_page_that_is_up_to_date_is_not_sent_again() {
    let house = House::new();
    house.create("e", SHORT).await;
    let ask = async |shown: &str| {
        let request = Request::get("/?sort=name").header("x-shown", shown);
        house.send(request.body(Body::empty()).unwrap()).await
    };
    let first = list(&house, "/?sort=name").await;
    let shown = first
        .split("x-shown&quot;:&quot;")
        .nth(1)
        .unwrap()
        .split('&')
        .next()
        .unwrap();
    assert_eq!(ask(shown).await.status, 204);
    house.decide("e", 1).await;
    // All who keep it open share a list for three seconds; who opens it gets it as it is.
    house.wait(2_999);
    assert_eq!(ask(shown).await.status, 204);
    let opened = house.get("/?sort=name&before=").await;
    assert_eq!(cells(&opened.text(), "e")[2], "1 of 64");
    house.wait(1);
    let changed = ask(shown).await;
    assert_eq!(changed.status, 200);
    assert_eq!(cells(&changed.text(), "e")[1..3], ["waiting", "1 of 64"]);
}

#[tokio::test]
async fn what_cannot_be_read_is_said_and_hides_nothing_else() {
    let house = House::new();
    for id in ["older", "damaged", "sound"] {
        house.create(id, SHORT).await;
    }
    let file = rusqlite::Connection::open(house.folder.join("store.db")).unwrap();
    let run = |sql: &str| file.execute_batch(sql).unwrap();
    run("UPDATE experiments SET values_version = 1 WHERE id = 'older'");
    run(
        "UPDATE epochs SET snapshot = NULL WHERE experiment = (SELECT number FROM experiments WHERE id = 'damaged')",
    );
    let page = list(&house, "/").await;
    assert_eq!(
        [&cells(&page, "older")[5], &cells(&page, "older")[7]],
        ["of another version", "none"]
    );
    assert_eq!(
        [&cells(&page, "damaged")[5], &cells(&page, "damaged")[7]],
        ["unreadable", "1 alert"]
    );
    assert_eq!(
        [&cells(&page, "sound")[5], &cells(&page, "sound")[7]],
        ["exploring", "none"]
    );
    says(
        &page,
        &[
            "experiment damaged has no snapshot of epoch 0",
            "decided with values version 1",
        ],
    );
}

async fn seen_by(house: &House, name: &str, path: &str) -> Reply {
    let authorization = format!("Bearer {}", token(name));
    let request = Request::get(path).header("authorization", authorization);
    house.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn scoped_keys_list_and_find_theirs_alone() {
    let house = House::new();
    for id in ["first", "second", "third", "fourth"] {
        house.create(id, SHORT).await;
    }
    set_key(&house, "boss", Role::Admin, None);
    scope_key(
        &house,
        "partner",
        Role::Read,
        &["fourth", "second", "later"],
    );
    scope_key(&house, "newcomer", Role::Read, &["later"]);
    house.wait(2_000);
    let page = async |name: &str, path: &str| seen_by(&house, name, path).await.text();
    assert_eq!(
        order(&page("boss", "/").await),
        ["fourth", "third", "second", "first"]
    );
    assert_eq!(order(&page("partner", "/").await), ["fourth", "second"]);
    assert_eq!(order(&page("partner", "/?before=fourth").await), ["second"]);
    assert_eq!(
        order(&page("partner", "/?q=short").await),
        ["fourth", "second"]
    );
    says(
        &page("partner", "/").await,
        &["2 running.", "Showing 2 experiments."],
    );
    // Those of others are as if they were not there.
    says(
        &page("partner", "/?before=third").await,
        &["There are no older experiments."],
    );
    assert!(order(&page("partner", "/?q=third").await).is_empty());
    says(
        &page("newcomer", "/").await,
        &["Your key is for later alone."],
    );
    let listed = seen_by(&house, "partner", "/v1/experiments?limit=1")
        .await
        .expect(200);
    assert_eq!(
        [&listed["experiments"][0]["id"], &listed["next"]],
        ["second", "second"]
    );
    let rest = seen_by(&house, "partner", "/v1/experiments?limit=1&after=second")
        .await
        .expect(200);
    assert_eq!(
        (&rest["experiments"][0]["id"], &rest["next"]),
        (&json!("fourth"), &Value::Null)
    );
}

/// More than a page: the search reaches what the page does not show.
#[tokio::test]
async fn the_search_goes_beyond_the_page() {
    let house = House::new();
    house
        .create("oldest", &SHORT.replace("short epochs", "needle"))
        .await;
    for group in 0..11 {
        // Asked for together, so that they share a commit.
        let created: Vec<_> = (0..91)
            .map(|number| {
                let id = format!("e{group}-{number}");
                let body = json!({ "spec": SHORT, "id": id, "key": KEY, "blind": true });
                let request =
                    Request::post("/v1/experiments").header("content-type", "application/json");
                let request = request.body(Body::from(body.to_string())).unwrap();
                let app = house.app.clone();
                tokio::spawn(async move { app.answer(request).await.status() })
            })
            .collect();
        for status in created {
            assert_eq!(status.await.unwrap(), 201);
        }
    }
    let page = house.get("/").await.text();
    assert_eq!(order(&page).len(), 1_000);
    says(
        &page,
        &["Older experiments", "experiments are still being read: "],
    );
    // What is not read is not taken to run, and a filter says that it may have missed some.
    let (running, unread) = page.split_once(" running. ").unwrap();
    let number = |words: &str| -> usize { words.replace(',', "").parse().unwrap() };
    let running = number(running.rsplit('>').next().unwrap());
    let unread = number(unread.split(' ').next().unwrap());
    assert_eq!(running + unread, 1_000);
    let filtered = house.get("/?state=running").await.text();
    says(&filtered, &[" of 1,000 so far."]);
    assert!(order(&filtered).len() < 1_000);
    let waiting = house.get("/?state=waiting").await.text();
    says(&waiting, &["No experiment matches so far."]);
    // Where the time of one request ends, a link goes on.
    let mut path = "/?q=NEEDLE".to_owned();
    let found = loop {
        let page = house.get(&path).await.text();
        if !order(&page).is_empty() {
            break page;
        }
        let next = page
            .split("<a href=\"/?")
            .skip(1)
            .find(|link| link.contains("Search older"));
        let next = next.expect("a way on").split('"').next().unwrap();
        path = format!("/?{}", next.replace("&amp;", "&"));
    };
    assert_eq!(order(&found), ["oldest"]);
}
