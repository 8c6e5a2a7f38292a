// Package coverage finds operations that something is missing for which holds them.
package coverage
