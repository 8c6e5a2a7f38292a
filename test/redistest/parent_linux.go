package redistest

import "syscall"

// dieWithParent ends a server whose test was killed before it could clean up.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
