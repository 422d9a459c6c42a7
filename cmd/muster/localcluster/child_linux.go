package localcluster

import "syscall"

// childAttributes also makes the kernel stop the cluster when this process is killed without a chance to do it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
