//! What a gateway says it billed.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::usage::Cost;

/// OpenRouter's account of a request, in its usage: what it billed itself, and what the provider behind it bills when
/// the caller brought a key of their own.
#[derive(Debug, Default)]
pub(crate) struct Billing(Option<f64>);

impl Billing {
    /// Replaces the estimated total, when the account is complete.
    pub(crate) fn apply(&self, cost: &mut Cost) {
        if let Some(total) = self.0 {
            cost.total = total;
            cost.total_from_provider = Some(true);
        }
    }
}

impl<'de> Deserialize<'de> for Billing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::<String, Value>::deserialize(deserializer)?;
        Ok(Self(total(&fields)))
    }
}

fn total(fields: &Map<String, Value>) -> Option<f64> {
    let own = amount(fields.get("cost"))?;
    match fields.get("is_byok")? {
        Value::Bool(false) => Some(own),
        Value::Bool(true) => {
            let details = fields.get("cost_details")?.as_object()?;
            let upstream = match details.get("upstream_inference_cost")? {
                Value::Null => {
                    amount(details.get("upstream_inference_prompt_cost"))?
                        + amount(details.get("upstream_inference_completions_cost"))?
                }
                cost => amount(Some(cost))?,
            };
            Some(own + upstream)
        }
        _ => None,
    }
}

fn amount(value: Option<&Value>) -> Option<f64> {
    value?.as_f64().filter(|amount| amount.is_finite() && *amount >= 0.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn billed(account: Value) -> Option<f64> {
        serde_json::from_value::<Billing>(account).unwrap().0
    }

    #[test]
    fn only_a_complete_account_counts() {
        assert_eq!(billed(json!({"cost": 0.5, "is_byok": false})), Some(0.5));
        assert_eq!(billed(json!({"cost": 0.5})), None);
        assert_eq!(billed(json!({"cost": -1, "is_byok": false})), None);
        let own_key = |details: Value| billed(json!({"cost": 1, "is_byok": true, "cost_details": details}));
        assert_eq!(own_key(json!({"upstream_inference_cost": 2})), Some(3.0));
        assert_eq!(own_key(json!({})), None);
        let parts = json!({
            "upstream_inference_cost": null,
            "upstream_inference_prompt_cost": 1,
            "upstream_inference_completions_cost": 4,
        });
        assert_eq!(own_key(parts), Some(6.0));
    }
}
