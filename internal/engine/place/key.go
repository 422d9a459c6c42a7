package place

import (
	"slices"
	"strconv"
)

// keyText is a key made of several texts. Each is preceded by its length, so that different lists never
// give the same key.
type keyText []byte

func (k *keyText) text(s string) {
	*k = strconv.AppendInt(*k, int64(len(s)), 10)
	*k = append(*k, ':')
	*k = append(*k, s...)
}

func (k *keyText) number(n int64) {
	*k = strconv.AppendInt(*k, n, 10)
	*k = append(*k, ';')
}

// few is the number of names that are sorted without an allocation.
const few = 8

func (k *keyText) labels(labels map[string]string) {
	k.number(int64(len(labels)))
	var names [few]string
	for _, name := range namesOf(labels, names[:0]) {
		k.text(name)
		k.text(labels[name])
	}
}

func (k *keyText) amounts(amounts map[string]int64) {
	k.number(int64(len(amounts)))
	var names [few]string
	for _, name := range namesOf(amounts, names[:0]) {
		k.text(name)
		k.number(amounts[name])
	}
}

// namesOf appends the keys of a map, sorted, to into.
func namesOf[V any](of map[string]V, into []string) []string {
	for name := range of {
		into = append(into, name)
	}
	slices.Sort(into)
	return into
}
