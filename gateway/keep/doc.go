// Package keep lets owners keep idle resources: under a key, or by a signed link.
package keep
