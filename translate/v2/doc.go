// Package v2 holds typed views of the decoded bodies of the platform's v2 API. A
// view reads and writes the members that the retired interfaces know of a
// resource and keeps all others, so a newer platform loses nothing by passing
// through.
//
// Each path is written once, in the methods of its view; a test holds every one
// of them against the API description.
package v2
