package config

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/musterhq/muster/api/config/v1alpha1"
)

// Load reads a configuration file and returns a complete configuration, as Default does. The error for an invalid
// file lists all problems, one per line.
func Load(path string) (*v1alpha1.Configuration, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	c, problems := parse(text)
	if len(problems) > 0 {
		return nil, fmt.Errorf("the configuration in %s is invalid; fix this and start again:\n  %s", path,
			strings.Join(problems, "\n  "))
	}
	return c, nil
}

// parse returns the configuration in a text, and the problems of the text.
func parse(text []byte) (*v1alpha1.Configuration, []string) {
	problems := checkSingleDocument(text)
	tree, err := read(text)
	if err != nil {
		return nil, append(problems, "it cannot be read: "+oneLine(err))
	}
	if _, err := yaml.YAMLToJSONStrict(text); err != nil {
		problems = append(problems, duplicates(err)...)
	}
	options, ok := tree.(map[string]any)
	if !ok && tree != nil {
		return nil, append(problems,
			fmt.Sprintf("it is not a mapping of options: begin it with the lines `apiVersion: %s` and `kind: %s`",
				v1alpha1.ConfigurationAPIVersion, v1alpha1.ConfigurationKind))
	}
	c := &v1alpha1.Configuration{}
	mistakes := identify(options, c)
	given, unclear := translate(options)
	mistakes = append(mistakes, unclear...)
	mistakes = append(mistakes, decode(nil, options, reflect.ValueOf(c).Elem())...)
	complete(c)
	mistakes = append(mistakes, withoutKnown(validate(c), mistakes)...)
	for _, mistake := range mistakes {
		if name, ok := given[mistake.Field]; ok {
			mistake.Field = name
		}
		problems = append(problems, mistake.Error())
	}
	return c, problems
}

// read parses YAML into a tree of plain values, in which numbers keep their spelling.
func read(text []byte) (any, error) {
	plain, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(plain))
	decoder.UseNumber()
	var tree any
	err = decoder.Decode(&tree)
	return tree, err
}

// identify checks apiVersion and kind, and removes them from the options.
func identify(options map[string]any, c *v1alpha1.Configuration) field.ErrorList {
	var mistakes field.ErrorList
	take := func(name, want string) string {
		at, value := field.NewPath(name), options[name]
		delete(options, name)
		switch {
		case value == nil:
			mistakes = append(mistakes, field.Required(at, fmt.Sprintf("write %s: %s", name, want)))
		case value != want:
			mistakes = append(mistakes, field.NotSupported(at, value, []string{want}))
		}
		return want
	}
	c.APIVersion = take("apiVersion", v1alpha1.ConfigurationAPIVersion)
	c.Kind = take("kind", v1alpha1.ConfigurationKind)
	return mistakes
}

// checkSingleDocument reports more than one YAML document: the parser would silently ignore all but the first.
func checkSingleDocument(text []byte) []string {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	count := 0
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var content any
		if err != nil || yaml.Unmarshal(document, &content) != nil {
			return nil // parse reports what is wrong with it
		}
		if content != nil {
			count++
		}
	}
	if count > 1 {
		return []string{fmt.Sprintf("it holds %d documents: keep one, without `---` between its options", count)}
	}
	return nil
}

// duplicates returns a problem for each duplicate key, from the error of a strict parser.
func duplicates(err error) []string {
	var problems []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "line ") {
			problems = append(problems, line+": keep one of the two")
		}
	}
	if problems == nil {
		problems = []string{oneLine(err)}
	}
	return problems
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// withoutKnown returns the mistakes at fields without a known mistake: a value that could not be decoded is not valid
// either.
func withoutKnown(mistakes, known field.ErrorList) field.ErrorList {
	at := map[string]bool{}
	for _, k := range known {
		at[k.Field] = true
	}
	var rest field.ErrorList
	for _, m := range mistakes {
		if !at[m.Field] {
			rest = append(rest, m)
		}
	}
	return rest
}
