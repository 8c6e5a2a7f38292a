// Package archive keeps explanations of what gateways decided in Redis for a while,
// so that each of them tells what any of them did, before a restart too.
//
// An organisation has two keys in one slot: an index by time, whose members begin
// with a decision id and hold the summary, and a hash of reports by id. Both are
// bounded in number and age. Summaries and reports are JSON that the archive does not
// read.
package archive
