package decisionlog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// A log is read over all its files, oldest first, of one organisation and time.
func TestCopyOfALog(t *testing.T) {
	f := logfile.File{Path: filepath.Join(t.TempDir(), "log"), Keep: 3}
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	event := func(n int, org string) string {
		return fmt.Sprintf(`{"decision_id":"d%d","timestamp":%q,"custom":{"org":%q}}`+"\n", n, at.Add(time.Duration(n)*time.Hour).Format(time.RFC3339Nano), org)
	}
	for file, text := range map[string]string{
		f.RotatedName(2): event(1, "acme") + event(2, "globex"), f.RotatedName(1): event(3, "acme") + "nonsense\n{}\n", f.RotatedName(0): event(4, "acme") + event(5, "acme")[:20],
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		org   string
		since time.Duration
		want  string
	}{
		{"acme", 0, event(1, "acme") + event(3, "acme") + event(4, "acme")},
		{"acme", 3 * time.Hour, event(3, "acme") + event(4, "acme")},
		{"globex", 0, event(2, "globex")},
		{"other", 0, ""},
	} {
		var got strings.Builder
		if err := decisionlog.Copy(t.Context(), &f, &got, tt.org, at.Add(tt.since)); err != nil || got.String() != tt.want {
			t.Errorf("%s since %s: %v\n%swant\n%s", tt.org, tt.since, err, got.String(), tt.want)
		}
	}
	var got strings.Builder
	if err := decisionlog.Copy(t.Context(), &logfile.File{Path: filepath.Join(t.TempDir(), "none")}, &got, "acme", at); err != nil || got.Len() > 0 {
		t.Errorf("no file: %q, %v", got.String(), err)
	}
}
