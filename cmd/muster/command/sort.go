package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/kubectl/pkg/cmd/get"

	"github.com/musterhq/muster/internal/podspec"
)

// sorter implements --sort-by: it orders values by a field of their JSON. The zero value keeps the order.
type sorter struct {
	field string
	path  *jsonpath.JSONPath
}

// newSorter parses a field in kubectl's syntax: .priority or {.priority}.
func newSorter(field string) (sorter, error) {
	if field == "" {
		return sorter{}, nil
	}
	expression, err := get.RelaxedJSONPathExpression(field)
	if err != nil {
		return sorter{}, usageError("read --sort-by %q: %w: write .FIELD, with a field of -o json", field, err)
	}
	path := jsonpath.New("sort-by").AllowMissingKeys(true)
	if err := path.Parse(expression); err != nil {
		return sorter{}, usageError("read --sort-by %q: %w: write .FIELD, with a field of -o json", field, err)
	}
	return sorter{field: field, path: path}, nil
}

// sortValues sorts values in place and stably; values without the field come first. If no value has the field, it
// returns an error, since the field probably does not exist.
func sortValues[T any](s sorter, values []T) error {
	if s.path == nil || len(values) == 0 {
		return nil
	}
	type keyed struct {
		key   any
		value T
	}
	sorted, found := make([]keyed, 0, len(values)), false
	for _, value := range values {
		key, err := s.key(value)
		if err != nil {
			return fmt.Errorf("sort by %s: %w", s.field, err)
		}
		found = found || key != nil
		sorted = append(sorted, keyed{key, value})
	}
	if !found {
		return usageError("nothing here has the field %s to sort by: see the fields with -o json", s.field)
	}
	slices.SortStableFunc(sorted, func(a, b keyed) int { return compareKeys(a.key, b.key) })
	for i := range sorted {
		values[i] = sorted[i].value
	}
	return nil
}

func (s sorter) key(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var object any
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	results, err := s.path.FindResults(object)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil, err
	}
	found := results[0][0].Interface()
	if text, ok := found.(string); ok {
		if amount, isAmount := podspec.Parse(text); isAmount {
			return amount, nil
		}
	}
	return found, nil
}

// compareKeys orders missing values before numbers before quantities before strings.
func compareKeys(a, b any) int {
	if x, y := keyRank(a), keyRank(b); x != y {
		return x - y
	}
	if x, isNumber := a.(float64); isNumber {
		return cmp.Compare(x, b.(float64))
	}
	if x, isAmount := a.(resource.Quantity); isAmount {
		return podspec.Compare(x, b.(resource.Quantity))
	}
	return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

func keyRank(key any) int {
	switch key.(type) {
	case nil:
		return 0
	case float64:
		return 1
	case resource.Quantity:
		return 2
	}
	return 3
}
