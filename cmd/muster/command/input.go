package command

import (
	"io"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// openInput opens the file, or the standard input for -.
func openInput(streams genericiooptions.IOStreams, path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(streams.In), nil
	}
	return os.Open(path)
}
