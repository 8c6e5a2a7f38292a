// Package decisions provides the decisions of gateways to operators and callers: the decision log; the latest exchanges of this
// gateway; the [Archive], which stores explanations in Redis so that each gateway can explain the decisions of all gateways, even
// after a restart; and the [CountStore], which counts policy verdicts in Redis by organisation and hour.
//
// The archive has one stream per organisation, limited in length and age. If a write of counts receives no reply, the counts may be
// missing.
package decisions
