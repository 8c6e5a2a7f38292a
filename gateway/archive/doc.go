// Package archive keeps explanations of gateways' decisions in Redis for a while, so
// that each gateway explains the decisions of all, before a restart too.
//
// An organisation has one key, a stream whose entries have one field: a decision's id
// and its report, JSON that the archive does not read. It is bounded in number and
// age.
package archive
