package proof

import (
	"fmt"
	"strings"
	"testing"
)

// commandCalls finds the number of calls of a command in what INFO commandstats
// tells.
func commandCalls(info, name string) int64 {
	for line := range strings.Lines(info) {
		var n int64
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+name+":"); ok {
			if _, err := fmt.Sscanf(rest, "calls=%d,", &n); err == nil {
				return n
			}
		}
	}
	return 0
}

func TestCommandCalls(t *testing.T) {
	info := "# Commandstats\r\ncmdstat_get:calls=3,usec=9\r\ncmdstat_evalsha:calls=41,usec=900\r\n"
	if got := commandCalls(info, "evalsha"); got != 41 {
		t.Errorf("calls of evalsha = %d, want 41", got)
	}
	if got := commandCalls(info, "eval"); got != 0 {
		t.Errorf("calls of eval = %d, want 0", got)
	}
}
