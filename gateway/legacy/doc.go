// Package legacy serves the retired interfaces: it makes their dialects as a configuration has them, notes their callers, and lists these for
// operators. It has the table of the routes of all dialects, too.
package legacy
