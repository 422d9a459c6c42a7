package view

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestDocsHaveEveryJSONField: users write programs against docs/reference/cli.md.
func TestDocsHaveEveryJSONField(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## JSON\n")
	if !found {
		t.Fatal("docs/reference/cli.md has no section JSON")
	}
	named := map[string]bool{}
	for _, quoted := range regexp.MustCompile("`[^`]+`").FindAllString(section, -1) {
		for _, word := range regexp.MustCompile(`[A-Za-z]+`).FindAllString(quoted, -1) {
			named[word] = true
		}
	}
	fields := map[string]bool{}
	for _, of := range []any{JobList{}, QueueList{}, Explanation{}} {
		gatherFields(reflect.TypeOf(of), fields)
	}
	for field := range fields {
		if !named[field] {
			t.Errorf("docs/reference/cli.md does not describe the field %s", field)
		}
	}
	if len(fields) < 60 {
		t.Errorf("found only the fields %v", fields)
	}
}

// gatherFields collects the names of all fields of a type of this package and of the types of its fields.
func gatherFields(t reflect.Type, into map[string]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		gatherFields(t.Elem(), into)
	case reflect.Struct:
		if !strings.HasPrefix(t.PkgPath(), "github.com/musterhq/muster/") {
			return
		}
		for i := range t.NumField() {
			field := t.Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			if name != "" && options != "inline" {
				into[name] = true
			}
			gatherFields(field.Type, into)
		}
	}
}
