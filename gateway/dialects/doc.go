// Package dialects makes the legacy dialects of a configuration, and the table of the routes of all.
package dialects
