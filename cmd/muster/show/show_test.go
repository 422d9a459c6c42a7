package show

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/engine/reason"
)

func seconds(n int64) *int64 { return &n }

func pendingJob() view.Job {
	return view.Job{
		Namespace: "ml", Kind: "JobSet", APIGroup: "jobset.x-k8s.io", Name: "eval", Queue: "gpu", Priority: 10,
		State: view.Pending, Reason: "WaitingForQuota", Message: "24 more needed",
		PodsAsked: 8, Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("64")},
		CreatedAt:   metav1.NewTime(time.Date(2025, 6, 1, 14, 0, 0, 0, time.UTC)),
		WaitSeconds: seconds(420), Workload: "jobset-eval-abcde", UID: "1",
	}
}

func labQueue() view.Queue {
	gpu := view.Quota{Flavor: "h100", Resource: "nvidia.com/gpu",
		Used: resource.MustParse("32"), Reserved: resource.MustParse("40"), Nominal: resource.MustParse("32"),
		Borrowed: resource.MustParse("8")}
	cpu := view.Quota{Flavor: "h100", Resource: "cpu", Nominal: resource.MustParse("96")}
	return view.Queue{
		Name: "lab", Cohort: "all", Active: true, Pending: 3, Quotas: []view.Quota{gpu, cpu},
		Head: &view.Head{Namespace: "ml", Job: "jobset/eval", Reason: "WaitingForQuota", Message: "24 more needed"},
	}
}

