package controller

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// TestAJobAsksOnlyForWhatItsAPICopesWith: no user gets an elastic pod set, or one that may start without pods, by an
// annotation that the job's API ignores.
func TestAJobAsksOnlyForWhatItsAPICopesWith(t *testing.T) {
	for _, able := range []struct{ resizes, anyPods bool }{{}, {resizes: true}, {anyPods: true}, {true, true}} {
		api := served[*batchv1.Job]{}
		api.Abilities.Resizes, api.Abilities.AnyPods = able.resizes, able.anyPods
		api.Describe = func(*batchv1.Job, jobs.Facts) jobs.Description {
			template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
				muster.MinReplicasAnnotation: "1", muster.MinPodsAnnotation: "1"}}}
			return jobs.Description{PodSets: []kueue.PodSet{{Name: "a", Template: template}, {Name: "b"}}}
		}
		r := &reconciler[*batchv1.Job]{api: api}
		got := r.described(&batchv1.Job{}, jobs.Facts{}).PodSets[0].Template.Annotations
		_, elastic := got[muster.MinReplicasAnnotation]
		_, anyPods := got[muster.MinPodsAnnotation]
		if elastic != able.resizes || anyPods != able.anyPods {
			t.Errorf("with %+v the pod set has the annotations %v", able, got)
		}
	}
}
