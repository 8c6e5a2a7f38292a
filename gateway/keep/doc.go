// Package keep lets owners keep what is idle: under a key, or by a signed link.
package keep