func TestTables(t *testing.T) {
	noQueue := view.Job{Namespace: "ml", Kind: "Job", Name: "one", State: view.Running, PodsReady: 1, PodsAsked: 1,
		RunSeconds: seconds(5)}
	jobs := []view.Job{pendingJob(), noQueue}
	tests := []struct {
		name    string
		table   *metav1.Table
		options printers.PrintOptions
		want    string
	}{{
		name:  "jobs of one namespace",
		table: JobTable(jobs, false, tableTime),
		want: `
JOB           QUEUE   PRIO   STATE     PODS   RESOURCES   WAIT   RUN   WHY
jobset/eval   gpu     10     Pending   0/8    64 gpu      7m     -     WaitingForQuota: 24 more needed
job/one       -       -      Running   1/1    -           -      5s    -`,
	}, {
		name:  "jobs of all namespaces",
		table: JobTable(jobs[1:], true, tableTime),
		want: `
NAMESPACE   JOB       QUEUE   PRIO   STATE     PODS   RESOURCES   WAIT   RUN   WHY
ml          job/one   -       -      Running   1/1    -           -      5s    -`,
	}, {
		name:    "wide jobs without a header",
		table:   JobTable(jobs[:1], false, tableTime),
		options: printers.PrintOptions{Wide: true, NoHeaders: true},
		want: `
jobset/eval   gpu   10    Pending   0/8   64 gpu   7m    -     WaitingForQuota: 24 more needed   -     jobset-eval-abcde   0     64 gpu   2025-06-01T14:00:00Z`,
	}, {
		name: "queues with values of the whole queue once",
		table: QueueTable([]view.Queue{labQueue(), {Name: "empty", Reason: "FlavorNotFound"}, {Name: "open", Active: true,
			Quotas: []view.Quota{{Flavor: "default", Resource: "cpu", Used: resource.MustParse("4"),
				Reserved: resource.MustParse("4"), Unlimited: true}}}}),
		want: `
QUEUE   COHORT   FLAVOR    RESOURCE         USED   RESERVED   NOMINAL     BORROWED   PENDING   HEAD             HEAD WAITS FOR
lab     all      h100      nvidia.com/gpu   32     40         32          8          3         ml/jobset/eval   WaitingForQuota: 24 more needed
lab     all      h100      cpu              0      0          96          -
empty   -        -         -                0      0          0           -          0         -                queue inactive: FlavorNotFound
open    -        default   cpu              4      4          unlimited   -          0         -                -`,
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			lines, err := Lines(test.table, test.options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(strings.TrimPrefix(test.want, "\n"), "\n"), lines); diff != "" {
				t.Errorf("table differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplanationOfAWaitingJob(t *testing.T) {
	job := pendingJob()
	e := &view.Explanation{
		Job: job,
		Asks: []view.Ask{{PodSet: "workers", Pods: 8,
			PerPod: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}},
		Line:   &view.Line{ClusterQueue: "lab", Position: 1, Length: 3},
		Quotas: labQueue().Quotas[:1],
		Holders: []view.Holder{{Namespace: "ml", Job: "jobset/pretrain",
			Requests: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("40")}}},
	}
	want := `ml/jobset/eval is pending for 7m: WaitingForQuota: 24 more needed

  asks      workers: 8 pods x 8 gpu
  queue     gpu of ClusterQueue lab (position 1 of 3, priority 10)
  pods      0/8 ready or done
  quota     0 of 32 gpu free in flavor h100
  held by   ml/jobset/pretrain  40 gpu (priority 0)
  next      muster queues -n ml
`
	var got bytes.Buffer
	if err := Explanation(&got, e); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("explanation differs (-want +got):\n%s", diff)
	}
}

func TestExplanationOfAJobThatWaitsForItsChecks(t *testing.T) {
	e := &view.Explanation{Job: pendingJob(), Line: &view.Line{ClusterQueue: "lab"},
		Asks: []view.Ask{{PodSet: "workers", Pods: 8, Fewest: 1}},
		Checks: []view.Check{{Name: "budget", State: kueue.CheckStatePending},
			{Name: "nodes", State: kueue.CheckStatePending, Message: "8 nodes are being made"}}}
	e.Job.Reason, e.Job.Message = "AdmissionChecks", "quota reserved, waits for admission checks budget, nodes"
	want := `ml/jobset/eval is pending for 7m: AdmissionChecks: quota reserved, waits for admission checks budget, nodes

  asks      workers: 8 pods without requests, 1 pod at least
  queue     gpu of ClusterQueue lab (priority 10)
  checks    budget is Pending
            nodes is Pending: 8 nodes are being made
  pods      0/8 ready or done
  next      muster kubectl describe admissionchecks budget nodes
`
	var got bytes.Buffer
	if err := Explanation(&got, e); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("explanation differs (-want +got):\n%s", diff)
	}
}

func TestExplanationOfAJobThatWaitsForThePodsOfOthers(t *testing.T) {
	e := &view.Explanation{Job: pendingJob(), Line: &view.Line{ClusterQueue: "lab", Position: 1, Length: 1},
		Titles: map[string]string{"ml/w-a": "ml/jobset/a"},
		WhyNot: &reason.Explanation{Code: reason.WaitingForPodsReady, ClusterQueue: "lab",
			Unready: []reason.Name{{Namespace: "ml", Name: "w-a"}, {Namespace: "ml", Name: "w-b"}}}}
	var got bytes.Buffer
	if err := Explanation(&got, e); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n  awaits    ml/jobset/a and ml/workload/w-b, whose pods are not ready\n",
		"\n  next      muster explain ml/jobset/a\n"} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("explanation does not have %q:\n%s", want, got.String())
		}
	}
}

