// Package tally counts in Redis what policies said, by organisation and hour, for [Retention]. The counts are for people: one whose write was not
// answered may be there or not.
package tally
