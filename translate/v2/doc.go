// Package v2 provides typed views of decoded bodies of the platform's v2 API. A view reads and writes the members that
// the legacy APIs use and keeps all others, so that members added by a newer platform are preserved.
//
// Each member path occurs once, in a method of its view; a test checks all paths against the API description.
package v2
