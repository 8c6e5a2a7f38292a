package world

import "time"

// Pause lets time pass that is itself part of a scene: a caller's own between two
// requests, or that for which a process stands still. It waits for nothing.
func Pause(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // this is not waiting
