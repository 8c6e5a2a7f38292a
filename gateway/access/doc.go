// Package access answers callers what they may do: which operations, within which limits and
// budgets, for which prices.
package access
