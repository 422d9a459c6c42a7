package validation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// edits change an object: field by field, a path of keys and indices, joined by ">", to a value. A nil value removes
// the field. An index one past the end of a list, and a key that is not there, are added.
type edits map[string]any

// with gives edits with more of them.
func (e edits) with(more edits) edits {
	all := maps.Clone(e)
	maps.Copy(all, more)
	return all
}

// apply changes an object, shorter paths first, so that an edit can reach into what another has set.
func (e edits) apply(object map[string]any) map[string]any {
	var changed any = object
	for _, path := range sortedByLength(e) {
		changed = put(changed, strings.Split(path, ">"), plain(e[path]))
	}
	return changed.(map[string]any)
}

// touchesStatus says whether the edits go to the status subresource. Edits go to one of the two, never to both.
func (e edits) touchesStatus() bool {
	for path := range e {
		if strings.HasPrefix(path, "status") {
			return true
		}
	}
	return false
}

func put(node any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if index, err := strconv.Atoi(path[0]); err == nil {
		list, _ := node.([]any)
		if index == len(list) {
			list = append(list, nil)
		}
		list[index] = put(list[index], path[1:], value)
		return list
	}
	object, _ := node.(map[string]any)
	if object == nil {
		object = map[string]any{}
	}
	if len(path) == 1 && value == nil {
		delete(object, path[0])
		return object
	}
	object[path[0]] = put(object[path[0]], path[1:], value)
	return object
}

// plain gives a value as JSON has it; a string that begins with "yaml:" is read as YAML.
func plain(value any) any {
	text, isText := value.(string)
	if rest, ok := strings.CutPrefix(text, "yaml:"); ok {
		return fromYAML(rest)
	}
	if isText || value == nil {
		return value
	}
	encoded, err := yaml.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("an edit that is no JSON: %v", err))
	}
	return fromYAML(string(encoded))
}

func fromYAML(text string) any {
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		panic(fmt.Sprintf("an edit that is no YAML: %v\n%s", err, text))
	}
	return value
}

func sortedByLength(e edits) []string {
	paths := make([]string, 0, len(e))
	for path := range e {
		paths = append(paths, path)
	}
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, ">"), strings.Count(b, ">")), cmp.Compare(a, b))
	})
	return paths
}

// times repeats a YAML template, with %d for the index, as the items of a list.
func times(n int, template string) []any {
	items := make([]any, n)
	for i := range items {
		items[i] = fromYAML(strings.ReplaceAll(template, "%d", strconv.Itoa(i)))
	}
	return items
}
