package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/cmd/muster/convert"
)

// mostBytes bounds the size of a file of manifests.
const mostBytes = 64 << 20

// kinds make an empty object of each kind that matters, by apiVersion and kind.
var kinds = map[string]func() client.Object{
	kueue.GroupVersion.String() + " ClusterQueue":          func() client.Object { return &kueue.ClusterQueue{} },
	kueue.GroupVersion.String() + " LocalQueue":            func() client.Object { return &kueue.LocalQueue{} },
	kueue.GroupVersion.String() + " Cohort":                func() client.Object { return &kueue.Cohort{} },
	kueue.GroupVersion.String() + " ResourceFlavor":        func() client.Object { return &kueue.ResourceFlavor{} },
	kueue.GroupVersion.String() + " Topology":              func() client.Object { return &kueue.Topology{} },
	kueue.GroupVersion.String() + " WorkloadPriorityClass": func() client.Object { return &kueue.WorkloadPriorityClass{} },
	"v1 Node":      func() client.Object { return &corev1.Node{} },
	"v1 Namespace": func() client.Object { return &corev1.Namespace{} },
}

// ReadSetup reads the queues and nodes from manifests, YAML or JSON, of any version of Kueue's API, also from lists as
// kubectl prints them. It calls note with a sentence for each object that does not matter. An error names the line at
// which the document begins.
func ReadSetup(manifests io.Reader, note func(string)) (*Setup, error) {
	text, err := io.ReadAll(io.LimitReader(manifests, mostBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostBytes {
		return nil, fmt.Errorf("it has more than %d MiB", mostBytes>>20)
	}
	s, line := &Setup{}, 1
	for _, document := range documents(text) {
		if err := s.read(document, note); err != nil {
			return nil, fmt.Errorf("in the document that begins at line %d: %w", line+blankLines(document), err)
		}
		line += bytes.Count(document, []byte("\n"))
	}
	s.complete()
	return s, s.check()
}

// documents cuts a stream of YAML before each separator.
func documents(text []byte) (out [][]byte) {
	begin, at := 0, 0
	for line := range bytes.Lines(text) {
		if separates := bytes.Equal(bytes.TrimRight(line, " \t\r\n"), []byte("---")); separates && at > begin {
			out, begin = append(out, text[begin:at]), at
		}
		at += len(line)
	}
	return append(out, text[begin:])
}

// blankLines returns how many lines of the document come before its first line of text.
func blankLines(document []byte) (n int) {
	for line := range bytes.Lines(document) {
		if trimmed := strings.TrimSpace(string(line)); trimmed != "" && trimmed != "---" && trimmed[0] != '#' {
			return n
		}
		n++
	}
	return 0
}

// read adds the objects of a document.
func (s *Setup) read(document []byte, note func(string)) error {
	var converted bytes.Buffer
	if err := convert.Stream(bytes.NewReader(document), &converted, func(string) {}); err != nil {
		return err
	}
	object, err := yaml.YAMLToJSONStrict(converted.Bytes())
	if err != nil {
		return err
	}
	if string(object) == "null" {
		return nil
	}
	return s.readObject(object, note)
}

// readObject adds an object in JSON, or the items of a list.
func (s *Setup) readObject(object []byte, note func(string)) error {
	var head struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Items            []json.RawMessage
	}
	if err := json.Unmarshal(object, &head); err != nil {
		return fmt.Errorf("it is no object of Kubernetes: %w", err)
	}
	if strings.HasSuffix(head.Kind, "List") {
		for _, item := range head.Items {
			if err := s.readObject(item, note); err != nil {
				return err
			}
		}
		return nil
	}
	empty := kinds[head.APIVersion+" "+head.Kind]
	switch {
	case head.Kind == "" || head.APIVersion == "":
		return fmt.Errorf("it has no apiVersion and kind")
	case empty == nil:
		note(fmt.Sprintf("%s %s is not simulated", head.Kind, head.Metadata.Name))
		return nil
	case head.Metadata.Name == "":
		return fmt.Errorf("the %s has no name", head.Kind)
	}
	out, decode := empty(), yaml.UnmarshalStrict
	if strings.HasPrefix(head.APIVersion, "v1") { // nodes may be of a newer Kubernetes
		decode = func(text []byte, into any, _ ...yaml.JSONOpt) error { return json.Unmarshal(text, into) }
	}
	if err := decode(object, out); err != nil {
		return fmt.Errorf("%s %s: %w", head.Kind, head.Metadata.Name, err)
	}
	s.add(out)
	return nil
}
