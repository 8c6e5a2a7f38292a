// Package problem defines the error responses of the gateway: problem details (RFC 9457), and the complete list of their kinds.
//
// A Problem has the form of errors of the v2 API. Package filter converts it to the forms of the legacy dialects. The encoded Problem
// contains only text for the caller, never the internal cause of the error.
package problem
