// Package access tells callers their rights: which operations, within which limits and
// budgets, for which prices.
package access
