//go:build !linux

package wire

// hungUp returns false, because systems other than Linux do not report this event.
func hungUp(uintptr) bool { return false }
