//! One self-contained page: the answer, the figures, the recommendation, the plan, and how to make it again. No network.

use anyhow::Result;
use debora::job::words::{amount, percent, whole};
use debora::job::{Known, Loaded, Story};
use debora::lab::metrics::Run;
use debora::lab::replicate::Pair;

use crate::files::OutDir;
use crate::report::plots::Figure;

/// What the page is made of.
pub struct Page<'a> {
    pub title: &'a str,
    pub verb: &'a str,
    /// The words the program says.
    pub answer: &'a str,
    pub figures: &'a [Figure],
    pub command: &'a str,
    pub loaded: &'a Loaded,
    /// Of the first run, whose last strategy is the recommendation.
    pub story: &'a Story,
}

/// Writes summary.json, the table, the figures and the page.
pub fn write(
    out: &OutDir,
    document: &serde_json::Value,
    page: &Page,
    (csv_name, csv): (&str, &str),
) -> Result<()> {
    out.write("summary.json", format!("{document:#}\n").as_bytes())?;
    out.write(csv_name, csv.as_bytes())?;
    for figure in page.figures {
        out.write(&format!("{}.svg", figure.name), figure.light.as_bytes())?;
    }
    out.write("report.html", render(page).as_bytes())
}

/// The command that makes the same again.
pub fn command(verb: &str, loaded: &Loaded, flags: &[String]) -> String {
    let sets = loaded
        .overrides
        .iter()
        .map(|(path, value)| format!("--set '{path}={value}'"));
    let words = [format!("debora {verb} {}", loaded.file)]
        .into_iter()
        .chain(sets)
        .chain(flags.iter().cloned());
    words.collect::<Vec<_>>().join(" ")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn render(page: &Page) -> String {
    let (plan, problem) = (&page.loaded.plan, &page.loaded.spec.problem);
    let figure = |figure: &Figure| {
        format!(
            "<figure><div class=\"light\">{}</div><div class=\"dark\">{}</div><figcaption>{}</figcaption></figure>",
            figure.light,
            figure.dark,
            escape(&figure.caption)
        )
    };
    let figures: String = page.figures.iter().map(figure).collect();
    let advice: String = problem
        .actions()
        .iter()
        .zip(page.story.last_strategy())
        .map(|(action, x)| {
            format!(
                "<tr><td>{}</td><td>{}</td><td class=\"bar\"><i style=\"width:{:.1}%\"></i></td></tr>",
                escape(action),
                percent(*x),
                100.0 * x
            )
        })
        .collect();
    let facts: String = [
        ("policy", problem.policy().name().to_owned()),
        ("rounds", whole(problem.horizon())),
        ("rho", amount(problem.rho())),
        ("delta", amount(problem.delta())),
        ("profile", plan.profile.name().to_owned()),
        (
            "rounds of exploration",
            plan.exploration_rounds.map_or("none".into(), whole),
        ),
        (
            "first informative count",
            plan.first_informative_count.map_or("none".into(), whole),
        ),
        ("epochs at most", whole(plan.epochs_max)),
        (
            "regret at most",
            format!(
                "{} {}",
                amount(plan.regret_bound * problem.quantity(0).range.span()),
                problem.quantity(0).name
            ),
        ),
        ("with probability", percent(plan.bound_probability)),
        ("version", crate::args::VERSION.to_owned()),
        ("key", page.loaded.spec.key.to_hex()),
    ]
    .map(|(name, value)| format!("<tr><td>{name}</td><td>{}</td></tr>", escape(&value)))
    .concat();
    // The words, a paragraph a line, and then the table as it stands on a terminal.
    let (words, table) = page
        .answer
        .trim_end()
        .split_once("\n\n  ")
        .unwrap_or((page.answer.trim_end(), ""));
    let lead: String = words
        .lines()
        .map(|line| format!("<p>{}</p>", escape(line)))
        .collect();
    let known: String = page
        .story
        .known(problem)
        .iter()
        .map(
            |Known {
                 name,
                 interval: [low, high],
                 threshold,
             }| {
                let beside = match threshold {
                    None => String::new(),
                    Some(threshold) if high <= threshold => {
                        format!("within its threshold of {}", amount(*threshold))
                    }
                    Some(threshold) => {
                        format!("may exceed its threshold of {}", amount(*threshold))
                    }
                };
                format!(
                    "<tr><td>{}</td><td>{} to {}</td><td>{beside}</td></tr>",
                    escape(name),
                    amount(*low),
                    amount(*high)
                )
            },
        )
        .collect();
    format!(
        include_str!("report.html"),
        title = escape(page.title),
        verb = page.verb,
        lead = lead,
        table = escape(&format!("  {table}")),
        figures = figures,
        advice = advice,
        known = known,
        facts = facts,
        command = escape(page.command),
        spec = escape(&page.loaded.text),
    )
}

/// A line per run.
pub fn runs_csv(runs: &[(u64, usize, &Run)]) -> String {
    let mut text = String::from(
        "pair,member,rounds,epochs,regret,violation,unsafe_rounds,infeasible_epochs,reward_mean,digest\n",
    );
    for (pair, member, run) in runs {
        let regret = run
            .regret
            .map_or(String::new(), |regret| regret.to_string());
        text += &format!(
            "{pair},{member},{},{},{regret},{},{},{},{},{}\n",
            run.rounds,
            run.epochs,
            run.violation,
            run.unsafe_rounds,
            run.infeasible_epochs,
            run.reward_mean,
            run.digest.as_deref().unwrap_or("")
        );
    }
    text
}

/// A line per pair and player: whether it parted, where and why, and both runs' costs. Unit scale.
pub fn pairs_csv(players: &[(String, Vec<Pair>)]) -> String {
    let mut text = String::from(
        "player,pair,identical,split_epoch,split_round,split_action,split_quantity,split_count,mean_1,mean_2,edge,\
         regret_1,regret_2,violation_1,violation_2,unsafe_rounds_1,unsafe_rounds_2\n",
    );
    for (name, pair) in players
        .iter()
        .flat_map(|(name, pairs)| pairs.iter().map(move |pair| (name, pair)))
    {
        let split = pair.divergence.as_ref();
        let cell = |value: Option<String>| value.unwrap_or_default();
        let estimate = split.and_then(|split| split.estimate.as_ref());
        let columns = [
            name.clone(),
            pair.index.to_string(),
            split.is_none().to_string(),
            cell(split.map(|split| split.epoch.to_string())),
            cell(split.map(|split| split.round.to_string())),
            cell(estimate.map(|estimate| estimate.action.to_string())),
            cell(estimate.map(|estimate| estimate.quantity.to_string())),
            cell(estimate.map(|estimate| estimate.count.to_string())),
            cell(estimate.map(|estimate| estimate.means[0].to_string())),
            cell(estimate.map(|estimate| estimate.means[1].to_string())),
            cell(estimate.map(|estimate| estimate.edge.to_string())),
            cell(pair.runs[0].regret.map(|regret| regret.to_string())),
            cell(pair.runs[1].regret.map(|regret| regret.to_string())),
            pair.runs[0].violation.to_string(),
            pair.runs[1].violation.to_string(),
            pair.runs[0].unsafe_rounds.to_string(),
            pair.runs[1].unsafe_rounds.to_string(),
        ];
        text += &format!("{}\n", columns.join(","));
    }
    text
}
