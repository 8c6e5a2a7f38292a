//! Drives the crate runpod-sdk, set up from its environment: REST, then the run interface. Prints
//! {"calls": {label: {"result": ...} or {"error": string}}, "missing": []}.

use runpod_sdk::model::{CloudType, GpuTypeId, ListEndpointsQuery, ListPodsQuery, ListTemplatesQuery, PodCreateInput};
use runpod_sdk::serverless::ServerlessEndpoint;
use runpod_sdk::service::{EndpointsService, PodsService, TemplatesService};
use runpod_sdk::RunpodClient;
use serde_json::{Map, Value, json};

struct Calls(Map<String, Value>);

impl Calls {
    fn keep<T, E: std::fmt::Display>(&mut self, label: &str, outcome: Result<T, E>, show: impl Fn(&T) -> Value) -> Option<T> {
        let entry = match &outcome {
            Ok(value) => json!({"result": show(value)}),
            Err(error) => json!({"error": error.to_string()}),
        };
        self.0.insert(label.to_string(), entry);
        outcome.ok()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let client = RunpodClient::from_env().expect("the environment has the settings");
    let mut calls = Calls(Map::new());
    let input = PodCreateInput {
        name: Some("a".to_string()),
        image_name: Some("img:1".to_string()),
        cloud_type: Some(CloudType::Secure),
        gpu_type_ids: Some(vec![GpuTypeId::NvidiaL4]),
        gpu_count: Some(1),
        ..Default::default()
    };
    let pod = calls.keep("create pod", client.create_pod(input).await, |p| json!(p.name)).expect("a pod");
    calls.keep("pods", client.list_pods(ListPodsQuery::default()).await, |l| json!(l.len()));
    calls.keep("stop pod", client.stop_pod(&pod.id).await, |_| Value::Null);
    calls.keep("delete pod", client.delete_pod(&pod.id).await, |_| Value::Null);
    calls.keep("templates", client.list_templates(ListTemplatesQuery::default()).await, |l| json!(l.len()));
    calls.keep("endpoints", client.list_endpoints(ListEndpointsQuery::default()).await, |l| json!(l.len()));
    let endpoint = ServerlessEndpoint::new(std::env::var("ENDPOINT").expect("an endpoint"), client);
    calls.keep("health", endpoint.health().await, |_| Value::Null);
    println!("{}", json!({"calls": calls.0, "missing": []}));
}
