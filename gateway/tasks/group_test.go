package tasks

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		g := &Group{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		if !g.Wait(t.Context()) {
			t.Error("nothing runs, and it was waited for")
		}
		g.Go(func() { time.Sleep(time.Second) })
		short, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if g.Wait(short) {
			t.Error("what runs a second was over after half of it")
		}
		began := time.Now()
		waited := make(chan bool)
		go func() { waited <- g.Wait(t.Context()) }()
		synctest.Wait()
		g.Go(func() { time.Sleep(2 * time.Second) }) // while a caller waits
		g.Go(func() { panic("boom") })
		if !<-waited || time.Since(began) != 2*time.Second {
			t.Errorf("waited %v, want until the last has ended", time.Since(began))
		}
		if !strings.Contains(log.String(), "boom") {
			t.Errorf("the log does not tell of the panic: %s", &log)
		}
	})
}
