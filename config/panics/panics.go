package panics

import (
	"fmt"
	"runtime/debug"
)

// Error is a panic that [Catch] has recovered.
type Error struct {
	Value any
	// Stack is the stack trace of the goroutine, as formatted by debug.Stack.
	Stack string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Catch calls f. If f panics, Catch returns the panic as an *Error; otherwise it returns nil. If f panics with an *Error, as in [Raise],
// Catch keeps the stack trace of the original panic.
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

// Raise panics with err if err is an *Error returned by [Catch]. Otherwise it does nothing.
func Raise(err error) {
	if p, ok := err.(*Error); ok { //nolint:errorlint // Catch does not wrap
		panic(p)
	}
}
