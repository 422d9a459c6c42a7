package jobs

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/podspec"
)

// Bounds are between how many pods a queue may choose for a pod set. One that is not elastic
// has one number.
type Bounds struct {
	Least, Most int32
	Elastic     bool
}

// BoundsOf reads those of a pod set from the annotations of its pod template; count is how
// many pods its author asks for. What cannot be read counts as absent: the API refuses it.
func BoundsOf(annotations map[string]string, count int32) Bounds {
	b := Bounds{Least: count, Most: count}
	least, ok := replicasSaid(annotations, muster.MinReplicasAnnotation)
	if !ok {
		return b
	}
	if most, ok := replicasSaid(annotations, muster.MaxReplicasAnnotation); ok {
		b.Most = most
	}
	b.Least, b.Elastic = min(least, b.Most), true
	return b
}

// speedMistake is what is wrong with how much faster an elastic pod set is said to be with more pods, nil if nothing is.
func speedMistake(podSets []kueue.PodSet) *Event {
	for i := range podSets {
		podSet := &podSets[i]
		if podSet.Template.Annotations[muster.MinReplicasAnnotation] == "" {
			continue
		}
		if _, err := podspec.SpeedExponent(podSet.Template.Annotations); err != nil {
			return ptr.To(Obstacle(InvalidJob, fmt.Sprintf("Pod set %s: %v. The job is not queued until then", podSet.Name, err)))
		}
	}
	return nil
}

func replicasSaid(annotations map[string]string, key string) (int32, bool) {
	n, err := strconv.ParseInt(annotations[key], 10, 32)
	return int32(n), err == nil && n > 0
}

// Ask has the pod set, if it is elastic, ask for as many pods as it can use, and say how few
// will do.
func (b Bounds) Ask(podSet *kueue.PodSet) {
	if !b.Elastic {
		return
	}
	podSet.Count, podSet.MinCount = b.Most, ptr.To(b.Least)
	metav1.SetMetaDataAnnotation(&podSet.Template.ObjectMeta, muster.MaxReplicasAnnotation, strconv.Itoa(int(b.Most)))
}

// Size is how many pods there are to be where so many were granted.
func (b Bounds) Size(granted int32) int32 { return min(max(granted, b.Least), b.Most) }
