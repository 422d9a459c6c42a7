package show

import (
	"fmt"
	"strings"
)

// podSets are pod sets of which the same is said: a job may have dozens of them, as a LatticeJob with many tasks does.
type podSets struct {
	names []string
	// first is the index of the first of them.
	first int
}

// alike groups count pod sets by what is said of each, in their order. Pod sets of which nothing is said are left out.
func alike(count int, of func(i int) (name, remark string)) []podSets {
	var groups []podSets
	index := map[string]int{}
	for i := range count {
		name, remark := of(i)
		if remark == "" {
			continue
		}
		at, found := index[remark]
		if !found {
			at, index[remark] = len(groups), len(groups)
			groups = append(groups, podSets{first: i})
		}
		groups[at].names = append(groups[at].names, name)
	}
	return groups
}

// each names the pod sets, before an amount that holds for each of them.
func (p podSets) each() string {
	if len(p.names) > 1 {
		return "each of " + abridged(p.names)
	}
	return p.names[0]
}

// widest is the length of the longest list of names.
func widest(groups []podSets) int {
	width := 0
	for _, group := range groups {
		width = max(width, len(abridged(group.names)))
	}
	return width
}

// namesIn counts the pod sets of groups.
func namesIn(groups []podSets) int {
	count := 0
	for _, group := range groups {
		count += len(group.names)
	}
	return count
}

// abridged joins names, truncated so that they fit on a line.
func abridged(names []string) string {
	const shown = 3
	if len(names) > shown+1 {
		names = append(names[:shown:shown], fmt.Sprintf("%d more", len(names)-shown))
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return strings.Join(names, "")
}