func TestAsksShowTopologyConstraints(t *testing.T) {
	const rack, block = "example.com/rack", "example.com/block"
	for want, a := range map[string]view.Ask{
		"8 pods without requests": {},
		"8 pods without requests, one example.com/block required, one example.com/rack for each 4 pods": {Near: []view.Nearness{
			{Of: view.Required, Level: block}, {Of: view.Slice, Level: rack, Pods: 4}}},
		"8 pods without requests, one example.com/rack preferred, together with all of group g": {
			Near: []view.Nearness{{Of: view.Preferred, Level: rack}}, Group: "g"},
		"8 pods without requests, holds quota for 1": {Left: ptr.To[int32](1)},
		"8 pods without requests, one example.com/rack for each Job alone, admitted with 6": {
			Near: []view.Nearness{{Of: view.Exclusive, Level: rack}}, Given: ptr.To[int32](6)},
	} {
		a.Pods = 8
		if got := ask(&a); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestHeadlineOmitsWhatTheEvictionSays: the headline keeps only the end of the backoff, or the queue that holds the
// job.
func TestHeadlineOmitsWhatTheEvictionSays(t *testing.T) {
	for name, tc := range map[string]struct{ reason, message, warning, want string }{
		"backoff": {"PendingEvaluation", "was evicted: Exceeded it; queued again in 3s", "Exceeded it",
			"ml/jobset/eval is pending for 7m: PendingEvaluation; queued again in 3s"},
		"evaluated next": {"PendingEvaluation", "was evicted: Exceeded it", "Exceeded it",
			"ml/jobset/eval is pending for 7m: PendingEvaluation"},
		"drained queue": {"OnHold", "LocalQueue q is stopped", "The LocalQueue is stopped",
			"ml/jobset/eval is pending for 7m: OnHold: LocalQueue q is stopped"},
		"no Workload": {"", "no Workload yet: its events say why", "mend this",
			"ml/jobset/eval is pending for 7m: no Workload yet"},
	} {
		job := pendingJob()
		job.Reason, job.Message = tc.reason, tc.message
		if got := headline(&view.Explanation{Job: job,
			Warning: &view.Warning{Reason: "Evicted", Message: tc.warning}}); got != tc.want {
			t.Errorf("%s: headline = %q, want %q", name, got, tc.want)
		}
	}
}

func TestExplanationOfAnInvalidJob(t *testing.T) {
	job := pendingJob()
	job.Workload, job.Reason, job.Message = "", "", "no Workload yet: ask muster explain"
	e := &view.Explanation{
		Job: job,
		Asks: []view.Ask{{PodSet: "main", Pods: 1,
			PerPod: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}},
		Line:    &view.Line{ClusterQueue: "lab"},
		Holders: []view.Holder{{Namespace: "ml", Job: "jobset/pretrain"}}, // the job does not wait for this holder
		Warning: &view.Warning{Reason: "InvalidJob", Message: "mend this",
			ReportedAt: metav1.NewTime(time.Date(2025, 6, 1, 14, 0, 9, 0, time.UTC))},
	}
	want := `ml/jobset/eval is pending for 7m: no Workload yet

  asks      main: 1 pod x 8 gpu
  queue     gpu of ClusterQueue lab (priority 10)
  pods      0/8 ready or done
  told      InvalidJob at 2025-06-01 14:00:09 UTC: mend this
  next      muster kubectl describe -n ml jobset/eval
`
	var got bytes.Buffer
	if err := Explanation(&got, e); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("explanation differs (-want +got):\n%s", diff)
	}
}

// TestExplanationWhileNoOperatorRuns: a job without Workload waits for an operator, not for the jobs that hold quota.
func TestExplanationWhileNoOperatorRuns(t *testing.T) {
	job := pendingJob()
	job.Workload, job.Reason, job.Message = "", "", "no Workload yet: check that Muster's operator runs"
	e := &view.Explanation{
		Job: job, Line: &view.Line{ClusterQueue: "lab"},
		Quotas:  []view.Quota{{Flavor: "h100", Resource: "nvidia.com/gpu", Nominal: resource.MustParse("64")}},
		Holders: []view.Holder{{Namespace: "ml", Job: "jobset/pretrain"}},
	}
	var got bytes.Buffer
	if err := Explanation(&got, e); err != nil {
		t.Fatal(err)
	}
	if text := got.String(); strings.Contains(text, "held by") || strings.Contains(text, "quota ") {
		t.Errorf("explanation blames quota:\n%s", text)
	}
}

// TestPodProblemsOfAnEndedJob: they have a label of their own, though its pods are not counted any more.
func TestPodProblemsOfAnEndedJob(t *testing.T) {
	e := &view.Explanation{
		Job: pendingJob(),
		PodProblems: []view.PodProblem{{Pods: 2, Example: "eval-0", Reason: "Error", Message: "exit code 3"},
			{Pods: 1, Example: "eval-1", Reason: "OOMKilled"}},
	}
	e.Job.State = view.Failed
	const want = "\n  pods      2 like eval-0: Error: exit code 3\n            1 like eval-1: OOMKilled\n"
	var got bytes.Buffer
	if err := Explanation(&got, e); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.String(), want) {
		t.Errorf("explanation does not have %q:\n%s", want, got.String())
	}
}

