package panics

import (
	"fmt"
	"runtime/debug"
)

// Error is a recovered panic.
type Error struct {
	Value any
	// Stack is the stack trace of the goroutine, as formatted by debug.Stack.
	Stack string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Catch calls f. If f panics, Catch returns the panic as an *Error, otherwise nil. An *Error raised by [Raise] keeps its original stack
// trace.
func Catch(f func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *Error:
			err = v
		default:
			err = &Error{v, string(debug.Stack())}
		}
	}()
	f()
	return nil
}

// Raise panics with err if err is an *Error returned by [Catch]. It ignores all other errors.
func Raise(err error) {
	if p, ok := err.(*Error); ok { //nolint:errorlint // Catch does not wrap
		panic(p)
	}
}
