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
	// maxInterned bounds the values kept of a kind: far more than there are pod sizes in a cluster.
	maxInterned = 4096
	// maxKeyBytes is the size in bytes above which a key's value is not kept: users decide how large these are.
	maxKeyBytes = 4096
	// maxTextBytes is the size in bytes above which a string is unlikely to occur in another object.
	maxTextBytes = 100
)

// interner interns values that objects in the cache have in common, by a key that identifies the value: the pods of a
// job request the same resources, and most jobs use one of a few sizes. Interned values must not be modified. When
// there are too many, interner starts over; values handed out before live on with their objects. The zero value is
// ready for use.
type interner[T any] struct {
	mu     sync.Mutex
	values map[string]T
	// max bounds the number of values, 0 for maxInterned.
	max int
}

// intern returns the interned value for the key, which is this value if there was none.
func (i *interner[T]) intern(key []byte, value T) T {
	return i.internFunc(key, func() T { return value })
}

// internFunc returns the interned value for the key, and calls value to make it if there is none.
func (i *interner[T]) internFunc(key []byte, value func() T) T {
	if len(key) > maxKeyBytes {
		return value()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if known, ok := i.values[string(key)]; ok {
		return known
	}
	if i.values == nil || len(i.values) >= cmp.Or(i.max, maxInterned) {
		i.values = map[string]T{}
	}
	made := value()
	i.values[string(key)] = made
	return made
}

var (
	internedLists      interner[corev1.ResourceList]
	internedFlavors    interner[map[corev1.ResourceName]kueue.ResourceFlavorReference]
	internedContainers interner[[]corev1.Container]
	internedFinalizers interner[[]string]
	internedPriorities interner[*int32]
	internedTexts      stringInterner
)

// stringInterner interns strings, which are their own keys.
type stringInterner struct {
	mu    sync.Mutex
	known map[string]string
}

func (s *stringInterner) intern(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.known[text]; ok {
		return known
	}
	if s.known == nil || len(s.known) >= maxInterned {
		s.known = map[string]string{}
	}
	s.known[text] = text
	return text
}

// shareText returns the string, interned if it is short.
func shareText[T ~string](text T) T {
	if text == "" || len(text) > maxTextBytes {
		return text
	}
	return T(internedTexts.intern(string(text)))
}

// shareList returns the interned resource list.
func shareList(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return list
	}
	return internedLists.intern(appendList(make([]byte, 0, 128), list), list)
}

// shareFlavors returns the interned map of flavors by resource.
func shareFlavors(
	flavors map[corev1.ResourceName]kueue.ResourceFlavorReference) map[corev1.ResourceName]kueue.ResourceFlavorReference {
	if len(flavors) == 0 {
		return flavors
	}
	key := make([]byte, 0, 128)
	for _, name := range slices.Sorted(maps.Keys(flavors)) {
		key = appendText(key, string(name), string(flavors[name]))
	}
	return internedFlavors.intern(key, flavors)
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
			key = appendText(append(key, '/'), port.Name, string(port.Protocol), port.HostIP)
			key = strconv.AppendInt(append(strconv.AppendInt(key, int64(port.HostPort), 10), ':'), int64(port.ContainerPort), 10)
		}
		key = append(key, '\n')
	}
	return internedContainers.intern(key, containers)
}

// shareFinalizers returns the interned finalizers.
func shareFinalizers(finalizers []string) []string {
	if len(finalizers) == 0 {
		return nil
	}
	return internedFinalizers.intern(appendText(make([]byte, 0, 128), finalizers...), finalizers)
}

// sharePriority returns the interned priority.
func sharePriority(priority *int32) *int32 {
	if priority == nil {
		return nil
	}
	return internedPriorities.intern(strconv.AppendInt(nil, int64(*priority), 10), priority)
}

func appendList(key []byte, list corev1.ResourceList) []byte {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		key = appendText(key, string(name), quantity.String())
	}
	return key
}

// appendText appends strings, each after its length. Users choose the strings, so no byte can serve as a separator.
func appendText(key []byte, texts ...string) []byte {
	for _, text := range texts {
		key = append(append(strconv.AppendInt(key, int64(len(text)), 10), ':'), text...)
	}
	return key
}
