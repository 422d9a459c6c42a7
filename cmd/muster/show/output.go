package show

import (
	"io"

	"github.com/musterhq/muster/internal/plain"
)

// Output is the one way to the standard output and the error output: the command line gives it to all its commands in
// place of the files. What is written to it is for people, and holds names, messages and errors of others, so control
// characters are escaped: what somebody wrote into a job must never reach the terminal of who lists it.
type Output struct {
	*plain.Writer
	file io.Writer
}

// NewOutput returns the Output that writes to the file, or to a buffer in tests.
func NewOutput(file io.Writer) *Output { return &Output{Writer: plain.NewWriter(file), file: file} }

// Programs returns the writer for formats that programs read, such as JSON and YAML, which have to stay as they are.
func Programs(out io.Writer) io.Writer { return fileOf(out) }

// fileOf returns what an Output writes to, and any other writer as it is.
func fileOf(out io.Writer) io.Writer {
	if output, ok := out.(*Output); ok {
		return output.file
	}
	return out
}
