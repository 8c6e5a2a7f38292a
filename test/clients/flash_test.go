package clients

import (
	"bytes"
	"testing"
)

// flash makes endpoints on GPUs and CPUs, queues and balanced ones, by deploy() and by
// its command dev, and removes them. It puts the key that it calls with into their
// environment, where the platform never sees it.
func TestFlash(t *testing.T) {
	t.Parallel()
	python := installed(t, "runpod-flash-1.21.0/bin/python")
	s := newStack(t, standing())
	drive[report](t, s, python, "flash.py", settings(t, "`flash`", s)...).check(t, "flash.json")
	for _, call := range s.platform.Calls() {
		if bytes.Contains(call.Body, []byte(key)) {
			t.Errorf("the platform was sent the caller's key: %s", call.Body)
		}
	}
}
