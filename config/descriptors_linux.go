package config

import "syscall"

// descriptors returns the limit on open files and connections of this process, or 0 if it is unknown.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return limit.Cur
}
