package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// decode stores a tree of plain values, as YAML gives it, into typed ones. Unlike a JSON decoder it goes on after a
// mistake, and names the field of each. null means absent.
func decode(at *field.Path, value any, into reflect.Value) field.ErrorList {
	if value == nil {
		return nil
	}
	if into.Kind() == reflect.Pointer {
		return decodePointer(at, value, into)
	}
	if _, decodesItself := into.Addr().Interface().(json.Unmarshaler); decodesItself {
		return decodeScalar(at, value, into)
	}
	switch into.Kind() {
	case reflect.Struct:
		return decodeOptions(at, value, into)
	case reflect.Map:
		return decodeMap(at, value, into)
	case reflect.Slice:
		return decodeList(at, value, into)
	}
	return decodeScalar(at, value, into)
}

// decodePointer leaves a value nil that cannot be decoded, so that it gets its default and validation does not report
// it again. A struct of which only some options are wrong keeps the others.
func decodePointer(at *field.Path, value any, into reflect.Value) field.ErrorList {
	target := reflect.New(into.Type().Elem())
	mistakes := decode(at, value, target.Elem())
	_, isMapping := value.(map[string]any)
	if len(mistakes) == 0 || isMapping && target.Elem().Kind() == reflect.Struct {
		into.Set(target)
	}
	return mistakes
}

// decodeOptions decodes a mapping whose keys are option names.
func decodeOptions(at *field.Path, value any, into reflect.Value) field.ErrorList {
	options, ok := value.(map[string]any)
	if !ok {
		return field.ErrorList{field.TypeInvalid(at, value, "must be a mapping of options")}
	}
	var mistakes field.ErrorList
	var known []string
	for _, f := range reflect.VisibleFields(into.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || len(f.Index) > 1 { // apiVersion and kind, which identify reads
			continue
		}
		known = append(known, name)
		mistakes = append(mistakes, decode(at.Child(name), options[name], into.FieldByIndex(f.Index))...)
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if !slices.Contains(known, name) {
			mistakes = append(mistakes,
				field.Forbidden(at.Child(name), "there is no such option; the options here are "+strings.Join(known, ", ")))
		}
	}
	return mistakes
}

// decodeMap decodes a mapping whose keys are the user's.
func decodeMap(at *field.Path, value any, into reflect.Value) field.ErrorList {
	entries, ok := value.(map[string]any)
	if !ok {
		return field.ErrorList{field.TypeInvalid(at, value, "must be a mapping")}
	}
	var mistakes field.ErrorList
	into.Set(reflect.MakeMap(into.Type()))
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		entry := reflect.New(into.Type().Elem()).Elem()
		if entries[name] == nil {
			mistakes = append(mistakes, field.Required(at.Key(name), "give it a value, or leave the name out"))
		}
		mistakes = append(mistakes, decode(at.Key(name), entries[name], entry)...)
		into.SetMapIndex(reflect.ValueOf(name).Convert(into.Type().Key()), entry)
	}
	return mistakes
}

func decodeList(at *field.Path, value any, into reflect.Value) field.ErrorList {
	items, ok := value.([]any)
	if !ok {
		return field.ErrorList{field.TypeInvalid(at, value, "must be a list")}
	}
	var mistakes field.ErrorList
	into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
	for i, item := range items {
		mistakes = append(mistakes, decode(at.Index(i), item, into.Index(i))...)
	}
	return mistakes
}

// decodeScalar decodes a scalar, which the standard JSON decoder can report well enough.
func decodeScalar(at *field.Path, value any, into reflect.Value) field.ErrorList {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, into.Addr().Interface())
	}
	if err == nil {
		return nil
	}
	if number, ok := value.(json.Number); ok {
		value = json.RawMessage(number) // keeps the user's spelling in the message
	}
	return field.ErrorList{field.TypeInvalid(at, value, "must be "+kind(into))}
}

// kind describes, for a message, the values that a scalar accepts.
func kind(into reflect.Value) string {
	switch into.Interface().(type) {
	case metav1.Duration:
		return "a duration with its unit, such as 30m, 1h30m or 5s"
	case resource.Quantity:
		return "a quantity, such as 2, 500m or 1Gi"
	}
	switch into.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Int32:
		return "a whole number that is not above 2147483647"
	case reflect.Float64:
		return "a number"
	}
	return fmt.Sprintf("a value of type %s", into.Type())
}
