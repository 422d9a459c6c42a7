package demo

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/examples"
)

func TestManifestsAreAppliedPrerequisitesFirst(t *testing.T) {
	object := &fstest.MapFile{Data: []byte(
		"# only words\n---\nkind: JobSet\nmetadata: {name: a}\n---\nkind: Job\nmetadata: {name: b}\n")}
	manifests, err := readManifests(fstest.MapFS{
		"jobset/b.yaml": object, "jobset/a.yaml": object, "apps/z.yaml": object, "prerequisites/q.yaml": object,
		"README.md": object,
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range manifests {
		got = append(got, m.path)
		if len(m.objects) != 2 {
			t.Errorf("%s has %d objects, want 2", m.path, len(m.objects))
		}
	}
	want := []string{"prerequisites/q.yaml", "apps/z.yaml", "jobset/a.yaml", "jobset/b.yaml"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order differs (-want +got):\n%s", diff)
	}
}

func TestInvalidManifestsAreRejected(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"no job":   {"prerequisites/q.yaml": {Data: []byte("kind: Namespace\nmetadata: {name: a}")}},
		"no name":  {"jobset/a.yaml": {Data: []byte("kind: JobSet")}},
		"not YAML": {"jobset/a.yaml": {Data: []byte("kind: [")}},
		"no files": {},
	} {
		if _, err := readManifests(files); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestBuiltInExamplesHaveJobsWithExpectedEnds(t *testing.T) {
	manifests, err := readManifests(examples.Files)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifests {
		jobs := 0
		for _, object := range m.objects {
			if _, isJob := expect(object); isJob {
				jobs++
			}
		}
		if m.prerequisite != (jobs == 0) {
			t.Errorf("%s has %d jobs", m.path, jobs)
		}
	}
}

func TestJudge(t *testing.T) {
	expected := []expectation{
		{"lab", "jobset/a", view.Completed},
		{"lab", "jobset/b", view.Completed},
		{"team", "workload/w", view.Admitted},
	}
	job := func(namespace, kind, name string, state view.State, reason string, startedAt int64) view.Job {
		j := view.Job{Namespace: namespace, Kind: kind, Name: name, State: state, Reason: reason}
		if startedAt > 0 {
			started := metav1.Unix(startedAt, 0)
			j.StartedAt = &started
		}
		return j
	}
	tests := []struct {
		name        string
		jobs        []view.Job
		open, wrong []string
		answered    bool
		order       []string
	}{{
		name: "a job that does not exist yet",
		jobs: []view.Job{job("lab", "JobSet", "a", view.Running, "", 1)},
		open: []string{"lab/jobset/a", "lab/jobset/b", "team/workload/w"}, order: []string{"lab/jobset/a"},
	}, {
		name: "a job that waits with a reason",
		jobs: []view.Job{
			job("lab", "JobSet", "a", view.Pending, "WaitingForQuota", 0), job("lab", "JobSet", "b", view.Running, "", 5),
			job("team", "Workload", "w", view.Admitted, "", 3),
		},
		open: []string{"lab/jobset/a", "lab/jobset/b"}, answered: true,
		order: []string{"team/workload/w", "lab/jobset/b", "lab/jobset/a"},
	}, {
		name: "a failed job",
		jobs: []view.Job{
			job("lab", "JobSet", "a", view.Failed, "FailedJobs", 1), job("lab", "JobSet", "b", view.Completed, "", 2),
			job("team", "Workload", "w", view.Admitted, "", 3),
		},
		wrong: []string{"lab/jobset/a is Failed, expected Completed: FailedJobs"}, answered: true,
		order: []string{"lab/jobset/a", "lab/jobset/b", "team/workload/w"},
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := judge(expected, append(test.jobs, job("lab", "JobSet", "a-stranger", view.Running, "", 1)))
			if diff := cmp.Diff(test.open, got.open); diff != "" {
				t.Errorf("open differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.wrong, got.wrong); diff != "" {
				t.Errorf("wrong differs (-want +got):\n%s", diff)
			}
			if got.answered != test.answered {
				t.Errorf("answered = %v, want %v", got.answered, test.answered)
			}
			var order []string
			for i := range got.jobs {
				order = append(order, got.jobs[i].FullTitle())
			}
			if diff := cmp.Diff(test.order, order); diff != "" {
				t.Errorf("order differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunReportsWhyItEndedBeforeTheJobs(t *testing.T) {
	tests := []struct {
		name    string
		script  string
		timeout time.Duration
		cancel  bool
		want    string
	}{
		{"the cluster does not start", "echo 'port 1 is taken'; exit 1", time.Minute, false,
			"the cluster stopped before it was ready (exit status 1): port 1 is taken"},
		{"timeout", "exec sleep 600", 300 * time.Millisecond, false,
			"wait for the cluster to be ready: not done after 300ms"},
		{"interrupt", "exec sleep 600", time.Minute, true, "interrupted before all jobs were done"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			binary := filepath.Join(t.TempDir(), "muster-local")
			if err := os.WriteFile(binary, []byte("#!/bin/sh\n"+test.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			options := Options{Binary: binary, Examples: examples.Files, Timeout: test.timeout, Out: io.Discard}
			if test.cancel {
				options.Out = writerFunc(func(text []byte) (int, error) {
					cancel() // when it reports the start
					return len(text), nil
				})
			}
			if err := Run(ctx, options); err == nil || err.Error() != test.want {
				t.Errorf("Run: %v, want %s", err, test.want)
			}
		})
	}
}

func TestOvertaken(t *testing.T) {
	job := func(name, queue string, priority int32, gpus string, created, started int64) view.Job {
		startedAt := metav1.Unix(started, 0)
		return view.Job{
			Namespace: "lab", Kind: "JobSet", Name: name, ClusterQueue: queue, Priority: priority,
			Requests:  corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)},
			CreatedAt: metav1.Unix(created, 0), StartedAt: &startedAt,
		}
	}
	urgent := job("urgent", "lab", 1000, "16", 10, 20)
	tests := []struct {
		name string
		with view.Job
		want []string
	}{
		{"admitted before the job was created", job("a", "lab", 0, "16", 1, 9), nil},
		{"admitted after the job", job("a", "lab", 0, "16", 1, 21), nil},
		{"admitted in another queue", job("a", "other", 0, "16", 1, 15), nil},
		{"a smaller job", job("a", "lab", 0, "8", 1, 15), nil},
		{"admitted while the job waited", job("a", "lab", 0, "16", 1, 15),
			[]string{"lab/jobset/urgent (priority 1000) waited while lab/jobset/a (priority 0) was served"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, overtaken([]view.Job{test.with, urgent})); diff != "" {
				t.Errorf("overtaken differs (-want +got):\n%s", diff)
			}
		})
	}
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(text []byte) (int, error) { return w(text) }

func TestPlainOutputPrintsEachChangeOnce(t *testing.T) {
	var out bytes.Buffer
	begin := time.Date(2025, 6, 1, 14, 0, 0, 0, time.UTC)
	console := newConsole(&out, begin)
	job := view.Job{Namespace: "lab", Kind: "JobSet", Name: "sweep-c", State: view.Pending, Reason: "WaitingForQuota",
		Message: "16 more needed", PodsAsked: 2}
	queue := view.Queue{
		Name: "lab", Pending: 1, Reserving: 2, Head: &view.Head{Namespace: "lab", Job: "jobset/sweep-c"},
		Quotas: []view.Quota{{Flavor: "simulated", Resource: corev1.ResourceName("nvidia.com/gpu"),
			Used: resource.MustParse("32"), Nominal: resource.MustParse("32")}},
	}
	show := func(after time.Duration) {
		t.Helper()
		if err := console.picture([]view.Queue{queue}, []view.Job{job}, begin.Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	console.say("applied jobset/a.yaml: jobset/sweep-c")
	show(1200 * time.Millisecond)
	show(2 * time.Second)
	job.State, job.Reason, job.Message, job.PodsReady = view.Running, "", "", 2
	queue.Pending, queue.Head = 0, nil
	show(10 * time.Second)

	want := strings.TrimPrefix(`
applied jobset/a.yaml: jobset/sweep-c
   1.2s  lab/jobset/sweep-c          Pending    0/2 pods  WaitingForQuota: 16 more needed
   1.2s  queue lab                   32 of 32 gpu used, 1 waiting, next is lab/jobset/sweep-c
  10.0s  lab/jobset/sweep-c          Running    2/2 pods
  10.0s  queue lab                   32 of 32 gpu used
`, "\n")
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("lines differ (-want +got):\n%s", diff)
	}
}

func TestSummary(t *testing.T) {
	wait, run := int64(13), int64(8)
	got := summary([]view.Job{
		{Namespace: "lab", Kind: "JobSet", Name: "urgent", Queue: "gpu", Priority: 1000, State: view.Completed,
			WaitSeconds: &wait, RunSeconds: &run},
		{Namespace: "team-a", Kind: "Workload", Name: "w", Queue: "q", State: view.Admitted, WaitSeconds: &wait,
			RunSeconds: &run, Message: "has no owner"},
	})
	want := strings.TrimPrefix(`
JOB                 QUEUE   PRIO   STATE       WAITED   RAN   REMARK
lab/jobset/urgent   gpu     1000   Completed   13s      8s
team-a/workload/w   q       0      Admitted    13s      -     has no owner`, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("summary differs (-want +got):\n%s", diff)
	}
}
