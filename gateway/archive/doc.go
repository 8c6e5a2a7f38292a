// Package archive keeps explanations of what gateways decided in Redis for a while,
// so that each of them tells what any of them did, before a restart too.
//
// An organisation has one key, a stream whose entries have one field: a decision's id
// and its report, JSON that the archive does not read. It is bounded in number and
// age.
package archive
