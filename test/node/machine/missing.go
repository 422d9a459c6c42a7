package machine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// needed are the programs of a node, with the Debian packages that contain them.
var needed = map[string]string{
	"containerd": "containerd",
	"runc":       "runc",
	"ip":         "iproute2",
	"iptables":   "iptables",
	"mount":      "mount",
	busybox:      "busybox-static",
	"python3":    "python3",
	"perl":       "perl",
}

const busybox = "/bin/busybox"

// plugins is where Debian installs containernetworking-plugins.
const plugins = "/usr/lib/cni"

// missing returns what this machine lacks to run containers, in one line; empty if nothing is known to be missing. Only
// tryContainer is conclusive.
func missing() string {
	if os.Getuid() != 0 {
		return "containers need root: run make test-node as root"
	}
	var packages []string
	for program, debianPackage := range needed {
		if _, err := exec.LookPath(program); err != nil {
			packages = append(packages, debianPackage)
		}
	}
	for _, plugin := range []string{"bridge", "host-local", "loopback", "portmap"} {
		if _, err := os.Stat(filepath.Join(plugins, plugin)); err != nil {
			packages = append(packages, "containernetworking-plugins")
			break
		}
	}
	if len(packages) > 0 {
		return "programs are missing: apt-get install " + strings.Join(packages, " ")
	}
	if linked, _ := exec.Command("ldd", busybox).CombinedOutput(); !strings.Contains(string(linked),
		"not a dynamic executable") {
		return busybox + " is not static: apt-get install busybox-static"
	}
	if _, err := os.Stat("/dev/kmsg"); err != nil {
		return fmt.Sprintf("a kubelet needs to read the kernel's messages: %v", err)
	}
	return ""
}
