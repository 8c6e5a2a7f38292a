// Package problem defines the refusals of the gateway: RFC 9457 problem details, and the closed list of refusal kinds.
//
// A Problem has the form of the v2 API. Package filter converts it to the form of the legacy dialects. A Problem contains
// only text for the caller; the internal cause of an error is never encoded.
package problem
