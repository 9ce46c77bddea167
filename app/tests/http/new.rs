//! The page on which an experiment is written: form and text follow each other, and faults stand at their fields.

use axum::body::Body;
use axum::http::Request;
use debora::measure::words::amount;
use serde_json::json;

use crate::planning::{SEEING, program};
use crate::{House, KEY, Reply};

/// Sends the form.
async fn sent(house: &House, path: &str, fields: &[(&str, &str)]) -> Reply {
    let body = serde_urlencoded::to_string(fields).unwrap();
    let request = Request::post(path).header("content-type", "application/x-www-form-urlencoded");
    house.send(request.body(Body::from(body)).unwrap()).await
}

async fn drafted(house: &House, fields: &[(&str, &str)]) -> String {
    let reply = sent(house, "/new/draft", fields).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.text()
}

/// The text that the page shows.
fn text_of(page: &str) -> String {
    let (_, rest) = page.split_once("id=\"spec\"").unwrap();
    let (_, rest) = rest.split_once('>').unwrap();
    let (text, _) = rest.split_once("</textarea>").unwrap();
    // The first line end is the browser's to drop.
    let text = text.strip_prefix('\n').unwrap();
    text.replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// The tag of a field.
fn tag_of<'a>(page: &'a str, field: &str) -> &'a str {
    let name = format!(" name=\"{field}\"");
    let place = page
        .find(&name)
        .unwrap_or_else(|| panic!("{field} is not in {page}"));
    let start = page[..place].rfind('<').unwrap();
    let end = place + page[place..].find('>').unwrap();
    &page[start..end]
}

fn value_of(page: &str, field: &str) -> String {
    let tag = tag_of(page, field);
    let (_, rest) = tag
        .split_once("value=\"")
        .unwrap_or_else(|| panic!("{tag}"));
    rest.split_once('"')
        .unwrap()
        .0
        .replace("&lt;", "<")
        .replace("&gt;", ">")
}

/// What is said at a field.
fn fault_at(page: &str, field: &str) -> String {
    let place = format!("id=\"e-{field}\"");
    let (_, rest) = page
        .split_once(&place)
        .unwrap_or_else(|| panic!("{place} is not in {page}"));
    let (_, rest) = rest.split_once('>').unwrap();
    rest.split_once('<').unwrap().0.to_owned()
}

#[tokio::test]
async fn a_change_in_the_form_reaches_the_text_and_leaves_the_rest() {
    let house = House::new();
    let page = drafted(
        &house,
        &[
            ("spec", SEEING),
            ("was", SEEING),
            ("horizon", "2e6"),
            ("cost.0.threshold", "0.01"),
        ],
    )
    .await;
    let changed = SEEING.replace("1e6", "2e6").replace("0.008", "0.01");
    assert_eq!(text_of(&page), changed);
    assert!(page.contains("# of three"), "{page}");
    // A name that something else goes by takes it along.
    let hard = SEEING.replace("\"soft\"", "\"hard\"")
        + "[safe]\nstrategy = { small = 1.0 }\ncost = { price = 0.001 }\n";
    let page = drafted(
        &house,
        &[
            ("spec", &hard),
            ("was", &hard),
            ("actions.0", "tiny"),
            ("cost.0.name", "dollars"),
        ],
    )
    .await;
    let text = text_of(&page);
    assert!(
        text.contains("{ tiny = 1.0 }") && text.contains("{ dollars = 0.001 }"),
        "{text}"
    );
    assert_eq!(value_of(&page, "safe.strategy.0"), "1.0");
}

