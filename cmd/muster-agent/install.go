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

// pythonFolder is where the add-on lies beside the agent.
const pythonFolder = "python"

// install copies the agent, and what it carries, to where containers of other images can use it.
func install(directory string) int {
	err := errors.Join(layPython(filepath.Join(directory, pythonFolder)), copySelf(filepath.Join(directory, "muster-agent")))
	if err != nil {
		logf("installing the agent in %s: %v", directory, err)
		return codeFailed
	}
	return 0
}

// layPython lays the add-on there. An init container may be run again.
func layPython(directory string) error {
	if err := os.RemoveAll(directory); err != nil {
		return err
	}
	return os.CopyFS(directory, python.Files)
}

// copySelf leaves the file whole or not there at all.
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

// withPython has Python find the add-on, where there is one, and then what the container's
// image or user has told it to find. Where torch is to be patched Python runs what does that
// as it starts.
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
