package registry

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Busybox returns a file system with the static busybox program, and a link to it for each of its commands.
func Busybox(program string) ([]File, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("copying into an image: %w", err)
	}
	names, err := exec.Command(program, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("listing the commands of %s: %w", program, err)
	}
	files := []File{
		{Name: "bin/busybox", Mode: 0o755, Content: content},
		{Name: "tmp/", Mode: 0o1777},
		{Name: "etc/passwd", Mode: 0o644, Content: []byte("root:x:0:0:root:/:/bin/sh\n")},
	}
	for _, name := range strings.Fields(string(names)) {
		if name != "busybox" {
			files = append(files, File{Name: "bin/" + name, Link: "busybox"})
		}
	}
	return files, nil
}

// Program returns a program of this machine under the name, with the shared libraries that it and the given files need.
func Program(name, program string, with ...string) ([]File, error) {
	main, err := localFile(program)
	if err != nil {
		return nil, err
	}
	files := []File{main}
	if program != name {
		files = append(files, File{Name: name, Link: program})
	}
	loaded := []string{program}
	for _, name := range with {
		added, err := tree(name)
		if err != nil {
			return nil, err
		}
		for _, f := range added {
			files = append(files, f)
			if strings.HasSuffix(f.Name, ".so") {
				loaded = append(loaded, f.Name)
			}
		}
	}
	libraries, err := librariesOf(loaded)
	if err != nil {
		return nil, err
	}
	return append(files, libraries...), nil
}

// tree returns a file, or all files of a folder without tests, caches, static libraries and add-on packages.
func tree(root string) (files []File, err error) {
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			switch entry.Name() {
			case "__pycache__", "test", "tests", "idlelib", "ensurepip", "site-packages", "dist-packages":
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() && entry.Type()&fs.ModeSymlink == 0 || strings.HasSuffix(name, ".a") {
			return nil
		}
		file, err := localFile(name)
		if err != nil {
			return err
		}
		files = append(files, file)
		return nil
	})
	return files, err
}

// librariesOf returns the shared libraries that the dynamic linker finds for the programs.
func librariesOf(programs []string) (files []File, err error) {
	// ldd fails if one of the programs is static; its output for the others is complete.
	output, _ := exec.Command("ldd", programs...).Output()
	seen := map[string]bool{}
	for line := range strings.Lines(string(output)) {
		_, after, found := strings.Cut(line, "=>")
		if !found {
			after = line
		}
		fields := strings.Fields(after)
		if len(fields) != 2 || !strings.HasPrefix(fields[0], "/") || seen[fields[0]] {
			continue
		}
		seen[fields[0]] = true
		file, err := localFile(fields[0])
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// Python returns the machine's Python with its standard library, as python3 and python.
func Python() ([]File, error) {
	output, err := exec.Command("python3", "-c",
		"import sys, sysconfig; print(sys.executable); print(sysconfig.get_path('stdlib'))").Output()
	if err != nil {
		return nil, fmt.Errorf("asking python3 for its paths: %w", err)
	}
	lines := strings.Fields(string(output))
	program, err := filepath.EvalSymlinks(lines[0])
	if err != nil {
		return nil, fmt.Errorf("resolving the path of python3: %w", err)
	}
	files, err := Program("/usr/bin/python3", program, lines[1])
	return append(files, File{Name: "/usr/bin/python", Link: "python3"}), err
}

// Perl returns the machine's perl with the modules for sockets.
func Perl() ([]File, error) {
	output, err := exec.Command("perl", "-MIO::Socket::INET", "-MIO::Select", "-MPOSIX", "-e",
		`print join "\n", $^X, values %INC, @DynaLoader::dl_shared_objects`).Output()
	if err != nil {
		return nil, fmt.Errorf("asking perl for the files that it loads: %w", err)
	}
	lines := strings.Fields(string(output))
	return Program("/usr/bin/perl", lines[0], lines[1:]...)
}
