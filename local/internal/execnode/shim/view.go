package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// makeView makes every mount in this process's mount namespace, and never changes a directory of the machine. If a
// target does not exist, its nearest existing parent is covered by a directory in memory that shows everything in the
// parent (each entry bind-mounted) and to which the target can be added.
func makeView(mounts []Mount, staging string) error {
	// Mounts of the machine propagate into this namespace, but never the other way.
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("leaving the machine's mount namespace: %w", err)
	}
	v := &view{staging: staging, bound: map[string]bool{}}
	defer v.close()
	// Sources are opened first, because a mount may cover the path of a later one's source.
	for _, mount := range mounts {
		if err := v.open(mount); err != nil {
			return err
		}
	}
	// Parents before children, so that a mount inside another's target lands in it.
	slices.SortStableFunc(v.mounts, func(a, b opened) int { return strings.Compare(a.Target, b.Target) })
	for _, mount := range v.mounts {
		if err := v.bind(mount); err != nil {
			return fmt.Errorf("mounting %s on %s: %w", mount.Source, mount.Target, err)
		}
	}
	return v.leaveOldRoot()
}

type view struct {
	staging string
	mounts  []opened
	// covered are directories in memory that mirror an existing one; what lies below them is the machine's.
	covered []string
	// made are directories in memory that contain nothing of the machine.
	made []string
	// bound are the targets so far, and whether they may be written to: what is below them belongs to a volume.
	bound   map[string]bool
	oldRoot string
}

type opened struct {
	Mount
	fd    int
	isDir bool
}

func (o opened) path() string { return "/proc/self/fd/" + strconv.Itoa(o.fd) }

func (v *view) close() {
	for _, mount := range v.mounts {
		unix.Close(mount.fd)
	}
}

func (v *view) open(m Mount) error {
	m.Target = filepath.Clean(m.Target)
	if m.Target == "/" || !filepath.IsAbs(m.Target) {
		return fmt.Errorf("mounting %s on %q: not a path inside the root", m.Source, m.Target)
	}
	fd, err := unix.Open(m.Source, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s for %s: %w", m.Source, m.Target, err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		unix.Close(fd)
		return fmt.Errorf("reading %s for %s: %w", m.Source, m.Target, err)
	}
	v.mounts = append(v.mounts, opened{Mount: m, fd: fd, isDir: stat.Mode&unix.S_IFMT == unix.S_IFDIR})
	return nil
}

