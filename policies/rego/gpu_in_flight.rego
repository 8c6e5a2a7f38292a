# METADATA
# title: GPUs in flight
# description: >-
#   Limits the GPUs that a team or the organisation uses at once. Counts the GPUs in the ledger and the
#   GPUs of the call. Endpoints count with their maximum workers. If the ledger is unavailable, the
#   call is refused. A limit above 0 also acts as a budget for concurrent calls (docs/spend.md) if
#   its entry has mode enforce, is not approvable and has no roles or exceptions.
# custom:
#   params:
#     max_per_team:
#       description: Maximum GPUs of a team.
#       type: integer
#       minimum: 0
#     max_per_org:
#       description: Maximum GPUs of the organisation.
#       type: integer
#       minimum: 0
#   any_of: [max_per_team, max_per_org]
#   example:
#     max_per_team: 16
package tollgate.library.gpu_in_flight

import data.tollgate.gpu
import data.tollgate.value

violations(params) := unknown | (above(params, "max_per_team", "team") | above(params, "max_per_org", "org"))

unknown := {{"message": "cannot determine the number of GPUs in flight: the ledger is unavailable", "pointer": pointer} |
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
	message := sprintf("%d GPUs in flight and %v more exceed the limit of %d for the %s", [running, added, limit, account])
}

in_flight := {"team": input.spend.team.gpus, "org": input.spend.org.gpus}

# adding: the call increases the number of GPUs in flight.
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

# added: the number of GPUs the call adds; for an update, the difference. It is null, which exceeds
# every limit, if it is not a number.
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
