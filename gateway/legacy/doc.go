// Package legacy serves the platform's legacy APIs. It creates their translators from the configuration, defines the
// routes of all dialects, stores the translators' notes in Redis, and reports the remaining callers to operators.
package legacy
