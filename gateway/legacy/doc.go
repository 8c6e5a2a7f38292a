// Package legacy serves the platform's legacy APIs. It creates their translators from the configuration, defines the routes of all
// dialects, stores facts that v2 does not return in Redis, and lists the remaining callers for operators.
package legacy
