# METADATA
# title: Inputs for tests, with the members and the operations that a gateway sends
package tollgate.testing

# operations: the operation of a call, by kind and verb.
operations := {
	"pod": {
		"create": "createPod", "read": "getPod", "update": "updatePod", "delete": "deletePod", "logs": "getPodLogs",
		"start": "podAction", "stop": "podAction", "restart": "podAction",
	},
	"cluster": {"create": "createCluster", "read": "getCluster", "update": "updateCluster", "delete": "deleteCluster"},
	"endpoint": {
		"create": "createEndpoint", "read": "getEndpoint", "update": "updateEndpoint", "delete": "deleteEndpoint",
		"logs": "getWorkerLogs",
	},
	"template": {"create": "createTemplate", "read": "getTemplate", "update": "updateTemplate", "delete": "deleteTemplate"},
	"network_volume": {
		"create": "createNetworkVolume", "read": "getNetworkVolume", "update": "updateNetworkVolume",
		"delete": "deleteNetworkVolume",
	},
	"registry": {"create": "createRegistry", "read": "getRegistry", "delete": "deleteRegistry"},
	"sandbox": {
		"create": "createSandbox", "read": "getSandbox", "delete": "deleteSandbox", "exec": "execSandbox",
		"logs": "getSandboxLogs",
	},
	"delegation": {"create": "createDelegation", "read": "listDelegations", "delete": "revokeDelegation"},
	"account": {"read": "getSshKeys", "update": "updateSshKeys"},
	"catalog": {"read": "listGpuTypes"},
	"billing": {"read": "listBilling"},
	"job": {"run": "run", "read": "jobStatus", "cancel": "cancelJob"},
	"gateway": {"read": "getOpenAPI"},
	"unknown": {"read": "unknownRead"},
}

# operation: the operation of a call, the verb where no call of the kind has it.
operation(kind, verb) := object.get(operations, [kind, verb], verb)

# body: the body of a call that only names an action, null for others.
body(verb) := {"action": verb} if verb in {"start", "stop", "restart"}

body(verb) := null if not verb in {"start", "stop", "restart"}

# call: the members that the input of any call has.
call(kind, verb, id) := {
	"version": 1,
	"request": {
		"verb": verb, "operation": id, "method": "", "path": "", "params": {}, "query": {}, "body": body(verb),
		"runs": [], "unknown": {}, "labels": {}, "dialect": "v2",
	},
	"resource": {"kind": kind, "current": null, "after": null},
	"caller": {"org": "acme", "team": "research", "key": "ann", "roles": ["operator"]},
	"time": {"ns": 1795701600000000000, "rfc3339": "2026-11-26T14:00:00Z"},
}

# create, update, start: the input of a call judged on the state after it.
create(kind, after) := settled(kind, "create", after)

update(kind, after) := settled(kind, "update", after)

start(after) := object.union(settled("pod", "start", after), {"request": {"body": body("start")}})

settled(kind, verb, after) := object.union(call(kind, verb, operation(kind, verb)), {
	"request": {"settles": true, "body": after},
	"resource": {"after": after},
	"catalog": {"pools": {"ADA_24": ["NVIDIA GeForce RTX 4090", "NVIDIA L4"], "ADA_80_PRO": ["NVIDIA H100 80GB HBM3"]}},
	"cost": {"known": true, "usd_per_hour": 1, "usd_per_gpu_hour": 1, "basis": "a price"},
	"spend": {"known": true, "team": {"gpus": 0}, "org": {"gpus": 0}},
})

# plain: the input of a call that leaves nothing behind.
plain(kind, verb) := object.union(call(kind, verb, operation(kind, verb)), {"request": {"settles": false}})

# job: the input of a call of the run interface.
job(name, id, body) := object.union(
	call("job", "run", name),
	{"request": {"settles": false, "params": {"id": id}, "body": body, "dialect": "run"}},
)

# asking: the input of such a call whose runs ask a language model for so much.
asking(name, id, body, runs) := object.union(job(name, id, body), {"request": {"runs": runs}})

# run: what one of them asks for.
run(at, tokens, choices) := {"pointer": "", "tokens": tokens, "choices": choices, "at": at, "wrong": false}

# pointers: what the violations point to.
pointers(violations) := {v.pointer | some v in violations}

# messages: what they say.
messages(violations) := {v.message | some v in violations}

# wrong: values of types a number is not.
wrong := [null, false, true, "", [], {}, "9"]
