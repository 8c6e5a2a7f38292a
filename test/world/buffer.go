package world

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// Buffer is a bytes.Buffer that may be read while others write. Its zero value is
// empty.
type Buffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

// Write implements [io.Writer].
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns all that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Last returns the last n lines that are no events of exchanges which went as they should:
// enough for the reader of a failed test, and not a flood.
func (b *Buffer) Last(n int) string {
	var lines []string
	for line := range strings.Lines(b.String()) {
		if !strings.Contains(line, `"level":"INFO","msg":"exchange"`) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "")
}

// Await returns all that was written once it contains text, or after a minute.
func (b *Buffer) Await(text string) string {
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(time.Minute); ; <-poll.C {
		if all := b.String(); strings.Contains(all, text) || time.Now().After(end) {
			return all
		}
	}
}

// Logger returns a logger that writes JSON lines of every level here.
func (b *Buffer) Logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Exchanges returns the events among the lines a gateway has logged here, one per
// exchange, oldest first.
func (b *Buffer) Exchanges(t testing.TB) []map[string]any {
	t.Helper()
	var events []map[string]any
	for line := range strings.Lines(b.String()) {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		if event["msg"] == "exchange" {
			events = append(events, event)
		}
	}
	return events
}
