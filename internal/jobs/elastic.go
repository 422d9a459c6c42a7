package jobs

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
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
		if !saysLeast(&podSet.Template) {
			continue
		}
		if _, err := podspec.SpeedExponent(podSet.Template.Annotations); err != nil {
			return Mistake(fmt.Sprintf("Pod set %s: %v", podSet.Name, err))
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

// Size is how many pods there are to be where so many were granted: no more, whatever the job has come to say since.
func (b Bounds) Size(granted int32) int32 { return min(granted, b.Most) }

// ChoseCount reports whether the queue chose how many pods there are to be: what was admitted says so, be the job's own template
// changed by now.
func (p PodSetAdmission) ChoseCount() bool { return p.Template != nil && saysLeast(p.Template) }

// Bounds returns the bounds that hold for the pod set while it is admitted, given those that the job asks for now. Where the queue chose
// the count, it goes on doing so until the next admission, although the job may ask for a fixed number of pods by then. It
// never gets more pods than it asks for now.
func (p PodSetAdmission) Bounds(asked Bounds) Bounds {
	if asked.Elastic || !p.ChoseCount() {
		return asked
	}
	admitted := BoundsOf(p.Template.Annotations, p.Asked)
	return Bounds{Least: min(admitted.Least, asked.Most), Most: asked.Most, Elastic: true}
}

// saysLeast reports whether the template is of a pod set that is elastic.
func saysLeast(template *corev1.PodTemplateSpec) bool {
	return template.Annotations[muster.MinReplicasAnnotation] != ""
}
