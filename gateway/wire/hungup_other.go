//go:build !linux

package wire

// hungUp returns false, because other systems do not report this event.
func hungUp(uintptr) bool { return false }
