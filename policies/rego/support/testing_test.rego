# METADATA
# title: Inputs for the library's tests
package tollgate.testing

# create, update: the input of a call judged on the state after it.
create(kind, after) := settled(kind, "create", after)

update(kind, after) := settled(kind, "update", after)

start(after) := settled("pod", "start", after)

settled(kind, verb, after) := {
	"request": {"settles": true, "verb": verb, "operation": verb, "body": after},
	"resource": {"kind": kind, "after": after},
	"caller": {"org": "acme", "team": "research", "roles": ["operator"]},
	"catalog": {"pools": {"ADA_24": ["NVIDIA GeForce RTX 4090", "NVIDIA L4"], "ADA_80_PRO": ["NVIDIA H100 80GB HBM3"]}},
	"cost": {"known": true, "usd_per_hour": 1, "usd_per_gpu_hour": 1, "basis": "a price"},
	"spend": {"known": true, "team": {"gpus": 0}, "org": {"gpus": 0}},
}

# plain: the input of a call that leaves nothing behind.
plain(kind, verb) := {
	"request": {"settles": false, "verb": verb, "operation": sprintf("%s_%s", [kind, verb])},
	"resource": {"kind": kind},
	"caller": {"org": "acme", "team": "research", "roles": ["operator"]},
}

# job: the input of a call of the run interface.
job(operation, id, body) := {
	"request": {"settles": false, "verb": "run", "operation": operation, "params": {"id": id}, "body": body},
	"resource": {"kind": "job"},
}

# asking: the input of such a call whose runs ask a language model for so much.
asking(operation, id, body, runs) := object.union(job(operation, id, body), {"request": {"runs": runs}})

# run: what one of them asks for.
run(at, tokens, choices) := {"pointer": "", "tokens": tokens, "choices": choices, "at": at, "wrong": false}

# pointers: what the violations point to.
pointers(violations) := {v.pointer | some v in violations}

# messages: what they say.
messages(violations) := {v.message | some v in violations}

# wrong: values of types a number is not.
wrong := [null, false, true, "", [], {}, "9"]
