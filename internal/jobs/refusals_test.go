package jobs_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterhq/muster/internal/jobs"
)

// observedRefusal is a refusal event. Its timestamp, last, differs from the time at which it is observed if the event
// is late or another clock set it. Both are in seconds.
type observedRefusal struct {
	observed, last int
	message        string
}

// admission is when the job of these tests was admitted.
var admission = time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC)

// refusedJob is a job that was admitted at time 0, some of whose pods are refused. Times are in seconds.
type refusedJob struct {
	refusals []observedRefusal
	// missing returns how many pods are missing at a time.
	missing func(at int) int32
	// from is when the operator starts, and first reconciles the job.
	from int
	// waits means that the job waits instead of being admitted.
	waits bool
	// ready is until when the Workload has the condition PodsReady.
	ready int
}

// seen returns what a reconcile at a time sees.
func (rj *refusedJob) seen(at int) jobs.Seen[*batchv1.Job] {
	after := func(seconds int) time.Time { return admission.Add(time.Duration(seconds) * time.Second) }
	out := jobs.Seen[*batchv1.Job]{
		Job:       &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "u"}},
		Now:       after(at),
		Admission: jobs.Admission{Grant: jobs.Admitted, UnreadySince: admission},
		Refusals:  map[types.UID][]jobs.Refusal{"other": {{Message: "x", Last: after(60)}}}}
	if rj.waits {
		out.Admission.Grant = jobs.Waiting
	}
	if at < rj.ready {
		out.Admission.UnreadySince = time.Time{}
	}
	for _, r := range rj.refusals {
		if r.observed <= at {
			out.Refusals["u"] = append(out.Refusals["u"], jobs.Refusal{Message: r.message, Last: after(r.last)})
		}
	}
	return out
}

// refused reconciles the job for five minutes, whenever the number of missing pods changes, a refusal is observed or
// the job is due. It returns when and why the job counts as refused; 0 for never.
func (rj *refusedJob) refused() (at int, why string) {
	var known jobs.MissingPods
	var due time.Time
	observed, missing := -1, int32(-1)
	for at := rj.from; at < 300; at++ {
		seen := rj.seen(at)
		if at != rj.ready && len(seen.Refusals["u"]) == observed && rj.missing(at) == missing &&
			(due.IsZero() || seen.Now.Before(due)) {
			continue
		}
		observed, missing, due = len(seen.Refusals["u"]), rj.missing(at), time.Time{}
		p := jobs.Progress{Active: true}
		seen.MissingPods = known
		if missing > 0 {
			due = seen.NoteRefusals(&p, "u", missing)
		}
		if known = seen.MissingPodsAfter(p); p.Refused != "" {
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
		"no refusal":                    {refusedJob{missing: always}, 0, ""},
		"one refusal, no pods after it": {refusedJob{refusals: once(2), missing: always}, 17, "a"},
		"two refusals, the last of which is reported": {refusedJob{refusals: append(once(2), observedRefusal{12, 12, "b"}),
			missing: always}, 17, "b"},
		"refusal before this admission": {refusedJob{refusals: []observedRefusal{{0, -20, "a"}},
			missing: always}, 0, ""},
		"refusals before and after this admission": {refusedJob{refusals: []observedRefusal{{0, -20, "a"}, {5, 5, "a"}},
			missing: always}, 20, "a"},
		"PodsReady throughout":                 {refusedJob{refusals: once(2), ready: 300, missing: always}, 0, ""},
		"PodsReady for a few seconds too long": {refusedJob{refusals: once(2), ready: 4, missing: always}, 19, "a"},
		"waiting job":                          {refusedJob{refusals: once(2), waits: true, missing: always}, 0, ""},
		"pods created for a minute, then all exist": {
			refusedJob{refusals: once(2, 30), missing: func(at int) int32 { return max(0, 600-int32(at)*10) }}, 0, ""},
		"some pods created, the last after 60 s": {
			refusedJob{refusals: once(2), missing: func(at int) int32 { return 20 - min(int32(at), 60)/10 }}, 75, "a"},
		"one pod lost and recreated repeatedly": {
			refusedJob{refusals: once(2), missing: func(at int) int32 { return 8 + int32(at)/5%2 }}, 17, "a"},
		"clock of the events behind": {refusedJob{refusals: everySecond(20), missing: always}, 35, "a"},
		"clock of the events ahead":  {refusedJob{refusals: everySecond(-20), missing: always}, 17, "a"},
		"event observed late":        {refusedJob{refusals: []observedRefusal{{40, 2, "a"}}, missing: always}, 55, "a"},
		"operator started later":     {refusedJob{refusals: once(2), from: 22, missing: always}, 37, "a"},
		"operator started later, pods being created": {
			refusedJob{refusals: once(2), from: 22, missing: func(at int) int32 { return max(0, 60-int32(at)) }}, 0, ""},
		"refusal before all pods existed": {refusedJob{refusals: once(2), missing: hasAllBetween(10, 60)}, 0, ""},
		"refusals before and after all pods existed": {refusedJob{refusals: once(2, 70),
			missing: hasAllBetween(10, 60)}, 85, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			if at, why := tc.job.refused(); at != tc.at || why != tc.why {
				t.Errorf("refused at %d s for %q; want %d s, %q", at, why, tc.at, tc.why)
			}
		})
	}
}

// TestRefusedPodGroupCountsAsRefusedPods, since no pod of the gang can be created without it.
func TestRefusedPodGroupCountsAsRefusedPods(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "u"}}
	write, differs := jobs.Gang{Name: "g", Pods: 2}.Ensure(job, crewKind, nil)
	if !differs || write.RefusalReason() != jobs.FailedCreate {
		t.Errorf("the event of a refused PodGroup has the reason %q, want one that counts as a refusal", write.RefusalReason())
	}
}
