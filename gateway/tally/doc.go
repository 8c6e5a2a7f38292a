// Package tally counts the verdicts of policies in Redis, by organisation and hour, for [Retention]. The counts are for people: one whose write was not
// answered may be there or not.
package tally
