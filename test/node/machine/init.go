package machine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	// gateway is the address of the node on the bridge of its pods.
	gateway = "10.88.0.1"
	bridge  = "pods0"
)

// beInit prepares the machine, runs the tests and returns their exit code. All other processes of the namespaces end
// with this one.
func beInit() int {
	dir := os.Getenv(dirVariable)
	if err := prepare(dir); err != nil {
		// The mount that hides this folder from outside is the last step of prepare, so the outer process can read the
		// file.
		if err := os.WriteFile(filepath.Join(dir, reasonFile), []byte(err.Error()), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return cannotPrepare
	}
	tests := self(stageTests)
	tests.Env = append(tests.Env, "TMPDIR="+dir)
	if err := tests.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return reap(tests.Process.Pid)
}

// reap reaps all processes that exit here until the given one does, and returns its exit code.
func reap(last int) int {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			fmt.Fprintln(os.Stderr, "waiting for processes:", err)
			return 1
		case pid == last && status.Signaled():
			return 128 + int(status.Signal())
		case pid == last:
			return status.ExitStatus()
		}
	}
}

// prepare creates, in memory, what a node's programs expect at fixed paths, and the network of the pods.
func prepare(dir string) error {
	// Mounts must not propagate to the outside; inside, a kubelet's mounts must propagate to containers.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("making mounts shared: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	commands := [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "link", "add", bridge, "type", "bridge"},
		{"ip", "address", "add", gateway + "/24", "dev", bridge},
		{"ip", "link", "set", bridge, "up"},
		{"ip", "route", "add", "default", "dev", bridge},
		{"iptables", "-t", "nat", "-L", "-n"},
	}
	for _, command := range commands {
		if output, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(string(output)))
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("enabling IP forwarding between pods: %w", err)
	}
	if err := tryContainer(filepath.Join(dir, "try")); err != nil {
		return err
	}
	for _, target := range []string{"/run", "/var/log", dir} {
		if err := syscall.Mount("tmpfs", target, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mounting a tmpfs on %s: %w", target, err)
		}
	}
	return nil
}

// tryContainer runs a program in a container on an overlay file system, as a node does.
func tryContainer(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mounting a tmpfs: %w", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	for _, name := range []string{"lower", "upper", "work", "rootfs", "state"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	program, err := os.ReadFile(busybox)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "lower", "sh"), program, 0o755)
	}
	if err != nil {
		return err
	}
	root := filepath.Join(dir, "rootfs")
	layers := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", dir)
	if err := syscall.Mount("overlay", root, "overlay", 0, layers); err != nil {
		return fmt.Errorf("mounting an overlay file system: %w", err)
	}
	defer syscall.Unmount(root, syscall.MNT_DETACH)
	spec := fmt.Sprintf(`{"ociVersion": "1.0.2", "root": {"path": "rootfs"}, "process": {"cwd": "/", "args": ["/sh", "-c", "exit 0"]},
"mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
"linux": {"cgroupsPath": "/%s/try", "namespaces": [{"type": "mount"}, {"type": "pid"}, {"type": "network"}]}}`, os.Getenv(cgroupVariable))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(spec), 0o600); err != nil {
		return err
	}
	if output, err := exec.Command("runc", "--root", filepath.Join(dir, "state"), "run", "--bundle", dir,
		"try").CombinedOutput(); err != nil {
		return fmt.Errorf("running a container with runc: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}