#[tokio::test]
async fn a_holdback_is_written_by_form_or_text_and_follows_its_action() {
    let house = House::new();
    let held_back = "\n[service]\nholdback = { action = \"small\", share = 0.05 }\n";
    let share = ("service.holdback.share", "0.05");
    let action = ("service.holdback.action", "small");
    let page = drafted(&house, &[("spec", SEEING), ("was", SEEING), share, action]).await;
    assert_eq!(text_of(&page), format!("{SEEING}{held_back}"));
    assert!(page.contains("held back"), "{page}");
    assert_eq!(page.matches("aria-invalid").count(), 0, "{page}");
    let chosen = format!("<option value=\"{0}\" selected>{0}</option>", action.1);
    assert_eq!(page.matches(&chosen).count(), 1, "{page}");
    let text = format!("{SEEING}{held_back}");
    let fields = [("spec", &*text), ("was", &text)];
    let page = drafted(&house, &[fields[0], fields[1], ("horizon", "2e6")]).await;
    assert_eq!(text_of(&page), text.replace("1e6", "2e6"));
    assert_eq!(value_of(&page, share.0), share.1);
    let renamed = [fields[0], fields[1], ("actions.0", "tiny"), share, action];
    let page = drafted(&house, &renamed).await;
    assert_eq!(text_of(&page), text.replace("\"small\"", "\"tiny\""));
    // Half of it is a fault where the other half is missing, and none of it is none.
    let emptied = |field| (field, "");
    for (field, other) in [(share.0, action.0), (action.0, share.0)] {
        let page = drafted(&house, &[fields[0], fields[1], emptied(field)]).await;
        assert!(fault_at(&page, field).len() > 10, "{field}: {page}");
        assert!(fault_at(&page, other).is_empty(), "{field}: {page}");
    }
    let none = [fields[0], fields[1], emptied(share.0), emptied(action.0)];
    assert_eq!(text_of(&drafted(&house, &none).await), SEEING);
    for (field, wrong) in [(share.0, "5"), (share.0, "few"), (action.0, "medium")] {
        let page = drafted(&house, &[fields[0], fields[1], (field, wrong)]).await;
        assert!(fault_at(&page, field).len() > 10, "{field}: {page}");
        assert!(tag_of(&page, field).contains("aria-invalid=\"true\""));
        assert_eq!(page.matches("aria-invalid").count(), 2, "{page}");
    }
    // What the text says stays to be seen, though no action is called so.
    let page = drafted(&house, &[fields[0], fields[1], (action.0, "medium")]).await;
    assert!(
        page.contains("<option value=\"medium\" selected>medium</option>"),
        "{page}"
    );
}

#[tokio::test]
async fn a_policy_that_keeps_nothing_safe_keeps_what_was_said_for_another_time() {
    let house = House::new();
    let safe =
        "\n# from last year\n[safe]\nstrategy = { small = 1.0 } # sure\ncost = { price = 0.001 }\n";
    let hard = SEEING.replace("\"soft\"", "\"hard\"") + safe;
    let page = drafted(
        &house,
        &[("spec", &hard), ("was", &hard), ("policy", "soft")],
    )
    .await;
    let soft = text_of(&page);
    assert_eq!(soft, SEEING);
    let (_, kept) = page.split_once("name=\"safe\"").unwrap();
    let (kept, _) = kept.split_once("</textarea>").unwrap();
    let kept = kept.split_once(">\n").unwrap().1.to_owned();
    let back = [
        ("spec", &*soft),
        ("was", &soft),
        ("policy", "hard"),
        ("safe", &kept),
    ];
    let page = drafted(&house, &back).await;
    assert_eq!(text_of(&page), hard);
    assert_eq!(value_of(&page, "safe.strategy.0"), "1.0");
}

#[tokio::test]
async fn a_name_that_is_typed_anew_keeps_what_is_said_of_it() {
    let house = House::new();
    let hard = SEEING.replace("\"soft\"", "\"hard\"")
        + "[safe]\nstrategy = { small = 1.0 }\ncost = { price = 0.001 }\n[service]\nimpute = { cost = { price = 0.01 } }\n";
    let mut text = hard.clone();
    // The script sends what stands there between two letters, and that may be nothing.
    for (action, cost) in [("", ""), ("tiny", "dollars")] {
        let fields = [
            ("spec", &*text),
            ("was", &text),
            ("actions.0", action),
            ("cost.0.name", cost),
        ];
        let page = drafted(&house, &fields).await;
        for (field, value) in [
            ("safe.strategy.0", "1.0"),
            ("safe.cost.0", "0.001"),
            ("service.impute.cost.0", "0.01"),
        ] {
            assert_eq!(value_of(&page, field), value, "{field}: {page}");
        }
        text = text_of(&page);
    }
    let renamed = hard.replace("small", "tiny").replace("price", "dollars");
    assert_eq!(text, renamed);
}

#[tokio::test]
async fn costs_in_one_line_are_changed_like_those_in_sections() {
    let house = House::new();
    let line = "policy = \"soft\"\nhorizon = 1e6\nrho = 0.3\nactions = [\"a\", \"b\"]\ncost = [{ name = \"price\", threshold = 0.5 }]\n";
    let page = drafted(
        &house,
        &[
            ("spec", line),
            ("was", line),
            ("cost.0.threshold", "0.25"),
            ("cost.0.range.1", "2"),
            ("do", "add-cost"),
        ],
    )
    .await;
    let text = text_of(&page);
    assert!(
        text.contains("threshold = 0.25") && text.contains("range = [0, 2]"),
        "{text}"
    );
    assert!(
        text.contains("{ name = \"cost 2\", threshold = 0.5 }"),
        "{text}"
    );
    assert_eq!(value_of(&page, "cost.1.name"), "cost 2");
    assert!(page.contains("Exploration takes"), "{page}");
}

