package files

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A call that never returns is given up after Patience.
func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end, started := make(chan struct{}), time.Now()
		_, err := WithTimeout("read", "x", func() (int, error) { <-end; return 0, nil })
		if !errors.Is(err, ErrTooSlow) || time.Since(started) != Timeout {
			t.Errorf("%v after %s", err, time.Since(started))
		}
		close(end)
		if n, err := WithTimeout("read", "x", func() (int, error) { return 7, nil }); n != 7 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})
}
