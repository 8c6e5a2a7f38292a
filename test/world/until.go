package world

import (
	"testing"
	"time"
)

// longest is longer than anything takes that a test waits for, on a machine that is busy
// with other tests.
const longest = 2 * time.Minute

// Until waits for an act of a program by itself, and fails the test when it never comes.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(longest)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited %s in vain until %s", longest, what)
		}
	}
}
