package nextstate

import "fmt"

// Fault is the error for a call that the platform refuses because of the resource or template that the call would be merged with.
type Fault struct { //nolint:errname // the project calls it a fault
	// Status is the HTTP status the platform returns: 400, 409 or 422.
	Status int
	// Pointer is the JSON Pointer (RFC 6901) of the offending field in the body, or "" for the whole body.
	Pointer string
	// Detail describes the problem in plain text.
	Detail string
}

// Error returns the pointer and the detail.
func (f *Fault) Error() string {
	if f.Pointer == "" {
		return f.Detail
	}
	return f.Pointer + ": " + f.Detail
}

func fault(status int, pointer, format string, args ...any) error {
	return &Fault{Status: status, Pointer: pointer, Detail: fmt.Sprintf(format, args...)}
}
