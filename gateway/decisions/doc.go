// Package decisions keeps the decisions of gateways, for operators and callers: the decision log; the latest exchanges of this gateway; the
// [Archive], which keeps explanations in Redis so that each gateway can explain the decisions of all, also after a restart; and the
// [CountStore], which counts the verdicts of policies in Redis by organisation and hour.
//
// In the archive an organisation has one stream, bounded in number and age. A count whose write was not answered may be missing.
package decisions
