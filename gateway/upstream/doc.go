// Package upstream sends requests to the platform. It is the only place that
// holds the organisations' platform credentials, and it puts one on a request
// at the last moment.
//
// It never follows redirects, never decompresses, never retries: a request
// that may cost money is sent once.
package upstream
