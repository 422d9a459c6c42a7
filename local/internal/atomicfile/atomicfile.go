// Package atomicfile writes small files atomically: readers, also after a crash, see the old content or the new one,
// never a part.
//
// Any package of this module may use it.
package atomicfile

import (
	"os"
	"path/filepath"
)

// Write puts content at path, readable by this user only.
func Write(path string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // fails, as it should, once renamed
	if _, err := temporary.Write(content); err != nil {
		temporary.Close()
		return err
	}
	if err := temporary.Close(); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
