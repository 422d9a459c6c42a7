package podvolume

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/mount-utils"
)

// memory is the mounter of the volume plugins. A tmpfs becomes a directory below root, which is on a tmpfs, with a
// symbolic link at the mount point: a real mount would need root and outlive a process that is killed. It never mounts
// anything.
type memory struct{ root string }

var _ mount.Interface = memory{}

func (m memory) Mount(source, target, fstype string, _ []string) error {
	if fstype != "tmpfs" {
		return fmt.Errorf("a volume of type %s cannot be made on this node", fstype)
	}
	// target ends in <pod UID>/volumes/<plugin>/<volume>.
	directory := filepath.Join(m.root, filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(target)))),
		filepath.Base(target))
	if err := os.MkdirAll(filepath.Dir(directory), 0o711); err != nil {
		return fmt.Errorf("making a volume in memory: %w", err)
	}
	if err := os.Mkdir(directory, 0o777); err != nil && !os.IsExist(err) {
		return fmt.Errorf("making a volume in memory: %w", err)
	}
	if err := os.Chmod(directory, 0o777); err != nil { // whatever the umask is
		return fmt.Errorf("making a volume in memory: %w", err)
	}
	if err := os.Remove(target); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("making a volume in memory: %w", err)
	}
	return os.Symlink(directory, target)
}

func (m memory) MountSensitive(source, target, fstype string, options, _ []string) error {
	return m.Mount(source, target, fstype, options)
}

func (m memory) MountSensitiveWithoutSystemd(source, target, fstype string, options, _ []string) error {
	return m.Mount(source, target, fstype, options)
}

func (m memory) MountSensitiveWithoutSystemdWithMountFlags(source, target, fstype string,
	options, _, _ []string) error {
	return m.Mount(source, target, fstype, options)
}

func (m memory) Unmount(target string) error {
	directory, err := os.Readlink(target)
	if err != nil {
		return err
	}
	return os.RemoveAll(directory)
}

// isMounted reports whether Mount created the target. A link left by an earlier run, whose memory directory is gone, is
// removed, so that the volume can be created again.
func (m memory) isMounted(target string) (bool, error) {
	info, err := os.Lstat(target)
	if err != nil {
		return false, err
	}
	if info.Mode()&os.ModeSymlink == 0 {
		return false, nil
	}
	if _, err := os.Stat(target); os.IsNotExist(err) {
		os.Remove(target)
		return false, err
	}
	return true, nil
}

func (m memory) IsMountPoint(target string) (bool, error) { return m.isMounted(target) }

func (m memory) IsLikelyNotMountPoint(target string) (bool, error) {
	mounted, err := m.isMounted(target)
	return !mounted, err
}

func (memory) CanSafelySkipMountPointCheck() bool    { return true }
func (memory) List() ([]mount.MountPoint, error)     { return nil, nil }
func (memory) GetMountRefs(string) ([]string, error) { return nil, nil }
