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

// observedRefusal is a refusal that is observed of at one time, in seconds, and tells another where it comes late or from
// another clock.
type observedRefusal struct {
	observed, last int
	message        string
}

// refusedJob returns a job that was admitted at time 0.
type refusedJob struct {
	refusals []observedRefusal
	// missing is how many pods it lacks at a time.
	missing func(at int) int32
	// from is when it is first looked at: the operator starts then.
	from  int
	waits bool
	// ready is until when its Workload says that its pods are ready.
	ready int
}

// seen is the job at a time.
func (j *refusedJob) seen(at int) Seen[*batchv1.Job] {
	after := func(seconds int) time.Time { return earlier.Add(time.Duration(seconds) * time.Second) }
	out := Seen[*batchv1.Job]{Job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "u"}}, Now: after(at),
		Admission: Admission{Grant: Admitted, UnreadySince: earlier}, Refusals: map[types.UID][]Refusal{"other": {{"x", after(60)}}}}
	if j.waits {
		out.Admission.Grant = Waiting
	}
	if at < j.ready {
		out.Admission.UnreadySince = time.Time{}
	}
	for _, told := range j.refusals {
		if told.observed <= at {
			out.Refusals["u"] = append(out.Refusals["u"], Refusal{told.message, after(told.last)})
		}
	}
	return out
}

// refused looks at the job whenever a pod comes or goes, a refusal is observed of, or it is due, for five minutes. It says
// when and why the job is refused, 0 for never.
func (j *refusedJob) refused() (at int, why string) {
	var known lacks
	var due time.Time
	observed, missing := -1, int32(-1)
	for at := j.from; at < 300; at++ {
		seen := j.seen(at)
		if at != j.ready && len(seen.Refusals["u"]) == observed && j.missing(at) == missing && (due.IsZero() || seen.Now.Before(due)) {
			continue
		}
		observed, missing, due = len(seen.Refusals["u"]), j.missing(at), time.Time{}
		p := Progress{Active: true}
		seen.Lacked = known.before(seen.Job)
		if missing > 0 {
			due = seen.NoteRefusals(&p, "u", missing)
		}
		if known.note(seen.Job, seen.lackedAfter(p)); p.Refused != "" {
			return at, p.Refused
		}
	}
	return 0, ""
}

func TestRefused(t *testing.T) {
	once := func(times ...int) (out []observedRefusal) {
		for _, at := range times {
			out = append(out, observedRefusal{at, at, "a"})
		}
		return out
	}
	everySecond := func(behind int) (out []observedRefusal) {
		for at := 2; at < 300; at++ {
			out = append(out, observedRefusal{at, at - behind, "a"})
		}
		return out
	}
	always := func(int) int32 { return 1 }
	hasAllBetween := func(first, last int) func(int) int32 {
		return func(at int) int32 {
			if at < first || at > last {
				return 1
			}
			return 0
		}
	}
	for name, tc := range map[string]struct {
		job refusedJob
		at  int
		why string
	}{
		"who was never refused is not":                     {refusedJob{missing: always}, 0, ""},
		"who is refused once and gets none is":             {refusedJob{refusals: once(2), missing: always}, 17, "a"},
		"who is refused for long is told the last refusal": {refusedJob{refusals: append(once(2), observedRefusal{12, 12, "b"}), missing: always}, 17, "b"},
		"a refusal of an earlier admission does not count": {refusedJob{refusals: []observedRefusal{{0, -20, "a"}}, missing: always}, 0, ""},
		"one that goes on counts from this admission on":   {refusedJob{refusals: []observedRefusal{{0, -20, "a"}, {5, 5, "a"}}, missing: always}, 20, "a"},
		"who has all its pods was not harmed":              {refusedJob{refusals: once(2), ready: 300, missing: always}, 0, ""},
		"who was said to have all a moment too long was":   {refusedJob{refusals: once(2), ready: 4, missing: always}, 19, "a"},
		"who waits has none to be refused":                 {refusedJob{refusals: once(2), waits: true, missing: always}, 0, ""},
		"who gets pods for a minute and then all is not": {
			refusedJob{refusals: once(2, 30), missing: func(at int) int32 { return max(0, 600-int32(at)*10) }}, 0, ""},
		"who gets a pod now and then is from the last on": {
			refusedJob{refusals: once(2), missing: func(at int) int32 { return 20 - min(int32(at), 60)/10 }}, 75, "a"},
		"a pod that is lost and comes again is no other": {
			refusedJob{refusals: once(2), missing: func(at int) int32 { return 8 + int32(at)/5%2 }}, 17, "a"},
		"a clock that is behind tells it later":           {refusedJob{refusals: everySecond(20), missing: always}, 35, "a"},
		"a clock that is ahead tells it as soon":          {refusedJob{refusals: everySecond(-20), missing: always}, 17, "a"},
		"what is observed of late counts":                 {refusedJob{refusals: []observedRefusal{{40, 2, "a"}}, missing: always}, 55, "a"},
		"an operator that starts later waits for no more": {refusedJob{refusals: once(2), from: 22, missing: always}, 37, "a"},
		"nor does it release who gets pods": {
			refusedJob{refusals: once(2), from: 22, missing: func(at int) int32 { return max(0, 60-int32(at)) }}, 0, ""},
		"what was overcome is not held against it": {refusedJob{refusals: once(2), missing: hasAllBetween(10, 60)}, 0, ""},
		"what comes after that is":                 {refusedJob{refusals: once(2, 70), missing: hasAllBetween(10, 60)}, 85, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			if at, why := tc.job.refused(); at != tc.at || why != tc.why {
				t.Errorf("it is refused at %d s, %q; want %d s, %q", at, why, tc.at, tc.why)
			}
		})
	}
}

func TestRefusedGangIsReleasedWithBackoff(t *testing.T) {
	w := waiting().admitted().w
	for _, wait := range []time.Duration{time.Minute, 2 * time.Minute} {
		w.Status.Conditions = waiting().admitted().w.Status.Conditions
		report(w, Progress{Active: true, Refused: "exceeded quota"}, minutely, now)
		at := w.Status.RequeueState.RequeueAt
		if !workload.IsEvicted(w) || !at.Time.Equal(now.Add(wait)) {
			t.Errorf("it waits until %v, want %v: %v", at, now.Add(wait), conditions(w))
		}
	}
	want := "Evicted=True PodsReadyTimeout: Its pods cannot be created: exceeded quota"
	if got := conditions(w); got[len(got)-1] != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestGangRefusedTooOftenIsDeactivated(t *testing.T) {
	w := waiting().admitted().w
	w.Status.RequeueState = &kueue.RequeueState{Count: ptr.To[int32](3)}
	report(w, Progress{Active: true, Refused: "no"}, Backoff{Base: time.Minute, Max: time.Hour, Limit: ptr.To[int32](3)}, now)
	if !workload.IsEvicted(w) || !workload.IsTrue(w, kueue.WorkloadDeactivationTarget) || w.Status.RequeueState.RequeueAt != nil {
		t.Errorf("got %v, %+v", conditions(w), w.Status.RequeueState)
	}
}

// TestRefusedPodGroupCountsAsRefusedPods, since no pod of the gang can be created without it.
func TestRefusedPodGroupCountsAsRefusedPods(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "u"}}
	write, lacks := Gang{Name: "g", Pods: 2}.Ensure(job, crewKind, nil)
	if !lacks || !isRefusal(&corev1.Event{Reason: write.onFailure}) {
		t.Errorf("that it is refused is told as %q", write.onFailure)
	}
}
