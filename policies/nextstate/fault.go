package nextstate

import "fmt"

// Fault is a call that the platform refuses because of the resource or template that it
// would be merged with.
type Fault struct { //nolint:errname // a fault is what it is called everywhere
	// Status is the platform's status for it: 400, 409 or 422.
	Status int
	// Pointer is the offending field of the body (RFC 6901), "" for the whole.
	Pointer string
	// Detail words the fault for people.
	Detail string
}

// Error is the detail with its place.
func (f *Fault) Error() string {
	if f.Pointer == "" {
		return f.Detail
	}
	return f.Pointer + ": " + f.Detail
}

func fault(status int, pointer, format string, args ...any) error {
	return &Fault{Status: status, Pointer: pointer, Detail: fmt.Sprintf(format, args...)}
}
