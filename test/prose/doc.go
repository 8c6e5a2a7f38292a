// Package prose measures how pages read: how much of them is in plain main clauses, in sentences of a bearable length, to an addressed
// reader. It knows nothing of grammar. It counts words that betray the habits, and the figures of two pages can be compared, no more.
package prose
