package jobs

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// Bounds says between which numbers of pods a queue may choose for a pod set. Least and Most are equal if it is not
// elastic.
type Bounds struct {
	Least, Most int32
	Elastic     bool
}

// MostReplicas is the largest number of pods that an annotation can ask for, and more than the API accepts. Sizes
// decide how much memory a plan takes, and jobs may have been stored before the API limited them.
const MostReplicas = 10000

// BoundsOf returns the bounds of a pod set from the annotations of its pod template; count is how many pods its author
// asks for. Values that are no numbers from 1 to MostReplicas count as absent: the API rejects them.
func BoundsOf(annotations map[string]string, count int32) Bounds {
	b := Bounds{Least: count, Most: count}
	least, ok := ReplicasIn(annotations, muster.MinReplicasAnnotation)
	if !ok {
		return b
	}
	if most, ok := ReplicasIn(annotations, muster.MaxReplicasAnnotation); ok {
		b.Most = most
	}
	b.Least, b.Elastic = min(least, b.Most), true
	return b
}

// ReplicasIn returns the number of pods in the annotation, and false if it is absent or counts as absent.
func ReplicasIn(annotations map[string]string, key string) (int32, bool) {
	n, err := strconv.ParseInt(annotations[key], 10, 32)
	return int32(n), err == nil && 0 < n && n <= MostReplicas
}

// Ask makes an elastic pod set ask for as many pods as it can use, and sets the minimum that it accepts. A pod set of a
// fixed size loses what its template says about sizes.
func (b Bounds) Ask(podSet *kueue.PodSet) {
	if !b.Elastic {
		DropAnnotation(podSet, muster.MinReplicasAnnotation)
		return
	}
	podSet.Count, podSet.MinCount = b.Most, ptr.To(b.Least)
	SetNumber(&podSet.Template.ObjectMeta, muster.MaxReplicasAnnotation, b.Most)
}

// Size returns how many pods there should be if this many were granted: no more than the job asks for now.
func (b Bounds) Size(granted int32) int32 { return min(granted, b.Most) }

// ChoseCount reports whether the queue chose the number of pods. This depends on the admitted template, as the job's
// own may have changed since.
func (p PodSetAdmission) ChoseCount() bool { return p.Template != nil && IsElasticTemplate(p.Template) }

// Bounds returns the bounds that hold for the pod set while it is admitted, given the bounds that the job asks for now.
// Where the queue chose the count, it goes on doing so until the next admission, even if the job asks for a fixed
// number of pods by then. The job never gets more pods than it asks for now.
func (p PodSetAdmission) Bounds(asked Bounds) Bounds {
	if asked.Elastic || !p.ChoseCount() {
		return asked
	}
	admitted := BoundsOf(p.Template.Annotations, p.Asked)
	return Bounds{Least: min(admitted.Least, asked.Most), Most: asked.Most, Elastic: true}
}

// IsElasticTemplate reports whether the template is that of an elastic pod set.
func IsElasticTemplate(template *corev1.PodTemplateSpec) bool {
	return template.Annotations[muster.MinReplicasAnnotation] != ""
}

// SetNumber sets an annotation to a number.
func SetNumber(meta *metav1.ObjectMeta, key string, n int32) {
	metav1.SetMetaDataAnnotation(meta, key, strconv.Itoa(int(n)))
}

// DropAnnotation removes the annotation from the template of the pod set. The template may be the job's own: its map
// of annotations is copied, not changed.
func DropAnnotation(podSet *kueue.PodSet, key string) {
	meta := &podSet.Template.ObjectMeta
	if _, says := meta.Annotations[key]; says {
		meta.Annotations = maps.Clone(meta.Annotations)
		delete(meta.Annotations, key)
	}
}
