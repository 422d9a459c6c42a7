package admission

import (
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// longText is of how many bytes a text is that is hardly ever that of another pod too.
	longText = 100
	// fewerAlike has fewer be known of what the pods of one job have in common: they come one after the other.
	fewerAlike = mostAlike / 4
)

var (
	alikeTexts      texts
	alikeMaps       = alike[map[string]string]{most: fewerAlike}
	alikeOwners     = alike[[]metav1.OwnerReference]{most: fewerAlike}
	alikeStatuses   alike[[]corev1.ContainerStatus]
	alikeFinalizers alike[[]string]
	alikePriorities alike[*int32]
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

// shareMap does the same for labels and the like, down to each text in them.
func shareMap(of map[string]string) map[string]string {
	if len(of) == 0 {
		return nil
	}
	key := make([]byte, 0, 512)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		key = appendText(appendText(key, name), of[name])
	}
	return alikeMaps.made(key, func() map[string]string {
		out := make(map[string]string, len(of))
		for name, value := range of {
			out[shareText(name)] = shareText(value)
		}
		return out
	})
}

// shareOwners does the same for who a pod belongs to.
func shareOwners(owners []metav1.OwnerReference) []metav1.OwnerReference {
	if len(owners) == 0 {
		return nil
	}
	key := make([]byte, 0, 256)
	for i := range owners {
		o := &owners[i]
		key = appendText(appendText(appendText(appendText(key, o.APIVersion), o.Kind), o.Name), string(o.UID))
		key = appendFlag(appendFlag(key, o.Controller), o.BlockOwnerDeletion)
	}
	return alikeOwners.one(key, owners)
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

// shareStatuses does the same for containers that only run or wait; when one ended tells it apart.
func shareStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	if len(statuses) == 0 {
		return nil
	}
	key := make([]byte, 0, 64)
	for i := range statuses {
		s := &statuses[i]
		s.Name = shareText(s.Name)
		if s.State.Terminated != nil || s.Resources != nil || s.AllocatedResources != nil {
			return statuses
		}
		key = strconv.AppendBool(strconv.AppendBool(appendText(key, s.Name), s.State.Running != nil), s.Ready)
		key = append(strconv.AppendInt(key, int64(s.RestartCount), 10), '\n')
	}
	return alikeStatuses.one(key, statuses)
}

// sharePriority does the same for a priority.
func sharePriority(priority *int32) *int32 {
	if priority == nil {
		return nil
	}
	return alikePriorities.one(strconv.AppendInt(nil, int64(*priority), 10), priority)
}

// appendFlag appends yes, no, or that nothing is said.
func appendFlag(key []byte, flag *bool) []byte {
	switch {
	case flag == nil:
		return append(key, '-')
	case *flag:
		return append(key, 'y')
	}
	return append(key, 'n')
}