func TestExplanationOfAJobWithAQueueThatIsNotForIt(t *testing.T) {
	for want, e := range map[string]*view.Explanation{
		"  queue     gpu: no LocalQueue of that name leads to a ClusterQueue in namespace ml; there are cpu, gpus\n": {
			QueuesThere: []string{"cpu", "gpus"}},
		"  queue     gpu: a ClusterQueue; nothing has waited for it in namespace ml yet\n": {
			QueuesThere: []string{"cpu", "gpu"}},
		"  queue     gpu of ClusterQueue lab (priority 10)\n            ClusterQueue lab accepts only jobs of namespaces with the labels team=prod, and ml has others\n": {
			Line:    &view.Line{ClusterQueue: "lab"},
			Accepts: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "prod"}}},
		"  queue     gpu of ClusterQueue lab (priority 10)\n            ClusterQueue lab has no namespaceSelector, so it accepts jobs of no namespace\n": {
			Line: &view.Line{ClusterQueue: "lab"}, Accepts: &metav1.LabelSelector{}},
		"  queue     gpu of ClusterQueue lab (priority 10)\n            it has quota only for cpu, nvidia.com/gpu\n": {
			Line: &view.Line{ClusterQueue: "lab"}, Covers: []corev1.ResourceName{"cpu", "nvidia.com/gpu"}},
	} {
		e.Job = pendingJob()
		var got bytes.Buffer
		if err := Explanation(&got, e); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got.String(), want) {
			t.Errorf("explanation does not have %q:\n%s", want, got.String())
		}
	}
}

// whyNotOfEval returns an explanation of the engine for the job of pendingJob.
func whyNotOfEval() *reason.Explanation {
	gpus := func(asked, free, capacity, missing string) []reason.Amount {
		return []reason.Amount{{Resource: "nvidia.com/gpu", Asked: resource.MustParse(asked), Free: resource.MustParse(free),
			Capacity: ptr.To(resource.MustParse(capacity)), Missing: resource.MustParse(missing)}}
	}
	holder := func(name string, gpus string) reason.Holder {
		return reason.Holder{Name: reason.Name{Namespace: "ml", Name: name}, ClusterQueue: "lab",
			Holds: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)}}
	}
	own, lent, leaving := holder("w-pretrain", "512"), holder("w-tune", "24"), holder("w-old", "8")
	own.NotPreemptable = "withinClusterQueue is Never"
	lent.ClusterQueue, lent.Preemptable, lent.Priority = "guests", true, -5
	leaving.Leaving = true
	return &reason.Explanation{
		State: reason.Waiting, Code: reason.WaitingForQuota, Since: time.Date(2025, 6, 1, 14, 2, 0, 0, time.UTC),
		ClusterQueue: "lab",
		Position:     2, Length: 9, Behind: &reason.Name{Namespace: "ml", Name: "w-first"},
		PodSets: []reason.PodSet{{Name: "workers", Flavors: []reason.FlavorVerdict{
			{Flavor: "h100", Fit: reason.FitsByPreemption, Borrows: true, Nearest: true, Amounts: gpus("64", "40", "576", "24"),
				WouldPreempt: []reason.Name{lent.Name}},
			{Flavor: "a100", Fit: reason.Refused, Message: "untolerated taint {reserved true NoSchedule <nil>} in flavor a100"},
			{Flavor: "v100", Fit: reason.TooLarge, Amounts: gpus("64", "8", "8", "56")},
			{Flavor: "t4", Fit: reason.Fits, Amounts: gpus("64", "80", "80", "0")},
			{Flavor: "l4", Fit: reason.FitsAfterEvicted, Amounts: gpus("64", "-8", "80", "72")},
		}}},
		Holders:       []reason.Holder{leaving, own, lent},
		WouldPreempt:  []reason.Victim{{Name: lent.Name, Cause: "InCohortReclamation"}},
		WouldFitAfter: []reason.Name{own.Name, leaving.Name},
	}
}

