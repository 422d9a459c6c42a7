package show

import (
	"bytes"
	"io"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

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

// Programs returns the writer for formats that programs read and that have to stay as they are.
func Programs(out io.Writer) io.Writer { return fileOf(out) }

// Texts returns the writer for formats that programs read and that leave control characters as they are, such as a
// template or a file of the user. A program gets the text unchanged, a terminal gets it with control characters
// escaped.
func Texts(out io.Writer) io.Writer {
	if _, terminal := Terminal(out); terminal {
		return out
	}
	return fileOf(out)
}

// JSON returns the writer for JSON. A program reads from it what was written. Control characters that encoders leave as
// they are, such as U+009B, are escaped too, as \u009b: a terminal would obey them.
func JSON(out io.Writer) io.Writer { return plain.NewQuotedWriter(fileOf(out)) }

// YAML returns JSON as a YAML document. Texts with control characters are in double quotes, with each of these escaped:
// the parser of YAML refuses some of them, and the encoder writes others as they are.
func YAML(json []byte) ([]byte, error) {
	var escaped bytes.Buffer
	if _, err := plain.NewQuotedWriter(&escaped).Write(json); err != nil {
		return nil, err
	}
	text, err := yaml.JSONToYAML(escaped.Bytes())
	if err != nil || !plain.HasControls(string(text)) {
		return text, err
	}
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	quoteControls(&root)
	escaped.Reset()
	encoder := yamlv3.NewEncoder(plain.NewQuotedWriter(&escaped))
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		return nil, err
	}
	return escaped.Bytes(), encoder.Close()
}

// quoteControls puts double quotes around texts with control characters.
func quoteControls(node *yamlv3.Node) {
	if plain.HasControls(node.Value) {
		node.Style = yamlv3.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		quoteControls(child)
	}
}

// fileOf returns what an Output writes to, and any other writer as it is.
func fileOf(out io.Writer) io.Writer {
	if output, ok := out.(*Output); ok {
		return output.file
	}
	return out
}
