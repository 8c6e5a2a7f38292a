// Package redisstore stores the counts of a [ratelimit.Limiter] in Redis: a single node, a Sentinel group or a Cluster, version 6.2 or
// later.
//
// All rules are in three Lua scripts. They need no module, and no library except the JSON one, so they also run on miniredis. One
// script call decides a whole group of calls. All keys of an organisation have its identifier as hash tag and are in one slot.
//
//	tollgate:rl:{org_a}:key:k1     JSON: generation, index and count of minute,
//	                               hour and day, latest quotas; expires two
//	                               hours after its day
//	tollgate:rl:{org_a}#index      set of the scope keys counted today
//	tollgate:rl:{org_a}#leases:0   hash of permits held by gateways, by scope and
//	                               gateway, on even days; #leases:1 on odd days
//	tollgate:rl:{org_a}#debts:0    hash of the debts charged last, by scope and
//	                               gateway, on even days; #debts:1 on odd days
//	tollgate:rl:gateways           sorted set of gateways by the time of their
//	                               latest heartbeat
//
// # Nothing is sent twice
//
// A script whose reply was lost may have been executed, so repeating it would charge a call twice. go-redis retries by default.
// Therefore every command of this package is marked as not to be retried, which also affects cluster clients, and [Options] disables
// retries for the whole client. The exceptions are replies that prove that nothing was executed: NOSCRIPT, and in a cluster MOVED, ASK
// and TRYAGAIN. New rejects a client that ignores deadlines.
//
// Debts are another exception: a limiter sends a debt with every request until it gets a reply, and the script charges each unit of the
// debt once.
package redisstore
