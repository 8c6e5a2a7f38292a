# METADATA
# title: GPUs in flight
# description: >-
#   Bounds how many GPUs a team, or the organisation, has at once: those that
#   run by the ledger's count and those the call would add, serverless workers
#   at their maximum. When the ledger cannot be asked the call is refused. Entries
#   in enforce without roles and exceptions are budgets, too (docs/spend.md), which
#   hold when calls race; limits of 0 are the policy's alone.
# custom:
#   params:
#     max_per_team:
#       description: Most GPUs of one team at once.
#       type: integer
#       minimum: 0
#     max_per_org:
#       description: Most GPUs of the organisation at once.
#       type: integer
#       minimum: 0
#   any_of: [max_per_team, max_per_org]
#   example:
#     max_per_team: 16
package tollgate.library.gpu_in_flight

import data.tollgate.gpu
import data.tollgate.value

violations(params) := unknown | (above(params, "max_per_team", "team") | above(params, "max_per_org", "org"))

unknown := {{"message": "the GPUs in flight are not known", "pointer": pointer} |
	adding
	not input.spend.known
}

above(params, name, account) := {{"message": message, "pointer": pointer} |
	adding
	input.spend.known
	limit := params[name]
	running := in_flight[account]
	total := sum_of(running, added)
	value.exceeds(total, limit)
	message := sprintf("%d GPUs in flight and %v more exceed the %d allowed for the %s", [running, added, limit, account])
}

in_flight := {"team": input.spend.team.gpus, "org": input.spend.org.gpus}

# adding: the call adds GPUs to those in flight.
adding if {
	input.request.verb in {"create", "start"}
	input.resource.kind in {"pod", "cluster", "endpoint"}
	added != 0
}

adding if {
	input.request.verb == "update"
	input.resource.kind == "endpoint"
	value.exceeds(added, 0)
}

# added: how many GPUs the call adds; an update counts the difference. null,
# which exceeds everything, when that is not a number.
default added := 0

added := gpu.total if input.request.verb in {"create", "start"}

added := difference(gpu.total, before) if {
	input.request.verb == "update"
	input.resource.kind == "endpoint"
}

before := gpus * most if {
	gpus := object.get(input.resource.current.gpu, "count", 1)
	most := max([object.get(workers, "min", 0), object.get(workers, "max", 3)])
}

workers := input.resource.current.workers

workers := {} if not input.resource.current.workers

difference(a, b) := a - b if is_number(a)

difference(a, _) := null if not is_number(a)

sum_of(a, b) := a + b if is_number(b)

sum_of(_, b) := null if not is_number(b)

default pointer := ""

pointer := "/gpu" if input.resource.kind in {"pod", "endpoint"}

pointer := "/compute" if input.resource.kind == "cluster"