#[tokio::test]
async fn a_form_that_is_sent_twice_creates_one_experiment() {
    let house = House::new();
    let drawn = value_of(&house.get("/new").await.text(), "drawn");
    let fields = [
        ("spec", SEEING),
        ("id", ""),
        ("drawn", &*drawn),
        ("do", "create"),
    ];
    let (one, other) = tokio::join!(sent(&house, "/new", &fields), sent(&house, "/new", &fields));
    assert_eq!(one.headers["location"], format!("/experiments/{drawn}"));
    assert_eq!(other.headers["location"], one.headers["location"]);
    // The page kept open, and another experiment written on it.
    let changed = SEEING.replace("0.3", "0.2");
    let third = sent(
        &house,
        "/new",
        &[&[("spec", &*changed)], &fields[1..]].concat(),
    )
    .await;
    assert_eq!(third.status, 303, "{}", third.text());
    let list = house.get("/v1/experiments").await.expect(200);
    assert_eq!(list["experiments"].as_array().unwrap().len(), 2, "{list}");
    // While one types it stays what it was.
    let page = drafted(&house, &fields[..3]).await;
    assert_eq!(value_of(&page, "drawn"), drawn);
}

/// A spec of this many actions and costs.
fn sized(actions: usize, costs: usize) -> String {
    let actions: Vec<String> = (0..actions).map(|number| format!("\"{number}\"")).collect();
    let costs: String = (0..costs)
        .map(|number| format!("[[cost]]\nname = \"c{number}\"\nthreshold = 0.5\n"))
        .collect();
    let actions = actions.join(",");
    format!("policy = \"soft\"\nhorizon = 1e15\nrho = 0.1\nactions = [{actions}]\n{costs}")
}

#[tokio::test]
async fn what_is_too_much_for_a_form_is_a_text_alone() {
    let house = House::new();
    for (actions, costs, words) in [
        (2, 3_000, "Exploration takes"),
        (1_000, 1_000, "1001000 estimates"),
        (10_000, 10_000, "100010000 estimates"),
    ] {
        let spec = sized(actions, costs);
        let page = drafted(
            &house,
            &[("spec", &spec), ("horizon", "2e15"), ("was", &spec)],
        )
        .await;
        assert!(page.contains(words), "{words}: {}", &page[..4_000]);
        assert_eq!(text_of(&page), spec.replace("1e15", "2e15"));
        assert!(page.contains("too many for a form"));
        // The text twice, and what is said of it.
        assert!(page.len() < 2 * spec.len() + 2_000_000, "{}", page.len());
    }
    let long = format!("{}# {}\n", SEEING, "x".repeat(1 << 20));
    let page = drafted(&house, &[("spec", &long), ("was", SEEING)]).await;
    assert!(page.contains("the spec has 10"), "{}", &page[..4_000]);
    assert_eq!(text_of(&page), long);
}

#[tokio::test]
async fn a_large_spec_is_read_and_shown_beside_those_who_serve() {
    let house = House::new();
    // With a fault that is found at once, so that nearly all the time is taken by the form.
    let spec = sized(100, 70).replace("0.1", "7");
    let begun = std::time::Instant::now();
    let done = std::cell::Cell::new(false);
    let draft = async {
        let page = drafted(&house, &[("spec", &spec), ("was", &spec)]).await;
        done.set(true);
        page
    };
    // The longest that another request on the same thread would have waited.
    let other = async {
        let mut longest = std::time::Duration::ZERO;
        while !done.get() {
            let turn = std::time::Instant::now();
            tokio::task::yield_now().await;
            longest = longest.max(turn.elapsed());
        }
        longest
    };
    let (_, longest) = tokio::join!(draft, other);
    let taken = begun.elapsed();
    assert!(2 * longest < taken, "{longest:?} of {taken:?}");
}

#[tokio::test]
async fn a_change_in_the_text_reaches_the_form_and_both_may_change_at_once() {
    let house = House::new();
    let text = SEEING
        .replace("\"large\"", "\"large\", \"<b>\"")
        .replace('\n', "\r\n");
    let page = drafted(
        &house,
        &[
            ("spec", &text),
            ("was", SEEING),
            ("rho", "0.2"),
            ("actions.0", "small"),
        ],
    )
    .await;
    assert_eq!(value_of(&page, "actions.2"), "<b>");
    assert_eq!(value_of(&page, "rho"), "0.2");
    let both = SEEING
        .replace("\"large\"", "\"large\", \"<b>\"")
        .replace("0.3", "0.2");
    assert_eq!(text_of(&page), both);
}

