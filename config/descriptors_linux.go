package config

import "syscall"

// descriptors returns the maximum number of file descriptors (files and connections) of this process, or 0 if the limit is unknown.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return limit.Cur
}
