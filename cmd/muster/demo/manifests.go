package demo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// prerequisitesFolder is applied first. Objects in it are not jobs of the demo.
const prerequisitesFolder = "prerequisites"

// manifest is one file of the examples.
type manifest struct {
	path         string // folder/file.yaml
	prerequisite bool
	objects      []*unstructured.Unstructured
}

// readManifests reads <folder>/<file>.yaml of the examples and returns them in the order of their application:
// prerequisites, then the other folders by name, and files by name within each.
func readManifests(examples fs.FS) ([]manifest, error) {
	files, err := fs.Glob(examples, "*/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the examples: %w", err)
	}
	slices.SortFunc(files, func(a, b string) int {
		if x, y := isPrerequisite(a), isPrerequisite(b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	manifests := make([]manifest, 0, len(files))
	for _, file := range files {
		objects, err := readObjects(examples, file)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		manifests = append(manifests, manifest{path: file, prerequisite: isPrerequisite(file), objects: objects})
	}
	if !slices.ContainsFunc(manifests, func(m manifest) bool { return !m.prerequisite }) {
		return nil, errors.New("the examples hold no job: expected <folder>/<name>.yaml beside prerequisites/")
	}
	return manifests, nil
}

func isPrerequisite(file string) bool { return path.Dir(file) == prerequisitesFolder }

func readObjects(examples fs.FS, file string) ([]*unstructured.Unstructured, error) {
	content, err := fs.ReadFile(examples, file)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) == 0:
			continue // a document with comments only
		case object.GetKind() == "" || object.GetName() == "":
			return nil, errors.New("a document has no kind or no metadata.name")
		}
		objects = append(objects, object)
	}
}
