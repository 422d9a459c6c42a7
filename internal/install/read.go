package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/charts"
)

// Placeholders in the policies' files, within CEL strings.
const (
	operatorUserPlaceholder     = "OPERATOR_USER"
	trainingJobGroupPlaceholder = "TRAINING_JOB_GROUP"
)

// readDefinitions returns the definitions, with TrainingJobs in the given API group.
func readDefinitions(trainingJobGroup string) ([]*unstructured.Unstructured, error) {
	objects, err := read("muster/apis", func(text []byte) []byte { return text })
	for _, object := range objects {
		spec, _ := object.Object["spec"].(map[string]any)
		if spec["group"] == breezeml.DefaultGroup {
			spec["group"] = trainingJobGroup
			object.SetName("trainingjobs." + trainingJobGroup)
		}
	}
	return objects, err
}

// readPolicies returns policies and bindings in the order of their files, which puts policies before their bindings.
func readPolicies(operatorUser, trainingJobGroup string) ([]*unstructured.Unstructured, error) {
	if strings.ContainsAny(operatorUser, "'\"\\\n\r") {
		return nil, fmt.Errorf("operator user %q contains a quote, a backslash or a line break: give the name of a user", operatorUser)
	}
	return read("muster/policies", func(text []byte) []byte {
		text = bytes.ReplaceAll(text, []byte("apiGroups: ["+breezeml.DefaultGroup+"]"),
			[]byte("apiGroups: ["+trainingJobGroup+"]"))
		text = bytes.ReplaceAll(text, []byte(trainingJobGroupPlaceholder), []byte(trainingJobGroup))
		return bytes.ReplaceAll(text, []byte(operatorUserPlaceholder), []byte(operatorUser))
	})
}

// read returns the objects of all YAML documents in a folder, after the substitution.
func read(folder string, substitute func([]byte) []byte) ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(charts.Files, folder+"/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", folder, err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		text, err := fs.ReadFile(charts.Files, file)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(substitute(text)), 4096)
		for {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("decoding %s: %w", file, err)
			}
			if len(object.Object) > 0 {
				objects = append(objects, object)
			}
		}
	}
	return objects, nil
}