func (v *view) bind(m opened) error {
	target, err := v.mountPoint(m)
	if err != nil {
		return err
	}
	if err := unix.Mount(m.path(), target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	v.bound[target] = !m.ReadOnly
	if m.ReadOnly {
		return remountReadOnly(target)
	}
	return nil
}

// mountPoint returns an existing path of the mount's kind at its target, with all links followed.
func (v *view) mountPoint(m opened) (string, error) {
	parent, missing, err := nearest(m.Target)
	if err != nil {
		return "", err
	}
	if missing == "" {
		info, err := os.Stat(parent)
		if err != nil {
			return "", err
		}
		if info.IsDir() != m.isDir {
			return "", fmt.Errorf("it is a %s on this machine, and the volume has a %s there", kind(info.IsDir()), kind(m.isDir))
		}
		return parent, nil
	}
	if !v.hasRoom(parent) {
		if err := v.cover(parent); err != nil {
			return "", err
		}
	}
	first, _, nested := strings.Cut(missing, "/")
	if nested || m.isDir {
		v.made = append(v.made, filepath.Join(parent, first))
	}
	target := filepath.Join(parent, missing)
	directory := target
	if !m.isDir {
		directory = filepath.Dir(target)
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return "", err
	}
	if !m.isDir {
		return target, touch(target)
	}
	return target, nil
}

// nearest splits a path into the part that exists, with all links followed, and the part that does not.
func nearest(path string) (exists, missing string, err error) {
	for current := path; ; current = filepath.Dir(current) {
		real, err := filepath.EvalSymlinks(current)
		if err == nil {
			return real, missing, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", "", err
		}
		missing = filepath.Join(filepath.Base(current), missing)
	}
}

// hasRoom reports whether a new entry may be created in the directory: it is in memory, or in a volume that may be
// written to, where a cluster's kubelet would create the mount point too.
func (v *view) hasRoom(directory string) bool {
	if slices.Contains(v.covered, directory) {
		return true
	}
	for parent := directory; parent != "/"; parent = filepath.Dir(parent) {
		if writable, ok := v.bound[parent]; ok {
			return writable
		}
		if slices.Contains(v.made, parent) {
			return true
		}
	}
	return false
}

// cover puts a directory in memory over path that shows what path had. The root cannot be covered: a new one is made
// instead, and entered.
func (v *view) cover(path string) error {
	if path != "/" {
		if err := mirror(path, path); err != nil {
			return err
		}
		v.covered = append(v.covered, path)
		return nil
	}
	if err := mirror("/", v.staging); err != nil {
		return err
	}
	const old = ".muster-old-root"
	if err := os.Mkdir(filepath.Join(v.staging, old), 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot(v.staging, filepath.Join(v.staging, old)); err != nil {
		return fmt.Errorf("entering a root of its own: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	v.oldRoot = "/" + old
	v.covered = append(v.covered, "/")
	return nil
}

// mirror mounts a directory in memory on onto, with the entries of from bound into it.
func mirror(from, onto string) error {
	source, err := unix.Open(from, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s to make room in it: %w", from, err)
	}
	directory := os.NewFile(uintptr(source), from)
	defer directory.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(source, &stat); err != nil {
		return err
	}
	entries, err := directory.ReadDir(-1)
	if err != nil {
		return err
	}
	mode := "mode=" + strconv.FormatUint(uint64(stat.Mode&0o7777), 8)
	if err := unix.Mount("tmpfs", onto, "tmpfs", unix.MS_NOSUID, mode); err != nil {
		return fmt.Errorf("covering %s to make room in it: %w", from, err)
	}
	base := "/proc/self/fd/" + strconv.Itoa(source)
	for _, entry := range entries {
		if err := mirrorEntry(base, onto, entry); err != nil {
			return fmt.Errorf("showing %s again: %w", filepath.Join(from, entry.Name()), err)
		}
	}
	return nil
}

func mirrorEntry(base, onto string, entry os.DirEntry) error {
	from, to := base+"/"+entry.Name(), filepath.Join(onto, entry.Name())
	switch {
	case entry.Type()&fs.ModeSymlink != 0:
		link, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(link, to)
	case entry.IsDir():
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
	default:
		if err := touch(to); err != nil {
			return err
		}
	}
	err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, "")
	if err != nil && isSkippable(err) {
		return os.Remove(to)
	}
	return err
}

// isSkippable reports whether an entry cannot be shown for reasons of its own: it is gone since it was listed, this
// user has no access, or it is a network or FUSE file system that does not respond.
func isSkippable(err error) bool {
	return slices.ContainsFunc([]error{unix.ENOENT, unix.EACCES, unix.EPERM, unix.ENOTCONN, unix.ESTALE, unix.EIO},
		func(reason error) bool { return errors.Is(err, reason) })
}

// remountReadOnly keeps the flags of a mount from outside a user namespace, which may not be cleared inside it.
func remountReadOnly(target string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(target, &stat); err != nil {
		return err
	}
	var flags uintptr
	for _, pair := range []struct{ have, keep uintptr }{
		{unix.ST_NOSUID, unix.MS_NOSUID}, {unix.ST_NODEV, unix.MS_NODEV}, {unix.ST_NOEXEC, unix.MS_NOEXEC},
		{unix.ST_NOATIME, unix.MS_NOATIME}, {unix.ST_NODIRATIME, unix.MS_NODIRATIME}, {unix.ST_RELATIME, unix.MS_RELATIME},
	} {
		if uintptr(stat.Flags)&pair.have != 0 {
			flags |= pair.keep
		}
	}
	return unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|flags, "")
}

// leaveOldRoot unmounts the machine's root after a new one was made.
func (v *view) leaveOldRoot() error {
	if v.oldRoot == "" {
		return nil
	}
	if err := unix.Unmount(v.oldRoot, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the machine's root: %w", err)
	}
	return os.Remove(v.oldRoot)
}

func touch(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

func kind(directory bool) string {
	if directory {
		return "directory"
	}
	return "file"
}