#[tokio::test]
async fn what_is_typed_survives_a_text_that_is_not_toml() {
    let house = House::new();
    let broken = SEEING.replace("\"soft\"", "soft");
    let page = drafted(
        &house,
        &[("spec", &broken), ("was", SEEING), ("rho", "0.2")],
    )
    .await;
    assert_eq!(
        (text_of(&page), value_of(&page, "rho")),
        (broken.clone(), "0.2".into())
    );
    assert!(
        page.contains("Line 2, column") && page.contains("this is not TOML"),
        "{page}"
    );
    // Mended, it takes what was typed meanwhile.
    let page = drafted(&house, &[("spec", SEEING), ("was", SEEING), ("rho", "0.2")]).await;
    assert_eq!(text_of(&page), SEEING.replace("0.3", "0.2"));
}

#[tokio::test]
async fn faults_stand_at_their_fields() {
    let house = House::new();
    let cases = [
        ("horizon", "many", "horizon"),
        ("horizon", "", "horizon"),
        ("rho", "7", "rho"),
        ("actions.1", "small", "actions.1"),
        ("cost.0.threshold", "-5", "cost.0.threshold"),
        ("cost.0.name", "", "cost.0.name"),
        ("cost.0.range.1", "-1", "cost.0.range"),
        ("service.impute.reward", "7", "service.impute.reward"),
        ("service.impute.cost.0", "7", "service.impute.cost.0"),
        ("service.outcome_wait", "7", "service.outcome_wait"),
    ];
    for (field, value, fault) in cases {
        let page = drafted(&house, &[("spec", SEEING), ("was", SEEING), (field, value)]).await;
        assert!(
            fault_at(&page, fault).len() > 10,
            "{field} = {value}: {page}"
        );
        assert!(
            tag_of(&page, field).contains("aria-invalid=\"true\""),
            "{field}: {page}"
        );
        assert_eq!(
            page.matches("aria-invalid").count(),
            if fault.ends_with("range") || fault.ends_with("mean") {
                3
            } else {
                2
            }
        );
        assert_eq!(value_of(&page, field), value, "{field}");
        assert!(page.contains("There is no plan yet"), "{page}");
    }
    let right = drafted(&house, &[("spec", SEEING)]).await;
    assert!(!right.contains("aria-invalid"), "{right}");
}

#[tokio::test]
async fn rows_come_and_go_by_buttons() {
    let house = House::new();
    let more = drafted(&house, &[("spec", SEEING), ("do", "add-cost")]).await;
    assert!(
        text_of(&more).ends_with("\n[[cost]]\nname = \"cost 2\"\nthreshold = 0.5\n"),
        "{more}"
    );
    let text = text_of(&more);
    let fewer = drafted(&house, &[("spec", &text), ("do", "remove-cost-1")]).await;
    assert_eq!(text_of(&fewer), SEEING);
    let action = drafted(&house, &[("spec", SEEING), ("do", "add-action")]).await;
    assert_eq!(value_of(&action, "actions.2"), "action 3");
    // The guesses of the rows that stay, stay with them.
    let guesses = [
        ("mean.0.0", "0.1"),
        ("mean.0.1", "0.001"),
        ("mean.1.0", "0.9"),
        ("mean.1.1", "0.019"),
    ];
    let fields = [&[("spec", SEEING), ("do", "remove-action-0")][..], &guesses].concat();
    let one = drafted(&house, &fields).await;
    assert_eq!(
        [value_of(&one, "mean.0.0"), value_of(&one, "mean.0.1")],
        ["0.9", "0.019"]
    );
    // The page as it is first shown can be created as it is.
    let first = house.get("/new").await.text();
    assert!(
        first.contains("new.js") && first.contains("Exploration takes"),
        "{first}"
    );
    assert_eq!(
        drafted(&house, &[("spec", &text_of(&first))])
            .await
            .matches("aria-invalid")
            .count(),
        0
    );
    // Without a script the same button is answered with the whole page.
    let whole = sent(&house, "/new", &[("spec", SEEING), ("do", "add-action")]).await;
    assert!(
        whole.status == 200 && whole.text().contains("<h1>New experiment</h1>"),
        "{}",
        whole.text()
    );
}

#[tokio::test]
async fn a_blind_plan_is_mended_by_its_button() {
    let house = House::new();
    let short = SEEING.replace("1e6", "200 # a day");
    let blind = drafted(&house, &[("spec", &short)]).await;
    assert!(
        blind.contains("BLIND") && blind.contains("value=\"remedy\""),
        "{blind}"
    );
    let planned = house
        .post("/v1/plan", &json!({ "spec": short }))
        .await
        .expect(200);
    let mended = drafted(&house, &[("spec", &short), ("do", "remedy")]).await;
    assert_eq!(
        text_of(&mended),
        planned["remedy"]["spec"].as_str().unwrap()
    );
    assert!(!mended.contains("BLIND"), "{mended}");
}

