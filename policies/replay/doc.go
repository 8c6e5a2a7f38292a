// Package replay decides recorded calls again, under other policies, and tells
// what would have been different: newly denied, newly allowed, refused for other
// reasons. It reads the events that policies/decisionlog writes.
//
// It never guesses. Masked values of the log are not known, and a call whose verdict may
// depend on one is reported as not judged, with the missing values. Neither does it repeat
// facts that are not in the log: the price list (prices of the calls themselves are), and
// the body before the policies of that time changed it.
//
//	report, err := replay.Run(ctx, file, engine, replay.Options{})
package replay
