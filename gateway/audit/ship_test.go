package audit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// shelf is a receiver that takes some lines of each delivery, unless it is away.
type shelf struct {
	mu    sync.Mutex
	most  int
	away  bool
	lines []audit.Line
}

func (s *shelf) Deliver(_ context.Context, lines []audit.Line) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return 0, errors.New("away")
	}
	n := min(len(lines), s.most)
	s.lines = append(s.lines, lines[:n]...)
	if n < len(lines) {
		return n, errors.New("full")
	}
	return n, nil
}

func (s *shelf) leave(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// chain verifies the delivered lines, and returns how many there are.
func (s *shelf) chain(t *testing.T) (first, last int64) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	for _, l := range s.lines {
		text.Write(l.Text)
		text.WriteByte('\n')
	}
	c := new(audit.Chain)
	if err := c.Verify("shipped", strings.NewReader(text.String()), func(string) {}); err != nil {
		t.Error(err)
	}
	return c.First, c.Last
}

// ship runs a shipper until the end, which stop waits for.
func ship(t *testing.T, l *audit.Log, r audit.Receiver) (s *audit.Shipper, stop func()) {
	t.Helper()
	s, err := l.Ship("shelf", r, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	return s, func() { cancel(); <-ended }
}

// Each line arrives once, in order and unchanged, with any size of batches: over files that are put aside, over restarts, and after an absence.
func TestShipping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := logfile.File{Path: filepath.Join(t.TempDir(), "audit.log"), MaxBytes: 1500, Keep: 50}
		receiver := &shelf{most: 3}
		for i := range 4 {
			l := open(t, file)
			s, stop := ship(t, l, receiver)
			receiver.leave(i == 1)
			for j := range 10 {
				change(t, l, fmt.Sprint(i, "-", j))
				if j%4 == 0 {
					synctest.Wait()
				}
			}
			time.Sleep(3 * time.Minute) // of the bubble's clock
			switch b := s.Backlog(); {
			case i == 1 && (b.Lines != 20 || b.Since.IsZero()):
				t.Errorf("backlog while the receiver is away = %+v, want 20 lines", b)
			case i != 1 && (b.Lines != 0 || !b.Since.IsZero()):
				t.Errorf("run %d: backlog = %+v, want none", i, b)
			}
			stop()
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if first, last := receiver.chain(t); first != 1 || last != 80 || len(receiver.lines) != 80 {
			t.Errorf("lines %d to %d, %d of them; want 1 to 80, each once", first, last, len(receiver.lines))
		}
		if _, err := os.Stat(file.RotatedName(3)); err != nil {
			t.Errorf("the log was put aside too seldom: %v", err)
		}
	})
}

// A file that is removed before it was shipped is counted, and shipping goes on behind
// it; a position that is of another log begins anew.
func TestShippingFromWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := logfile.File{Path: filepath.Join(t.TempDir(), "audit.log"), MaxBytes: 1500, Keep: 1}
		l := open(t, file)
		receiver := &shelf{most: 1000}
		change(t, l, "first")
		_, stop := ship(t, l, receiver)
		synctest.Wait()
		stop()
		for i := range 40 {
			change(t, l, fmt.Sprint(i))
		}
		receiver.lines = nil
		s, stop := ship(t, l, receiver)
		time.Sleep(time.Minute)
		first, last := receiver.chain(t)
		if b := s.Backlog(); last != 82 || first < 4 || b.Lost != first-3 || b.Lines != 0 {
			t.Errorf("lines %d to %d, and %+v; want those after 2 that are there to 82, and the others lost", first, last, b)
		}
		stop()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}

		for n := range 2 {
			if err := os.Remove(file.RotatedName(n)); err != nil {
				t.Fatal(err)
			}
		}
		l, receiver.lines = open(t, file), nil
		change(t, l, "of another log")
		_, stop = ship(t, l, receiver)
		time.Sleep(time.Minute)
		stop()
		if first, last := receiver.chain(t); first != 1 || last != 2 {
			t.Errorf("lines %d to %d of another log, want 1 to 2", first, last)
		}
	})
}

// A receiver that is away, and a disk on which no position can be kept, hold up no
// change.
func TestAReceiverThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := open(t, logfile.File{Path: filepath.Join(dir, "audit.log")})
		if err := os.Mkdir(filepath.Join(dir, "audit.log.shelf.new"), 0o700); err != nil {
			t.Fatal(err)
		}
		receiver := &shelf{most: 1000, away: true}
		s, stop := ship(t, l, receiver)
		for i := range 50 {
			change(t, l, fmt.Sprint(i))
		}
		time.Sleep(time.Hour)
		if b := s.Backlog(); b.Lines != 100 || b.Lost != 0 {
			t.Errorf("backlog = %+v, want 100 lines", b)
		}
		receiver.leave(false)
		time.Sleep(2 * time.Minute)
		if first, last := receiver.chain(t); first != 1 || last != 100 {
			t.Errorf("lines %d to %d after the absence, want 1 to 100", first, last)
		}
		stop()
	})
}

// A receiver that asks for a pause is left alone for it.
func TestAReceiverThatAsksForAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, logfile.File{Path: filepath.Join(t.TempDir(), "audit.log"), MaxBytes: 1 << 20, Keep: 5})
		receiver := &limiting{asked: make(chan struct{})}
		_, stop := ship(t, l, receiver)
		change(t, l, "1")
		<-receiver.asked
		begun := time.Now()
		<-receiver.asked
		if waited := time.Since(begun); waited < 5*time.Minute || waited > 6*time.Minute {
			t.Errorf("asked again after %v, want 5 minutes", waited)
		}
		stop()
	})
}

// limiting is a receiver that asks for a pause of 5 minutes once.
type limiting struct {
	asked  chan struct{}
	passed bool
}

func (r *limiting) Deliver(ctx context.Context, lines []audit.Line) (int, error) {
	select {
	case r.asked <- struct{}{}:
	case <-ctx.Done():
	}
	if r.passed {
		return len(lines), nil
	}
	r.passed = true
	return 0, fmt.Errorf("webhook: %w", &backoff.RetryAfterError{Duration: 5 * time.Minute})
}
