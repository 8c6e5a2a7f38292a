// Package legacy serves the platform's retired interfaces. It compiles their dialects from the configuration, has the routes of all
// dialects, keeps the translators' notes in Redis, and counts the remaining callers for operators.
package legacy
