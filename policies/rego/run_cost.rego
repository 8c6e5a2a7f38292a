# METADATA
# title: Run interface - cost per run
# description: >-
#   Limits the highest cost of a run of a public model. The price is from this policy, otherwise
#   from the organisation's prices.runs, otherwise from the platform's published prices. A model
#   without a known price is refused. Your own endpoints are billed by their workers. Add them to
#   endpoints, or declare their prices.
# custom:
#   params:
#     max_usd_per_run:
#       description: Maximum cost of a run in USD.
#       type: number
#       exclusiveMinimum: 0
#     prices:
#       description: >-
#         Prices by model; 0 means free. usd_per_run is fixed, usd_per_second is multiplied by
#         input.duration (default_seconds if absent), and usd_per_million_tokens by the highest
#         number of tokens of all choices together (default_tokens for each choice if the body sets
#         no limit).
#       type: object
#       additionalProperties:
#         type: object
#         additionalProperties: false
#         properties:
#           usd_per_run: {type: number, minimum: 0}
#           usd_per_second: {type: number, minimum: 0}
#           default_seconds: {type: number, exclusiveMinimum: 0}
#           usd_per_million_tokens: {type: number, minimum: 0}
#           default_tokens: {type: integer, minimum: 1}
#       default: {}
#     endpoints:
#       description: Your own endpoints, which are not checked.
#       type: array
#       items: {type: string, minLength: 1}
#       default: []
#   required: [max_usd_per_run]
#   example:
#     max_usd_per_run: 0.5
#     prices:
#       new-video-model: {usd_per_second: 0.15, default_seconds: 5}
#       new-language-model: {usd_per_million_tokens: 10, default_tokens: 512}
package tollgate.library.run_cost

import data.tollgate.batch
import data.tollgate.value

violations(params) := {{"message": message, "pointer": pointer} |
	input.request.verb == "run"
	not evaluated_before
	not target in params.endpoints
	some [message, pointer] in faults(params)
}

faults(params) := single(params) if not batches

faults(params) := batched(params) if batches

# evaluated_before: calls about requests that were evaluated when they were added.
evaluated_before if input.request.operation in {"updateBatch", "finalizeBatch"}

batches if input.request.operation in {"createBatch", "addBatchRequests"}

batched(params) := {[message, request.pointer] |
	some request in batch.requests
	not batch_priced(params, request)
	message := sprintf("the price of a run of %v is unknown", [target])
} | {[message, request.pointer] |
	some request in batch.requests
	usd := batch_usd(params, request)
	value.exceeds(usd, params.max_usd_per_run)
	message := sprintf("%s USD per run exceeds the limit of %s USD", [value.usd(usd), value.usd(params.max_usd_per_run)])
}

batch_priced(params, request) if batch_usd(params, request)

batch_usd(params, request) := batch_cost(params.prices[target], request)

batch_usd(params, _) := agreed(params)

# agreed: the highest cost of a run by its declared or published price; for a batch, the cost of the
# most expensive request.
agreed(params) := input.cost.usd_per_run if {
	not params.prices[target]
	input.cost.usd_per_run > 0
}

agreed(params) := 0 if {
	not params.prices[target]
	input.cost.run_free
}

# batch_cost: the cost of one request of a batch.
batch_cost(price, _) := price.usd_per_run

batch_cost(price, request) := million_tokens(price, run) if {
	some run in input.request.runs
	request.pointer == sprintf("%s/input", [run.pointer])
}

batch_cost(price, request) := price.usd_per_second * seconds if {
	not price.usd_per_run
	asked := {x | x := batch.at(request.input, ["duration"])}
	some seconds in (asked | {price.default_seconds | count(asked) == 0})
	is_number(seconds)
	seconds > 0
}

single(params) := {[message, ""] |
	not priced(params)
	message := sprintf("the price of a run of %v is unknown", [target])
} | {[message, place] |
	usd := one(params)
	value.exceeds(usd, params.max_usd_per_run)
	message := sprintf("%s USD per run exceeds the limit of %s USD", [value.usd(usd), value.usd(params.max_usd_per_run)])
}

target := input.request.params.id

target := null if not input.request.params.id

priced(params) if one(params)

one(params) := cost(params.prices[target])

one(params) := agreed(params)

# place: the pointer of the member with the input of a run.
place := "" if input.request.operation in {"chatCompletions", "completions", "embeddings", "modelCall"}

place := "/input" if not input.request.operation in {"chatCompletions", "completions", "embeddings", "modelCall"}

cost(price) := price.usd_per_run

cost(price) := price.usd_per_second * seconds if {
	not price.usd_per_run
	seconds := input.request.body.input.duration
	is_number(seconds)
	seconds > 0
}

cost(price) := price.usd_per_second * price.default_seconds if {
	not price.usd_per_run
	not input.request.body.input.duration
}

cost(price) := million_tokens(price, run) if {
	some run in input.request.runs
}

# million_tokens: the cost of the highest number of tokens that a run may produce; undefined if
# that is unknown.
million_tokens(price, run) := (price.usd_per_million_tokens * tokens(price, run)) / 1000000 if {
	not price.usd_per_run
	not price.usd_per_second
	not run.wrong
}

tokens(_, run) := run.tokens if is_number(run.tokens)

tokens(price, run) := price.default_tokens * run.choices if not is_number(run.tokens)
