// Package coverage finds operations that lack a rule: a gateway with one does not start.
package coverage
