//! Routes requests among three language models, on average for at most 0.3 cents a request, twice: two teams, one key, each
//! with its own traffic. Run with `cargo run --release --example routing`.

use debora::key::{Label, to_uniform};
use debora::{Ask, Engine, Key, Plan, Problem, WorldKey};

const MODELS: [&str; 3] = ["small", "medium", "large"];

/// What a request to this model brings: whether the answer was good, and its price in dollars.
fn serve(team: WorldKey, round: u64, action: u32) -> (f64, f64) {
    let (quality, price) = [(0.70, 0.0003), (0.85, 0.0020), (0.95, 0.0140)][action as usize];
    let words = team.block(Label::Feedback, [u64::from(action), round, 0]);
    let good = f64::from(u8::from(to_uniform(words[0]) < quality));
    (good, price * 2.0 * to_uniform(words[1]).min(0.7))
}

fn main() -> Result<(), debora::Error> {
    let draft = Problem::soft(MODELS, 10_000_000, 0.1).reward("good answer", [0.0, 1.0]);
    let problem = draft.cost("price", [0.0, 0.02], 0.003).build()?;
    let plan = Plan::of(problem.clone());
    println!(
        "{} rounds of exploration; gaps above {:.3} are detected",
        plan.exploration_rounds.unwrap_or(0),
        plan.detectable.unwrap_or(1.0)
    );

    for team in [1u64, 2] {
        let mut engine = Engine::new(problem.clone(), Key::from(42u64));
        while let Ask::Decision(decision) = engine.ask() {
            let (good, price) = serve(WorldKey::from(team), decision.round, decision.action);
            engine.tell(decision.round, good, &[price])?;
        }
        // The cautious strategy is sure to keep the limit; the current one still learns.
        let advice = engine.recommendation();
        let advice = advice.cautious.unwrap_or(advice.current);
        let shares: Vec<String> = MODELS
            .iter()
            .zip(&advice.strategy)
            .map(|(model, x)| format!("{model} {:.1} %", 100.0 * x))
            .collect();
        println!("team {team} recommends {}", shares.join(", "));
        println!(
            "  good answers {:.3} to {:.3}, price {:.4} to {:.4} dollars",
            advice.reward.low, advice.reward.high, advice.costs[0].low, advice.costs[0].high
        );
        println!("  decisions {}", &engine.digest()[..16]);
    }
    Ok(())
}