#[tokio::test]
async fn the_plan_and_the_simulation_on_the_page_are_those_of_the_interface() {
    let house = House::new();
    let page = drafted(
        &house,
        &[
            ("spec", SEEING),
            ("do", "simulate"),
            ("mean.0.0", "0.4"),
            ("mean.0.1", "0.001"),
            ("mean.1.0", "0.7"),
            ("mean.1.1", "0.015"),
        ],
    )
    .await;
    let planned = house
        .post("/v1/plan", &json!({ "spec": SEEING }))
        .await
        .expect(200);
    for sentence in &planned["sentences"].as_array().unwrap()[1..] {
        assert!(
            page.contains(sentence.as_str().unwrap()),
            "{sentence} is not in {page}"
        );
    }
    let means = json!({ "small": { "quality": 0.4, "price": 0.001 }, "large": { "quality": 0.7, "price": 0.015 } });
    let body = json!({ "spec": SEEING, "means": means, "pairs": 1 });
    let simulated = house.post("/v1/simulate", &body).await.expect(200);
    // As many pairs as the page had time for.
    let (_, rest) = page.split_once("--pairs ").unwrap();
    let pairs = rest.split_once('<').unwrap().0;
    let spec = simulated["spec"].as_str().unwrap();
    let replicated = program(&["replicate", "--pairs", pairs], spec);
    let identical = format!("identical in {} of {pairs} pairs", replicated["identical"]);
    assert!(page.contains(&identical), "{identical:?} is not in {page}");
    let regret = amount(replicated["regret"]["median"].as_f64().unwrap());
    assert!(
        page.contains(&format!(">{regret}<")),
        "{regret} is not in {page}"
    );
    let wrong = drafted(
        &house,
        &[("spec", SEEING), ("do", "simulate"), ("mean.0.0", "7")],
    )
    .await;
    assert!(wrong.contains("outside its range"), "{wrong}");
}

#[tokio::test]
async fn a_refusal_keeps_what_was_typed_and_says_where() {
    let house = House::new();
    house.create("e", SEEING).await;
    let fields = [
        ("spec", SEEING),
        ("was", SEEING),
        ("name", "another"),
        ("id", "e"),
        ("key", KEY),
        ("do", "create"),
        ("mean.0.0", "0.123"),
    ];
    let refused = sent(&house, "/new", &fields).await;
    let page = refused.text();
    assert_eq!(refused.status, 422, "{page}");
    assert!(
        fault_at(&page, "id").contains("belongs to another"),
        "{page}"
    );
    assert_eq!(
        ["name", "id", "key", "mean.0.0"].map(|field| value_of(&page, field)),
        ["another", "e", KEY, "0.123"]
    );
    let created = sent(
        &house,
        "/new",
        &[&fields[..3], &[("id", "other"), ("do", "create")]].concat(),
    )
    .await;
    assert_eq!(
        (created.status.as_u16(), &created.headers["location"]),
        (303, &"/experiments/other".parse().unwrap())
    );
    let spec = house.get("/v1/experiments/other").await.expect(200)["spec"].clone();
    assert_eq!(spec, SEEING.replace("\"model routing\"", "\"another\""));
}

#[tokio::test]
async fn two_hundred_actions_and_twenty_costs_are_written_like_two() {
    let house = House::new();
    let actions: Vec<String> = (0..200)
        .map(|number| format!("\"a \\\"<i>{number}\""))
        .collect();
    let costs: String = (0..20)
        .map(|number| format!("[[cost]]\nname = \"c{number}\"\nthreshold = 0.5\n"))
        .collect();
    let spec = format!(
        "policy = \"soft\"\nhorizon = 1e15\nrho = 0.1\nactions = [{}]\n{costs}",
        actions.join(", ")
    );
    let page = drafted(
        &house,
        &[
            ("spec", &spec),
            ("was", &spec),
            ("cost.19.threshold", "0.25"),
            ("actions.199", "last"),
        ],
    )
    .await;
    assert!(text_of(&page).ends_with("threshold = 0.25\n") && text_of(&page).contains("\"last\"]"));
    assert_eq!(page.matches(" name=\"mean.").count(), 200 * 21);
    assert!(
        !page.contains("<i>") && page.contains("Exploration takes"),
        "{page}"
    );
}
