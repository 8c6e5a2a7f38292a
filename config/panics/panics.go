package panics

import (
	"fmt"
	"runtime/debug"
)

// Error is the panic of a goroutine.
type Error struct {
	Value any
	// Stack is the stack of the goroutine, as debug.Stack formats it.
	Stack string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Catch calls f, and returns its panic as a *Error, or nil. A *Error that [Raise] has raised keeps
// its stack.
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

// Raise panics with err if it is a *Error that [Catch] returned. It does nothing with any other
// error.
func Raise(err error) {
	if p, ok := err.(*Error); ok { //nolint:errorlint // Catch wraps nothing
		panic(p)
	}
}
