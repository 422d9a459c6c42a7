package compile

import (
	"iter"
	"maps"
	"slices"
)

// inOrder visits the entries of a map in the order of their names.
func inOrder[V any](entries map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			if !yield(name, entries[name]) {
				return
			}
		}
	}
}
