package wire

import "golang.org/x/sys/unix"

// hungUp reports whether the peer has closed its socket, or the sending half of its socket. It also works if earlier data is still unread.
func hungUp(fd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(p, 0)
	return err == nil && n > 0
}
