package slim

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

const (
	// mostAlike bounds the values kept of a kind: far more than there are pod sizes in a cluster.
	mostAlike = 4096
	// longKey is the size in bytes above which a key's value is not kept: users decide how large these are.
	longKey = 4096
	// longText is the size in bytes above which a string is unlikely to occur in another object.
	longText = 100
)

// alike interns values that objects in the cache have in common, by a key that identifies the value: the pods of a
// job request the same resources, and most jobs use one of a few sizes. Interned values must not be modified. When
// there are too many, alike starts over; values handed out before live on with their objects. The zero value is ready
// for use.
type alike[T any] struct {
	mu sync.Mutex
	of map[string]T
	// most bounds the number of values, 0 for mostAlike.
	most int
}

// one returns the interned value for the key, which is this value if there was none.
func (a *alike[T]) one(key []byte, value T) T { return a.made(key, func() T { return value }) }

// made returns the interned value for the key, and calls value to make it if there is none.
func (a *alike[T]) made(key []byte, value func() T) T {
	if len(key) > longKey {
		return value()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.of[string(key)]; ok {
		return known
	}
	if a.of == nil || len(a.of) >= cmp.Or(a.most, mostAlike) {
		a.of = map[string]T{}
	}
	made := value()
	a.of[string(key)] = made
	return made
}

var (
	alikeLists      alike[corev1.ResourceList]
	alikeFlavors    alike[map[corev1.ResourceName]kueue.ResourceFlavorReference]
	alikeContainers alike[[]corev1.Container]
	alikeFinalizers alike[[]string]
	alikePriorities alike[*int32]
	alikeTexts      texts
)

// texts interns strings, which are their own keys.
type texts struct {
	mu    sync.Mutex
	known map[string]string
}

func (t *texts) one(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.known[text]; ok {
		return known
	}
	if t.known == nil || len(t.known) >= mostAlike {
		t.known = map[string]string{}
	}
	t.known[text] = text
	return text
}

// shareText returns the string, interned if it is short.
func shareText[T ~string](text T) T {
	if text == "" || len(text) > longText {
		return text
	}
	return T(alikeTexts.one(string(text)))
}

// shareList returns the interned resource list.
func shareList(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return list
	}
	return alikeLists.one(appendList(make([]byte, 0, 128), list), list)
}

// shareFlavors returns the interned map of flavors by resource.
func shareFlavors(flavors map[corev1.ResourceName]kueue.ResourceFlavorReference) map[corev1.ResourceName]kueue.ResourceFlavorReference {
	if len(flavors) == 0 {
		return flavors
	}
	key := make([]byte, 0, 128)
	for _, name := range slices.Sorted(maps.Keys(flavors)) {
		key = appendText(appendText(key, string(name)), string(flavors[name]))
	}
	return alikeFlavors.one(key, flavors)
}

// shareContainers returns the interned containers. They must have only the fields that strippedContainers keeps.
func shareContainers(containers []corev1.Container) []corev1.Container {
	if len(containers) == 0 {
		return containers
	}
	key := make([]byte, 0, 256)
	for i := range containers {
		c := &containers[i]
		key = appendText(key, c.Name)
		if c.RestartPolicy != nil {
			key = appendText(key, string(*c.RestartPolicy))
		}
		key = appendList(append(key, '/'), c.Resources.Requests)
		for _, port := range c.Ports {
			key = appendText(append(key, '/'), port.Name)
			key = appendText(appendText(key, string(port.Protocol)), port.HostIP)
			key = strconv.AppendInt(append(strconv.AppendInt(key, int64(port.HostPort), 10), ':'), int64(port.ContainerPort), 10)
		}
		key = append(key, '\n')
	}
	return alikeContainers.one(key, containers)
}

// shareFinalizers returns the interned finalizers.
func shareFinalizers(finalizers []string) []string {
	if len(finalizers) == 0 {
		return nil
	}
	key := make([]byte, 0, 128)
	for _, name := range finalizers {
		key = appendText(key, name)
	}
	return alikeFinalizers.one(key, finalizers)
}

// sharePriority returns the interned priority.
func sharePriority(priority *int32) *int32 {
	if priority == nil {
		return nil
	}
	return alikePriorities.one(strconv.AppendInt(nil, int64(*priority), 10), priority)
}

func appendList(key []byte, list corev1.ResourceList) []byte {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		key = appendText(appendText(key, string(name)), quantity.String())
	}
	return key
}

// appendText appends a string after its length. Users choose the strings, so no byte can serve as a separator.
func appendText(key []byte, text string) []byte {
	return append(append(strconv.AppendInt(key, int64(len(text)), 10), ':'), text...)
}
