package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/musterhq/muster/api/config/v1alpha1"
)

// page is the page about the configuration file.
const page = "../../docs/reference/configuration.md"

func TestTheFullExampleInTheDocsIsTheDefault(t *testing.T) {
	got, problems := parse([]byte(examples(t)[0]))
	if problems != nil {
		t.Fatalf("the example is rejected: %q", problems)
	}
	if diff := cmp.Diff(Default(), got); diff != "" {
		t.Errorf("configuration (-default +page):\n%s", diff)
	}
}

func TestTheFullExampleInTheDocsHasEveryOption(t *testing.T) {
	whole := regexp.MustCompile(`(?m)^( *)# `).ReplaceAllString(examples(t)[0], "$1")
	whole = strings.ReplaceAll(whole, "workloads: {}", "workloads:")
	whole = strings.ReplaceAll(whole, "capacity: nodes", "capacity: quantities")
	got, problems := parse([]byte(whole))
	if problems != nil {
		t.Fatalf("the example is rejected: %q\n%s", problems, whole)
	}
	for _, missing := range unset(nil, reflect.ValueOf(*got)) {
		t.Errorf("%s does not show %s", page, missing)
	}
}

func TestExamplesInTheDocsAreValid(t *testing.T) {
	all := examples(t)
	if len(all) < 9 {
		t.Errorf("found only %d examples", len(all))
	}
	for _, example := range all[1:] {
		accepts(t, header+example)
	}
}

func TestTheDocsShowTheOperatorsMessages(t *testing.T) {
	refuses(t, header+"waitForPodsReady: {timeout: 30}\nqueueStatus: {intervall: 5s}",
		printed(t, "waitForPodsReady.timeout: "), printed(t, "queueStatus.intervall: "))
}

func TestAPrintedConfigurationCanBeRead(t *testing.T) {
	for _, example := range examples(t) {
		want, problems := parse([]byte(header + strings.TrimPrefix(example, header)))
		if problems != nil {
			t.Fatalf("rejected: %q", problems)
		}
		text, err := yaml.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, problems := parse(text)
		if problems != nil {
			t.Fatalf("rejected: %q\n%s", problems, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("configuration (-want +got):\n%s", diff)
		}
	}
}

// examples returns the YAML blocks of the page.
func examples(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, match := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(text(t), -1) {
		all = append(all, match[1])
	}
	if len(all) == 0 {
		t.Fatalf("%s has no examples", page)
	}
	return all
}

// printed returns the line of the page that begins like this.
func printed(t *testing.T, beginning string) string {
	t.Helper()
	for line := range strings.Lines(text(t)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, beginning) {
			return line
		}
	}
	t.Fatalf("%s has no line that begins with %s", page, beginning)
	return ""
}

func text(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// unset returns the absent options below a value.
func unset(at *field.Path, value reflect.Value) []string {
	switch value.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if value.IsNil() {
			return []string{at.String()}
		}
	case reflect.String:
		if value.Len() == 0 {
			return []string{at.String()}
		}
	}
	var missing []string
	switch {
	case value.Kind() == reflect.Pointer:
		missing = unset(at, value.Elem())
	case value.Kind() == reflect.Slice:
		for i := range value.Len() {
			missing = append(missing, unset(at.Index(i), value.Index(i))...)
		}
	case value.Kind() == reflect.Struct && value.Type().PkgPath() == reflect.TypeFor[v1alpha1.Configuration]().PkgPath():
		for i := range value.NumField() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			missing = append(missing, unset(at.Child(name), value.Field(i))...)
		}
	}
	return missing
}
