// Package replay evaluates recorded calls again with other policies and reports the differences: calls newly denied, newly allowed,
// or denied for other reasons. It reads the events written by policies/decisionlog.
//
// It does not guess. The log masks some values, and a call whose verdict may depend on one is reported as undetermined, with the
// missing values. Information that the log does not contain is not reconstructed: the price list (the prices of the calls
// themselves are recorded), and the body before the policies in force at the time changed it.
//
//	report, err := replay.Run(ctx, file, engine, replay.Options{})
package replay
