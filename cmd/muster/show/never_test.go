package show

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/engine/place/find"
	"github.com/musterhq/muster/internal/engine/reason"
)

// explanationText returns the explanation as text.
func explanationText(t *testing.T, e *view.Explanation) string {
	t.Helper()
	var out bytes.Buffer
	if err := Explanation(&out, e); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// waitingFor returns the explanation of a job that waits in a queue with one flavor, whose quota suffices.
func waitingFor(x reason.Explanation) *view.Explanation {
	job := pendingJob()
	job.Reason = string(x.Code)
	x.State, x.ClusterQueue, x.Length = reason.Waiting, "lab", 120
	x.PodSets = []reason.PodSet{{Name: "main", Pods: 9,
		Flavors: []reason.FlavorVerdict{{Flavor: "h100", Fit: reason.Fits, Nearest: true}}}}
	return &view.Explanation{Job: job, WhyNot: &x,
		Line: &view.Line{ClusterQueue: "lab", Position: x.Position, Length: x.Length}}
}

// TestWhatNeverStartsIsNotSaidToFit: 9 pods of 8 GPUs, on 8 machines.
func TestWhatNeverStartsIsNotSaidToFit(t *testing.T) {
	e := waitingFor(reason.Explanation{Code: reason.ExceedsNodes, Position: 1})
	e.WhyNot.PodSets[0].Flavors[0].Nodes = &find.Diagnosis{PodSets: []find.AskDiagnosis{{}},
		Relaxation: `pod set "main" with 8 pods rather than 9`}
	text := explanationText(t, e)
	for _, want := range []string{"is pending for 7m: ExceedsNodes", "never     with these nodes", "enough quota",
		`change  it would fit: pod set "main" with 8 pods rather than 9`, "next      muster kubectl get nodes"} {
		if !strings.Contains(text, want) {
			t.Errorf("the explanation does not have %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "  fits") {
		t.Errorf("the explanation says that it fits:\n%s", text)
	}
}

// TestWhoIsBehindAHeadThatNeverStartsIsToldSo, and not that it fits.
func TestWhoIsBehindAHeadThatNeverStartsIsToldSo(t *testing.T) {
	for code, with := range map[reason.Code]string{reason.ExceedsMaxQuota: "this quota",
		reason.ExceedsNodes: "these nodes"} {
		text := explanationText(t,
			waitingFor(reason.Explanation{Code: reason.WaitingForQuota, Position: 2,
				Behind: &reason.Name{Namespace: "ml", Name: "first"}, BehindCode: code}))
		want := "behind    ml/workload/first, the head of the queue, which is StrictFIFO: no job may overtake it, and it never starts with " + with + " (" +
			string(code) + ")"
		if !strings.Contains(text, want) || strings.Contains(text, "fits") ||
			!strings.Contains(text, "next      muster explain ml/workload/first") {
			t.Errorf("want %q, and nothing that fits:\n%s", want, text)
		}
	}
}

// TestWouldFitAfterCountsThoseBefore: 96 jobs are before it, so that the end of one does not start it.
func TestWouldFitAfterCountsThoseBefore(t *testing.T) {
	for position, want := range map[int]string{
		1:  "would fit after the end of ml/workload/j3",
		2:  "before it 1 job of the queue, which may take what becomes free first",
		97: "before it 96 jobs of the queue, which may take what becomes free first",
	} {
		text := explanationText(t,
			waitingFor(reason.Explanation{Code: reason.WaitingForQuota, Position: position,
				WouldFitAfter: []reason.Name{{Namespace: "ml", Name: "j3"}}}))
		if !strings.Contains(text, want) || strings.Contains(text, "would fit after") != (position == 1) {
			t.Errorf("position %d: want %q:\n%s", position, want, text)
		}
	}
}

// TestWhoPreemptedIsSaidWhileTheJobWaits, in the table and in the explanation.
func TestWhoPreemptedIsSaidWhileTheJobWaits(t *testing.T) {
	job := pendingJob()
	job.RunSeconds = seconds(7)
	job.Preempted = &view.Preemption{By: "pre/job/high", Right: kueue.InClusterQueueReason,
		At: metav1.NewTime(time.Date(2025, 6, 1, 14, 0, 7, 0, time.UTC))}
	if got, want := Why(&job),
		"WaitingForQuota: 24 more needed; preempted by pre/job/high at 2025-06-01 14:00:07 UTC: it comes first in the ClusterQueue"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	const want = "preempted by pre/job/high at 2025-06-01 14:00:07 UTC: it comes first in the ClusterQueue; it had run 7s\n"
	if text := explanationText(t, &view.Explanation{Job: job}); !strings.Contains(text, want) {
		t.Errorf("the explanation does not have %q:\n%s", want, text)
	}
}

func TestQuotaThatIsExceededIsSaidInPlainWords(t *testing.T) {
	job := view.Job{Reason: "ExceedsMaxQuota",
		Message: "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor h100, " +
			"previously considered podsets requests (0) + current podset request (40) > maximum capacity (32)"}
	if got, want := Why(&job),
		"ExceedsMaxQuota: never with this quota: 40 of nvidia.com/gpu asked in flavor h100, 32 at most"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestNextIsTheCommandThatHelps where something is mistaken or missing.
func TestNextIsTheCommandThatHelps(t *testing.T) {
	refused := func(message string) *view.Explanation {
		e := waitingFor(reason.Explanation{Code: reason.NoMatchingFlavor, Position: 1})
		e.WhyNot.PodSets[0].Flavors[0] = reason.FlavorVerdict{Flavor: "h100", Fit: reason.Refused, Message: message}
		return e
	}
	typo := func(named string, there ...string) *view.Explanation {
		job := pendingJob()
		job.Queue = named
		return &view.Explanation{Job: job, QueuesThere: there}
	}
	for name, tc := range map[string]struct {
		e    *view.Explanation
		want string
	}{
		"a queue that is mistyped": {typo("gpus", "default", "gpu", "short"),
			"muster kubectl label -n ml jobset/eval kueue.x-k8s.io/queue-name=gpu --overwrite"},
		"letters in another order": {typo("defualt", "default", "gpu"),
			"muster kubectl label -n ml jobset/eval kueue.x-k8s.io/queue-name=default --overwrite"},
		"the only queue there is": {typo("research", "gpu"),
			"muster kubectl label -n ml jobset/eval kueue.x-k8s.io/queue-name=gpu --overwrite"},
		"no queue has a name like it": {typo("research", "gpu", "short"), "muster queues -n ml"},
		"a missing flavor":            {refused("flavor h100 not found"), "muster kubectl get resourceflavors"},
		"a missing topology": {refused("topology dc of flavor h100 not found"),
			"muster kubectl get topologies.kueue.x-k8s.io"},
		"a flavor with another taint": {refused("untolerated taint x"), "muster queues -n ml"},
		"the job that holds the quota": {waitingFor(reason.Explanation{Code: reason.WaitingForQuota, Position: 1,
			Holders: []reason.Holder{{Name: reason.Name{Namespace: "ml", Name: "j3"}}}}), "muster explain ml/workload/j3"},
	} {
		if got := nextCommand(tc.e); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
