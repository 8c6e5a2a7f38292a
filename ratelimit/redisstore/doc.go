// Package redisstore keeps the counts of a [ratelimit.Limiter] in Redis: a
// single node, a Sentinel group or a Cluster, version 6.2 or later.
//
// All rules are in three Lua scripts, which need no module and no library beyond
// the JSON one, and therefore run on miniredis as well. One script call decides
// a whole group of calls. Everything of one organisation has its identifier as
// hash tag and lives in one slot.
//
//	tollgate:rl:{org_a}:key:k1     JSON: generation, index and count of minute,
//	                               hour and day, latest quotas; expires two
//	                               hours after its day
//	tollgate:rl:{org_a}#index      set of the scope keys counted today
//	tollgate:rl:{org_a}#leases:0   hash of what gateways hold, by scope and gateway, on
//	                               even days; #leases:1 on odd ones
//	tollgate:rl:{org_a}#debts:0    hash of the debts charged last, by scope and gateway, on
//	                               even days; #debts:1 on odd ones
//	tollgate:rl:gateways           sorted set of gateways by when they last spoke
//
// # Nothing is sent twice
//
// A script whose reply was lost may have run, so repeating it would charge a
// call twice. go-redis repeats by default: every command of this package is
// marked not to be repeated, which holds for cluster clients, too, and [Options]
// switches repetition off for the whole client. The exceptions are replies that say
// that nothing ran: NOSCRIPT, and in a cluster MOVED, ASK and TRYAGAIN. New refuses a
// client that would ignore deadlines.
//
// Debts are the other exception: a limiter sends a debt with every exchange until one of
// them is replied to, and the script charges each unit of it once.
package redisstore