func TestExplanationByTheEngine(t *testing.T) {
	e := &view.Explanation{
		Job: pendingJob(),
		Asks: []view.Ask{{PodSet: "workers", Pods: 8,
			PerPod: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}}},
		Line:   &view.Line{ClusterQueue: "lab", Position: 2, Length: 9},
		WhyNot: whyNotOfEval(),
		Titles: map[string]string{"ml/w-pretrain": "ml/jobset/pretrain", "ml/w-tune": "ml/job/tune"},
		Unseen: []string{"limitranges"},
	}
	want := `ml/jobset/eval is pending for 7m: WaitingForQuota: 24 more needed

  asks      workers: 8 pods x 8 gpu
  queue     gpu of ClusterQueue lab (position 2 of 9, priority 10, since 2025-06-01 14:02:00 UTC)
  pods      0/8 ready or done
  behind    ml/workload/w-first, the head of the queue, which is StrictFIFO: no job may overtake it
  flavor    h100      40 of 576 gpu free, 24 more needed, borrowed quota included; fits by preemption of ml/job/tune  <- nearest
            a100      untolerated taint {reserved true NoSchedule <nil>} in flavor a100
            v100      more than it could ever give: 64 gpu asked, 8 at most
            t4        enough quota: 80 of 80 gpu free
            l4        0 of 80 gpu free, 72 more needed; fits once the evicted jobs have terminated
  held by   ml/workload/w-old  8 gpu (priority 0, is terminating)
            ml/jobset/pretrain  512 gpu (priority 0, cannot be preempted: withinClusterQueue is Never)
            ml/job/tune  24 gpu (priority -5, of ClusterQueue guests, may be preempted)
  would fit by preemption of ml/job/tune
  unseen    you may not list all limitranges: what they would add is missing here
  next      muster explain ml/workload/w-first
`
	var got bytes.Buffer
	if err := Explanation(&got, e); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("explanation differs (-want +got):\n%s", diff)
	}
}

