package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterhq/muster/python"
)

// pythonFolder is the folder, beside the agent, with the Python add-on.
const pythonFolder = "python"

// install copies the agent and its Python add-on to a directory that is shared with containers of other images.
func install(directory string) int {
	err := errors.Join(copyPython(filepath.Join(directory, pythonFolder)),
		copySelf(filepath.Join(directory, "muster-agent")))
	if err != nil {
		logf("installing the agent in %s: %v", directory, err)
		return codeFailed
	}
	return 0
}

// copyPython copies the add-on. It replaces an existing copy, since an init container may run again.
func copyPython(directory string) error {
	if err := os.RemoveAll(directory); err != nil {
		return err
	}
	return os.CopyFS(directory, python.Files)
}

// copySelf copies this executable atomically.
func copySelf(to string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	file, err := os.OpenFile(to+".part", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, from); err != nil {
		file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(to+".part", to)
}

// withPython puts the add-on, if it is installed, in front of PYTHONPATH, so that what the image or the user put there
// is still found. If torch is to be patched, it also adds the folder whose sitecustomize module Python runs at its
// start.
func withPython(environment []string) []string {
	self, err := os.Executable()
	if err != nil {
		return environment
	}
	directory := filepath.Join(filepath.Dir(self), pythonFolder)
	if _, err := os.Stat(directory); err != nil {
		return environment
	}
	if slices.Contains(strings.Split(os.Getenv("LATTICE_AUTOPATCH"), ","), "torch") {
		directory += ":" + filepath.Join(directory, "auto")
	}
	const variable = "PYTHONPATH="
	for i, v := range environment {
		if others, is := strings.CutPrefix(v, variable); is && others != "" {
			environment[i] = variable + directory + ":" + others
			return environment
		}
	}
	return append(environment, variable+directory)
}
