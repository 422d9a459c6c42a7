package convert

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Stream copies the YAML or JSON documents of in to out, with Kueue's objects as kueue.x-k8s.io/v1beta1, and calls note
// with a sentence for each object that it cannot convert. Documents without an object to convert are copied as they
// are; in the others comments and the order of fields stay.
func Stream(in io.Reader, out io.Writer, note func(string)) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for number, first := 1, true; ; number++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		converted, err := document(text, note)
		if err != nil {
			return fmt.Errorf("document %d: %w", number, err)
		}
		if len(bytes.TrimSpace(converted)) == 0 {
			continue
		}
		if !first {
			converted = append([]byte("---\n"), converted...)
		}
		if _, err := out.Write(append(bytes.TrimRight(converted, "\n"), '\n')); err != nil {
			return err
		}
		first = false
	}
}

// document returns the text with its objects converted, unchanged if there is none to convert.
func document(text []byte, note func(string)) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	if root.Kind != yaml.DocumentNode || !object(fields{root.Content[0]}, note) {
		return text, nil
	}
	var converted bytes.Buffer
	encoder := yaml.NewEncoder(&converted)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		return nil, err
	}
	return converted.Bytes(), encoder.Close()
}