func TestJobChanges(t *testing.T) {
	titles := func(jobs []view.Job) (titles []string) {
		for i := range jobs {
			titles = append(titles, jobs[i].Title()+" "+string(jobs[i].State))
		}
		return titles
	}
	job, changes := pendingJob(), JobChanges()
	steps := []struct {
		name string
		now  func() []view.Job
		want []string
	}{
		{"a new job", func() []view.Job { return []view.Job{job} }, []string{"jobset/eval Pending"}},
		{"only time passes", func() []view.Job { job.WaitSeconds = seconds(999); return []view.Job{job} }, nil},
		{"a new state", func() []view.Job { job.State = view.Running; return []view.Job{job} },
			[]string{"jobset/eval Running"}},
		{"a deleted job", func() []view.Job { return nil }, []string{"jobset/eval Deleted"}},
		{"no further change", func() []view.Job { return nil }, nil},
	}
	for _, step := range steps {
		if diff := cmp.Diff(step.want, titles(changes.Next(step.now()))); diff != "" {
			t.Errorf("%s: changes differ (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestScreen(t *testing.T) {
	size := func() (int, int) { return 10, 4 }
	tests := []struct {
		name   string
		colour bool
		draw   func(*Screen)
		want   string
	}{{
		name: "a second picture replaces the first",
		draw: func(s *Screen) { s.Draw([]string{"a", "b"}); s.Draw([]string{"c"}) },
		want: "a\nb\n\x1b[2A\x1b[Jc\n",
	}, {
		name: "a line is printed above the picture",
		draw: func(s *Screen) { s.Draw([]string{"a"}); s.Print("said") },
		want: "a\n\x1b[1A\x1b[Jsaid\na\n",
	}, {
		name: "a picture that is too wide and too high",
		draw: func(s *Screen) { s.Draw([]string{"0123456789", "0123456789+", "c", "d"}) },
		want: "0123456789\n012345678…\n… 2 more …\n",
	}, {
		name:   "states are coloured",
		colour: true,
		draw:   func(s *Screen) { s.Draw([]string{"x Failed y"}) },
		want:   "x \x1b[31mFailed\x1b[0m y\n",
	}, {
		name: "a picture that was left",
		draw: func(s *Screen) { s.Draw([]string{"a"}); s.Leave(); s.Print("b") },
		want: "a\nb\n",
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			test.draw(NewScreen(&out, size, test.colour))
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("screen differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNextCommandReopensAClosedQueue(t *testing.T) {
	job := view.Job{State: view.Pending, Queue: "gpu", Workload: "w", Reason: "OnHold",
		Message: "ClusterQueue lab is stopped"}
	want := "muster kubectl annotate clusterqueue lab muster.dev/closed-"
	if got := nextCommand(&view.Explanation{Job: job, Line: &view.Line{ClusterQueue: "lab", Closed: true}}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNextCommand(t *testing.T) {
	for name, test := range map[string]struct {
		job  view.Job
		want string
	}{
		"waiting": {
			view.Job{State: view.Pending, Queue: "gpu", Workload: "job-eval-1a2b3"}, "muster queues -n ml"},
		"stopped ClusterQueue": {
			view.Job{State: view.Pending, Queue: "gpu", Workload: "w", Reason: "OnHold", Message: "ClusterQueue lab is stopped"},
			`muster kubectl patch clusterqueue lab --type merge -p '{"spec": {"stopPolicy": "None"}}'`},
		"stopped LocalQueue": {
			view.Job{State: view.Pending, Queue: "gpu", Workload: "w", Reason: "OnHold", Message: "LocalQueue gpu is stopped"},
			`muster kubectl patch localqueue gpu -n ml --type merge -p '{"spec": {"stopPolicy": "None"}}'`},
		"not reconciled yet": {
			view.Job{State: view.Pending, Queue: "gpu"}, "muster kubectl describe -n ml job/eval"},
		"deactivated": {
			view.Job{State: view.Suspended, Reason: "Deactivated", Workload: "job-eval-1a2b3"},
			`muster kubectl patch kwl job-eval-1a2b3 -n ml --type merge -p '{"spec": {"active": true}}'`},
		"finished without pods": {
			view.Job{State: view.Failed, Queue: "gpu"}, "muster kubectl describe -n ml job/eval"},
		"suspended by a user": {
			view.Job{State: view.Suspended}, "muster kubectl describe -n ml job/eval"},
		"no ready pods": {
			view.Job{State: view.Starting, Queue: "gpu", Workload: "job-eval-1a2b3"}, "muster kubectl describe -n ml job/eval"},
		"running": {
			view.Job{State: view.Running, Queue: "gpu", Workload: "job-eval-1a2b3"},
			"muster kubectl logs -n ml job/eval --all-pods --prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			test.job.Namespace, test.job.Kind, test.job.Name = "ml", "Job", "eval"
			if got := nextCommand(&view.Explanation{Job: test.job, NoLogs: test.job.State.HasOutcome()}); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestNextCommandWithinANamespace: a user without rights beyond it cannot run `muster queues`, and a queue that does
// not exist cannot be described.
func TestNextCommandWithinANamespace(t *testing.T) {
	for want, line := range map[string]*view.Line{
		"muster kubectl describe localqueue gpu -n ml": {ClusterQueue: "lab"},
		"muster kubectl get localqueues -n ml":         nil,
	} {
		if got := nextCommand(&view.Explanation{Job: pendingJob(), Line: line,
			Unseen: []string{"workloads", "clusterqueues"}}); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestNextCommandListsTheQueuesThatExist: the ClusterQueue of the job does not, so those of its namespace may be none.
func TestNextCommandListsTheQueuesThatExist(t *testing.T) {
	job := pendingJob()
	job.Reason, job.Message = "Inadmissible", "ClusterQueue lab doesn't exist"
	if got, want := nextCommand(&view.Explanation{Job: job, Line: &view.Line{ClusterQueue: "lab", Missing: true}}),
		"muster queues"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
