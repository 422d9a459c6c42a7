package jobs

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

func TestRefused(t *testing.T) {
	after := func(seconds int) time.Time { return earlier.Add(time.Duration(seconds) * time.Second) }
	said := func(message string, first, last int) Refusal { return Refusal{message, after(first), after(last)} }
	lacked := func(pods int32, since int) Lacked { return Lacked{pods, after(since)} }
	for name, tc := range map[string]struct {
		grant    Grant
		ready    bool
		refusals []Refusal
		now      int
		why      string
		due      int
		lacked   Lacked
		lacks    int32
	}{
		"who was never refused is not":                     {Admitted, false, nil, 60, "", 0, Lacked{}, 1},
		"who is refused for a moment is looked at again":   {Admitted, false, []Refusal{said("a", 2, 3)}, 4, "", 17, Lacked{}, 1},
		"who is refused for long is told the last refusal": {Admitted, false, []Refusal{said("a", 2, 3), said("b", 10, 12)}, 17, "b", 0, Lacked{}, 1},
		"a refusal of an earlier admission does not count": {Admitted, false, []Refusal{said("a", -30, -20)}, 60, "", 0, Lacked{}, 1},
		"one that goes on counts from this admission on":   {Admitted, false, []Refusal{said("a", -30, 5)}, 10, "", 15, Lacked{}, 1},
		"who has all its pods was not harmed":              {Admitted, true, []Refusal{said("a", 2, 3)}, 60, "", 0, Lacked{}, 1},
		"who waits has none to be refused":                 {Waiting, false, []Refusal{said("a", 2, 3)}, 60, "", 0, Lacked{}, 1},
		"who gets others meanwhile is not":                 {Admitted, false, []Refusal{said("a", 2, 3)}, 17, "", 32, lacked(9, 1), 8},
		"who got others a moment ago is looked at again":   {Admitted, false, []Refusal{said("a", 2, 3)}, 17, "", 25, lacked(8, 10), 8},
		"who gets no others is":                            {Admitted, false, []Refusal{said("a", 2, 3)}, 25, "a", 0, lacked(8, 10), 9},
		"what was said long before the last one is over":   {Admitted, false, []Refusal{said("a", 2, 3)}, 60, "", 0, lacked(8, 30), 8},
	} {
		t.Run(name, func(t *testing.T) {
			seen := Seen[*batchv1.Job]{Lacked: tc.lacked, Admission: Admission{Grant: tc.grant, UnreadySince: earlier},
				Refusals: map[types.UID][]Refusal{"u": tc.refusals, "other": {said("x", 0, 60)}}, Now: after(tc.now)}
			if tc.ready {
				seen.Admission.UnreadySince = time.Time{}
			}
			why, due := seen.Refused("u", tc.lacks)
			if why != tc.why || due.IsZero() != (tc.due == 0) || tc.due != 0 && !due.Equal(after(tc.due)) {
				t.Errorf("got %q and %v", why, due)
			}
		})
	}
}

func TestAGangWhosePodsAreRefusedIsReleasedAndWaitsLongerEachTime(t *testing.T) {
	w := waiting().admitted().w
	for _, wait := range []time.Duration{time.Minute, 2 * time.Minute} {
		w.Status.Conditions = waiting().admitted().w.Status.Conditions
		report(w, Progress{Active: true, Refused: "exceeded quota"}, minutely, now)
		at := w.Status.RequeueState.RequeueAt
		if !workload.IsEvicted(w) || !at.Time.Equal(now.Add(wait)) {
			t.Errorf("it waits until %v, want %v: %v", at, now.Add(wait), conditions(w))
		}
	}
	want := "Evicted=True PodsReadyTimeout: The API server refuses its pods: exceeded quota"
	if got := conditions(w); got[len(got)-1] != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestAGangThatWasRefusedTooOftenIsToBeDeactivated(t *testing.T) {
	w := waiting().admitted().w
	w.Status.RequeueState = &kueue.RequeueState{Count: ptr.To[int32](3)}
	report(w, Progress{Active: true, Refused: "no"}, Backoff{Base: time.Minute, Max: time.Hour, Limit: ptr.To[int32](3)}, now)
	if !workload.IsEvicted(w) || !workload.IsTrue(w, kueue.WorkloadDeactivationTarget) || w.Status.RequeueState.RequeueAt != nil {
		t.Errorf("got %v, %+v", conditions(w), w.Status.RequeueState)
	}
}

// Without its PodGroup no pod of a gang can be made: who is refused it gives its quota back as one whose pods are.
func TestARefusedPodGroupIsARefusalOfItsPods(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "u"}}
	write, lacks := Gang{Name: "g", Pods: 2}.Keep(job, crewKind, nil)
	if !lacks || !isRefusal(&corev1.Event{Reason: write.onFailure}) {
		t.Errorf("that it is refused is told as %q", write.onFailure)
	}
}
