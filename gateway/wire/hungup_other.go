//go:build !linux

package wire

// hungUp cannot tell: other systems have no such event.
func hungUp(uintptr) bool { return false }
