package workloads

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
)

func TestUpdatesOfReadyChecksAreGranted(t *testing.T) {
	spot := corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists}
	w := waiting().admitted().w
	w.Status.AdmissionChecks = []kueue.AdmissionCheckState{
		{Name: "nodes", State: kueue.CheckStateReady, PodSetUpdates: []kueue.PodSetUpdate{
			{Name: "main", Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"consume": "request-7"},
				NodeSelector: map[string]string{"pool": "new"}, Tolerations: []corev1.Toleration{spot}},
			{Name: "others", Labels: map[string]string{"l": "2"}},
		}},
		{Name: "same", State: kueue.CheckStateReady,
			PodSetUpdates: []kueue.PodSetUpdate{{Name: "main", Labels: map[string]string{"l": "1"}}}},
		{Name: "pending", State: kueue.CheckStatePending,
			PodSetUpdates: []kueue.PodSetUpdate{{Name: "main", Labels: map[string]string{"l": "3"}}}},
	}
	got := grantOf(w, nil, nil)
	want := jobs.Admission{Grant: jobs.Admitted,
		PodSets: map[string]jobs.PodSetAdmission{"main": {Count: 2, Asked: 2, Left: 2, Template: &w.Spec.PodSets[0].Template,
			Injection: podspec.Injection{
				Labels:       map[string]string{"kueue.x-k8s.io/podset": "main", "l": "1"},
				Annotations:  map[string]string{"consume": "request-7"},
				NodeSelector: map[string]string{"pool": "new"},
				Tolerations:  []corev1.Toleration{spot},
			}}}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(jobs.Admission{}, "UnreadySince")); diff != "" {
		t.Errorf("admission (-want +got):\n%s", diff)
	}
	if !got.MayStart() {
		t.Error("the job may not start")
	}
}

func TestCheckUpdatesNeverChangeExistingValues(t *testing.T) {
	flavors := map[string]*kueue.ResourceFlavor{
		"f": {Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"pool": "f"}}}}
	for name, tc := range map[string]struct {
		update   kueue.PodSetUpdate
		conflict string
	}{
		"label of the template": {kueue.PodSetUpdate{Labels: map[string]string{"app": "other", "z": "z"}},
			`the admission check c sets the label app of pod set main to "other", but it is "mine" already`},
		"annotation of the template": {kueue.PodSetUpdate{Annotations: map[string]string{"note": "other"}},
			`the admission check c sets the annotation note of pod set main to "other", but it is "mine" already`},
		"node selector of the template": {kueue.PodSetUpdate{NodeSelector: map[string]string{"disk": "other"}},
			`the admission check c sets the node selector disk of pod set main to "other", but it is "mine" already`},
		"node label of the flavor": {kueue.PodSetUpdate{NodeSelector: map[string]string{"pool": "other"}},
			`the admission check c sets the node selector pool of pod set main to "other", but it is "f" already`},
		"same value": {kueue.PodSetUpdate{Labels: map[string]string{"app": "mine"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := waiting().admission(map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "f"}).
				is("Admitted", metav1.ConditionTrue, "Admitted", "").w
			template := &w.Spec.PodSets[0].Template
			template.Labels, template.Annotations = map[string]string{"app": "mine"}, map[string]string{"note": "mine"}
			template.Spec.NodeSelector = map[string]string{"disk": "mine"}
			tc.update.Name = "main"
			w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "c", State: kueue.CheckStateReady,
				PodSetUpdates: []kueue.PodSetUpdate{tc.update}}}
			got := grantOf(w, flavors, nil)
			if got.Conflict != tc.conflict || got.MayStart() != (tc.conflict == "") {
				t.Errorf("conflict = %q, want %q; MayStart = %v", got.Conflict, tc.conflict, got.MayStart())
			}
		})
	}
}

func TestFinishedOrDeletedWorkloadGrantsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		w    *kueue.Workload
		want jobs.Grant
	}{
		"finished with quota": {waiting().admitted().is("Finished", metav1.ConditionTrue, "FailedToStart",
			"").w, jobs.Waiting},
		"deleted with quota":    {deleted(waiting().admitted()), jobs.Stopping},
		"deleted while waiting": {deleted(waiting()), jobs.Waiting},
	} {
		t.Run(name, func(t *testing.T) {
			if got := grantOf(tc.w, nil, nil).Grant; got != tc.want {
				t.Errorf("grant = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestUnreadySince(t *testing.T) {
	later := metav1.NewTime(now)
	recovering := waiting().admitted().is("PodsReady", metav1.ConditionFalse, "WaitForRecovery", "")
	recovering.w.Status.Conditions[2].LastTransitionTime = later
	for name, tc := range map[string]struct {
		w    *kueue.Workload
		want time.Time
	}{
		"after the admission": {waiting().admitted().w, earlier},
		"after a pod failed":  {recovering.w, now},
		"all pods ready":      {waiting().admitted().is("PodsReady", metav1.ConditionTrue, "Started", "").w, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := grantOf(tc.w, nil, nil).UnreadySince; !got.Equal(tc.want) {
				t.Errorf("UnreadySince = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestStartFailureIsReportedOnTheJob, with the message that the Workload gets too.
func TestStartFailureIsReportedOnTheJob(t *testing.T) {
	const conflict = `the admission check c sets the node selector k of pod set main to "false", but it is "true" already`
	want := []write.Event{{Type: corev1.EventTypeWarning, Reason: kueue.WorkloadFinishedReasonFailedToStart,
		Message: "No pods can be started: " + conflict, Standing: true}}
	if diff := cmp.Diff(want, CannotStart(jobs.Admission{Grant: jobs.Admitted, Conflict: conflict}, nil)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := CannotStart(jobs.Admission{Grant: jobs.Admitted}, nil); got != nil {
		t.Errorf("events of a job that can start: %v, want none", got)
	}
}
