# METADATA
# title: Run interface - endpoints and models
# description: >-
#   Restricts the endpoints and public models of jobs, and the models in chat and completion calls.
# custom:
#   params:
#     endpoints:
#       description: Endpoint ids and public model names for jobs; default any.
#       type: array
#       items: {type: string, minLength: 1}
#     models:
#       description: Models in chat and completion calls and in the input of jobs; default any.
#       type: array
#       items: {type: string, minLength: 1}
#     allow_webhooks:
#       description: Allow jobs to use a webhook.
#       type: boolean
#       default: true
#   allow_lists: [endpoints, models]
#   example:
#     endpoints: [qwen3-32b-awq, abc123def]
#     allow_webhooks: false
package tollgate.library.run_endpoints

import data.tollgate.batch
import data.tollgate.value

violations(params) := ((endpoint(params) | model(params)) | model_of_job(params)) | webhook(params)

endpoint(params) := {{"message": message, "pointer": ""} |
	input.resource.kind == "job"
	allowed := params.endpoints
	not target in allowed
	message := sprintf("jobs must not be sent to %v (allowed: %s)", [target, value.listed(allowed)])
}

target := input.request.params.id

target := null if not input.request.params.id

model(params) := {{"message": message, "pointer": "/model"} |
	input.request.operation in {"chatCompletions", "completions", "embeddings", "modelCall"}
	allowed := params.models
	not named_model in allowed
	message := sprintf("the model %v is not allowed (allowed: %s)", [named_model, value.listed(allowed)])
}

model_of_job(params) := {{"message": message, "pointer": pointer} |
	input.request.operation in {"run", "runsync", "createBatch", "addBatchRequests"}
	allowed := params.models
	some [pointer, name] in models_of_job
	not name in allowed
	message := sprintf("the model %v is not allowed (allowed: %s)", [name, value.listed(allowed)])
}

models_of_job contains ["/input/model", name] if name := input.request.body.input.model

models_of_job contains ["/input/openai_input/model", name] if name := input.request.body.input.openai_input.model

models_of_job contains [sprintf("%s/%s", [request.pointer, concat("/", path)]), name] if {
	some request in batch.requests
	some path in [["model"], ["openai_input", "model"]]
	name := batch.at(request.input, path)
}

named_model := input.request.body.model

named_model := null if not input.request.body.model

webhook(params) := {{"message": "jobs must not name a webhook", "pointer": concat("/", ["", field])} |
	input.request.verb == "run"
	not params.allow_webhooks
	some field in webhooks
}

webhooks contains "webhook" if input.request.body.webhook

webhooks contains "webhookV2" if input.request.body.webhookV2
