# METADATA
# title: Run interface - cost per run
# description: >-
#   Bounds what one run of a public model may cost at most: by the prices given
#   here, or those that the organisation has declared (prices.runs), or those
#   that the platform publishes. A model without a known price is refused.
#   Endpoints of the account cost what their workers cost: list them under
#   endpoints, or declare their prices.
# custom:
#   params:
#     max_usd_per_run:
#       description: Most USD one run may cost.
#       type: number
#       exclusiveMinimum: 0
#     prices:
#       description: >-
#         Model to price, instead of the declared or published one. usd_per_run is taken as it is; usd_per_second is
#         multiplied by input.duration (default_seconds when absent), and
#         usd_per_million_tokens by the most tokens that all choices together may
#         have (default_tokens each when that is not said).
#       type: object
#       additionalProperties:
#         type: object
#         additionalProperties: false
#         properties:
#           usd_per_run: {type: number, exclusiveMinimum: 0}
#           usd_per_second: {type: number, exclusiveMinimum: 0}
#           default_seconds: {type: number, exclusiveMinimum: 0}
#           usd_per_million_tokens: {type: number, exclusiveMinimum: 0}
#           default_tokens: {type: integer, minimum: 1}
#       default: {}
#     endpoints:
#       description: The account's own endpoints, which are not judged.
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
	not judged_before
	not target in params.endpoints
	some [message, pointer] in faults(params)
}

faults(params) := single(params) if not batches

faults(params) := batched(params) if batches

# judged_before: what only concerns requests that were judged when they were added.
judged_before if input.request.operation in {"updateBatch", "finalizeBatch"}

batches if input.request.operation in {"createBatch", "addBatchRequests"}

batched(params) := {[message, request.pointer] |
	some request in batch.requests
	not batch_priced(params, request.input)
	message := sprintf("the price of a run of %v is not known", [target])
} | {[message, request.pointer] |
	some request in batch.requests
	usd := batch_usd(params, request.input)
	value.exceeds(usd, params.max_usd_per_run)
	message := sprintf("%v USD per run are more than the %v USD allowed", [usd, params.max_usd_per_run])
}

batch_priced(params, given) if batch_usd(params, given)

batch_usd(params, given) := batch_cost(params.prices[target], given)

batch_usd(params, _) := agreed(params)

# agreed: the most that a run costs by its declared or published price, of a batch the
# dearest.
agreed(params) := input.cost.usd_per_run if {
	not params.prices[target]
	input.cost.usd_per_run > 0
}

# batch_cost is cost for one input of a batch.
batch_cost(price, _) := price.usd_per_run

batch_cost(price, given) := price.usd_per_second * seconds if {
	not price.usd_per_run
	asked := {x | x := batch.at(given, ["duration"])}
	some seconds in (asked | {price.default_seconds | count(asked) == 0})
	is_number(seconds)
	seconds > 0
}

batch_cost(price, given) := ((price.usd_per_million_tokens * max(asked)) * max(several | {1})) / 1000000 if {
	not price.usd_per_run
	not price.usd_per_second
	said := {x | some path in token_paths; x := batch.at(given, path)}
	asked := said | {price.default_tokens | count(said) == 0}
	several := {x | some path in choice_paths; x := batch.at(given, path)}
	every n in asked | several {
		is_number(n)
		n > 0
	}
}

token_paths := [["max_tokens"], ["sampling_params", "max_tokens"], ["openai_input", "max_tokens"], ["openai_input", "max_completion_tokens"]]

choice_paths := [["sampling_params", "n"], ["sampling_params", "best_of"], ["openai_input", "n"], ["openai_input", "best_of"]]

single(params) := {[message, ""] |
	not priced(params)
	message := sprintf("the price of a run of %v is not known", [target])
} | {[message, place] |
	usd := one(params)
	value.exceeds(usd, params.max_usd_per_run)
	message := sprintf("%v USD per run are more than the %v USD allowed", [usd, params.max_usd_per_run])
}

target := input.request.params.id

target := null if not input.request.params.id

priced(params) if one(params)

one(params) := cost(params.prices[target])

one(params) := agreed(params)

# place: where the body says what a run is to make.
place := "" if input.request.operation in {"chatCompletions", "completions"}

place := "/input" if not input.request.operation in {"chatCompletions", "completions"}

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

cost(price) := ((price.usd_per_million_tokens * tokens(price)) * choices) / 1000000 if {
	not price.usd_per_run
	not price.usd_per_second
}

# tokens: the most that one choice may have, by whichever name; undefined if one of
# them is no number.
tokens(_) := max(tokens_asked) if {
	count(tokens_asked) > 0
	every n in tokens_asked {
		is_number(n)
		n > 0
	}
}

tokens(price) := price.default_tokens if count(tokens_asked) == 0

tokens_asked contains n if {
	n := input.request.body.max_tokens
	n != null
}

tokens_asked contains n if {
	n := input.request.body.max_completion_tokens
	n != null
}

tokens_asked contains n if n := input.request.body.input.max_tokens

tokens_asked contains n if n := input.request.body.input.sampling_params.max_tokens

tokens_asked contains n if {
	some name in ["max_tokens", "max_completion_tokens"]
	n := input.request.body.input.openai_input[name]
}

# choices: how many answers are generated; undefined if that is no number.
choices := max(choices_asked | {1}) if {
	every n in choices_asked {
		is_number(n)
		n > 0
	}
}

choices_asked contains n if {
	n := input.request.body.n
	n != null
}

choices_asked contains n if {
	n := input.request.body.best_of
	n != null
}

choices_asked contains n if {
	some name in ["n", "best_of"]
	n := input.request.body.input.sampling_params[name]
}

choices_asked contains n if {
	some name in ["n", "best_of"]
	n := input.request.body.input.openai_input[name]
}
