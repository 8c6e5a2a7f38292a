package wire

import "golang.org/x/sys/unix"

// hungUp reports whether the other end of a socket has closed it, or its sending half,
// although bytes from before may wait to be read.
func hungUp(fd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(p, 0)
	return err == nil && n > 0
}
