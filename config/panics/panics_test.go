package panics

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// A panic of a task's goroutine reaches it with the stack of the goroutine.
func TestAPanicOfAGoroutine(t *testing.T) {
	boom := func() { panic("boom") }
	err := Catch(func() {
		work, ctx := errgroup.WithContext(t.Context())
		work.Go(func() error { return Catch(boom) })
		<-ctx.Done()
		Raise(work.Wait())
	})
	var p *Error
	if !errors.As(err, &p) || p.Value != "boom" || !strings.Contains(p.Stack, "TestAPanicOfAGoroutine.func1") {
		t.Errorf("%#v, want the panic of the goroutine", err)
	}
	if err := Catch(func() { Raise(errors.New("other")); Raise(nil) }); err != nil {
		t.Errorf("other errors: %v", err)
	}
}
