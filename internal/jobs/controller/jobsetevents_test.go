package controller_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// TestObstaclesOfJobSetsAreReportedOnce: what keeps a JobSet from what it asks for is told once, not again with every
// change of one of its Jobs.
func TestObstaclesOfJobSetsAreReportedOnce(t *testing.T) {
	size := func(js *jobset.JobSet, pods int32) {
		workers := &js.Spec.ReplicatedJobs[1].Template.Spec
		workers.CompletionMode, workers.Parallelism, workers.Completions = ptr.To(batchv1.IndexedCompletion),
			ptr.To(pods), ptr.To(pods)
	}
	claimed := newJobSet("cq")
	claimed.Spec.VolumeClaimPolicies =
		[]jobset.VolumeClaimPolicy{{Templates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}}}
	grows := newJobSet("cq")
	size(grows, 1)
	for reason, tc := range map[string]struct {
		js     *jobset.JobSet
		others []client.Object
		change func(*jobset.JobSet)
	}{
		jobset.HeadlessServiceCreationFailedReason: {newJobSet("cq"),
			[]client.Object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "js", Namespace: "ns"}}},
			func(*jobset.JobSet) {}},
		jobset.PVCCreationFailedReason: {claimed,
			[]client.Object{&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-js", Namespace: "ns"}}},
			func(*jobset.JobSet) {}},
		"ResizeWaitsForQuota": {grows, nil, func(js *jobset.JobSet) { size(js, 3) }},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, fault{}, append(tc.others, tc.js, clusterQueue("cq"), flavor())...)
			w.fate = running
			w.reconcile()
			w.admit()
			for range 3 {
				w.reconcile()
				w.runJobs()
			}
			js := w.jobSet()
			tc.change(js)
			if err := w.api.Update(t.Context(), js); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				w.reconcile()
			}
			var told []string
			for _, event := range w.events.events {
				if strings.HasPrefix(event, reason+":") {
					told = append(told, event)
				}
			}
			if len(told) != 1 {
				t.Errorf("%d events, want one: %v", len(told), told)
			}
		})
	}
}
