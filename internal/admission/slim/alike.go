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
	// mostAlike is how many different values are known of a kind: far more than there are sizes of pods in a cluster.
	mostAlike = 4096
	// longKey is of how many bytes the key of a value is that is not kept for others: what tenants write is bounded in its size too.
	longKey = 4096
	// longText is of how many bytes a text is that is hardly ever that of another object too.
	longText = 100
)

// alike keeps values once that objects in the cache have in common, by what tells them apart: pods of a job ask for the same, and most
// jobs of a cluster for one of a few sizes. Nobody may change such a value. When there are too many it begins anew: what it gave
// lives on for as long as objects have it. The zero value is ready for use.
type alike[T any] struct {
	mu sync.Mutex
	of map[string]T
	// most is how many are known, 0 for mostAlike.
	most int
}

// one is the value that is like this one.
func (a *alike[T]) one(key []byte, value T) T { return a.made(key, func() T { return value }) }

// made is the value of the key, made if none is known.
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

// texts is alike for texts, which are their own keys.
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

// shareText is the text, or one that is equal.
func shareText[T ~string](text T) T {
	if text == "" || len(text) > longText {
		return text
	}
	return T(alikeTexts.one(string(text)))
}

// shareList is the list, or one that is equal.
func shareList(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return list
	}
	return alikeLists.one(appendList(make([]byte, 0, 128), list), list)
}

// shareFlavors does the same for flavors by resource.
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

// shareContainers does the same for containers of which nothing is left but what strippedContainers keeps.
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

// shareFinalizers does the same for who is still to be heard before it goes.
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

// sharePriority does the same for a priority.
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

// appendText appends a text behind its length: tenants write what they like, and no byte in it may pass for the end of it.
func appendText(key []byte, text string) []byte {
	return append(append(strconv.AppendInt(key, int64(len(text)), 10), ':'), text...)
}
