package batchjob

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

// keys are few, so that what an admission adds often has a key of the template.
var keys = rapid.SampledFrom([]string{"a", "b", "kueue.x-k8s.io/podset", "muster.dev/x"})

func anyMap(t *rapid.T, label string) map[string]string {
	return orNil(rapid.MapOfN(keys, rapid.StringMatching(`[a-z"\\é]{0,3}`), 0, 4).Draw(t, label))
}

func anyTolerations(t *rapid.T, label string) []corev1.Toleration {
	var out []corev1.Toleration
	for range rapid.IntRange(0, 3).Draw(t, label) {
		toleration := corev1.Toleration{Key: keys.Draw(t, "key"), Operator: corev1.TolerationOpExists}
		if rapid.Bool().Draw(t, "seconds") {
			toleration.TolerationSeconds = ptr.To(rapid.Int64Range(0, 3).Draw(t, "toleration seconds"))
		}
		out = append(out, toleration)
	}
	return out
}

func anyJob(t *rapid.T) *batchv1.Job {
	b := newJob(rapid.Int32Range(0, 9).Draw(t, "pods"))
	switch rapid.IntRange(0, 3).Draw(t, "completions") {
	case 0:
		b.withoutCompletions()
	case 1:
		b.completions(rapid.Int32Range(0, 9).Draw(t, "completions"))
	case 2:
		b.indexed()
		b.annotated(kueue.JobCompletionsEqualParallelismAnnotation, "true")
	}
	b.job.Status.Succeeded = rapid.Int32Range(0, 9).Draw(t, "succeeded")
	if rapid.Bool().Draw(t, "annotated") {
		b.annotated("mine", "x")
	}
	template := &b.job.Spec.Template
	template.Labels, template.Annotations = anyMap(t, "labels"), anyMap(t, "annotations")
	template.Spec.NodeSelector, template.Spec.Tolerations = anyMap(t, "node selector"), anyTolerations(t, "tolerations")
	template.Spec.Affinity, template.Spec.SchedulingGates = anyAffinity(t), anyGates(t)
	return b.job
}

func anyAffinity(t *rapid.T) *corev1.Affinity {
	var out *corev1.Affinity
	how := rapid.IntRange(0, 4).Draw(t, "affinity")
	if how > 0 {
		out = &corev1.Affinity{}
	}
	if how > 1 {
		out.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "rack"}}}
	}
	if how > 2 {
		out.NodeAffinity = &corev1.NodeAffinity{}
	}
	if how > 3 {
		out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
		for range rapid.IntRange(1, 2).Draw(t, "terms") {
			out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = append(
				out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, corev1.NodeSelectorTerm{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: keys.Draw(t, "key"),
						Operator: corev1.NodeSelectorOpExists}}})
		}
	}
	return out
}

func anyGates(t *rapid.T) []corev1.PodSchedulingGate {
	return rapid.SampledFrom([][]corev1.PodSchedulingGate{nil, {{Name: "mine"}},
		{{Name: kueue.TopologyGate}}}).Draw(t, "gates")
}

// anyPlaces returns places on two nodes that fit four pods each: the pods fill the nodes, share one, or are gated.
func anyPlaces(t *rapid.T, count int32) (podspec.Places, jobs.Nodes) {
	var places podspec.Places
	nodes := jobs.Nodes{}
	for _, name := range []string{"a", "b"} {
		nodes[name] = &corev1.Node{
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("4")}}}
		if n := min(rapid.Int32Range(0, 4).Draw(t, "places on "+name), count-places.Count()); n > 0 {
			places = append(places, podspec.Place{Domain: map[string]string{corev1.LabelHostname: name}, Count: n})
		}
	}
	return places, nodes
}

// anyGrant returns a grant of at least one pod: with none no Job is started that has pods.
func anyGrant(t *rapid.T) jobs.PodSetAdmission {
	count := rapid.Int32Range(1, 9).Draw(t, "granted")
	places, nodes := anyPlaces(t, count)
	return jobs.PodSetAdmission{Count: count, Places: places, Nodes: nodes, Injection: podspec.Injection{
		Labels: anyMap(t, "added labels"), Annotations: anyMap(t, "added annotations"),
		NodeSelector: anyMap(t, "added node selector"), Tolerations: anyTolerations(t, "added tolerations"),
	}}
}

// asStored returns the Job as the API server would store it.
func asStored(t *rapid.T, job *batchv1.Job) string {
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestStopRestoresTheJob: after a stop, the Job is as its user created it, byte for byte, however often it was started,
// and by whichever operator.
func TestStopRestoresTheJob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job := anyJob(t)
		want := asStored(t, job)
		running := job
		for range rapid.IntRange(1, 3).Draw(t, "starts without a stop between them") {
			granted := anyGrant(t)
			running = started(running, granted, podspec.Agent{})
			if *running.Spec.Suspend {
				t.Fatal("the started Job is suspended")
			}
			if jobs.PodsLeft(running) > granted.Count {
				t.Fatalf("%d pods run, and %d were granted", jobs.PodsLeft(running), granted.Count)
			}
			for key, value := range granted.NodeSelector {
				if running.Spec.Template.Spec.NodeSelector[key] != value {
					t.Fatalf("the node selector %s is missing", key)
				}
			}
		}
		// The Job as another operator reads it.
		var read batchv1.Job
		if err := json.Unmarshal([]byte(asStored(t, running)), &read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(describe(job, jobs.Facts{}), describe(&read, jobs.Facts{}), cmp.FilterPath(func(p cmp.Path) bool {
			return p.String() == "Running"
		}, cmp.Ignore())); diff != "" {
			t.Fatalf("the description differs once the Job runs (-before +running):\n%s", diff)
		}
		read.Spec.Suspend = ptr.To(true)
		stopped := restored(&read)
		if diff := cmp.Diff(want, asStored(t, stopped)); diff != "" {
			t.Fatalf("the stopped Job differs (-before +after):\n%s", diff)
		}
	})
}

// TestAPartlyAdmittedJobStaysWithoutPods: a user who lets a Job run no pods has it so after a stop, too. Its
// completions cannot be restored without parallelism.
func TestAPartlyAdmittedJobStaysWithoutPods(t *testing.T) {
	job := newJob(10).indexed().annotated(kueue.JobMinParallelismAnnotation,
		"2").annotated(kueue.JobCompletionsEqualParallelismAnnotation, "true")
	running := job.started(grant(4))
	running.job.Spec.Parallelism = ptr.To[int32](0)
	if d := describe(running.job, jobs.Facts{}); d.Mistake != nil {
		t.Errorf("the Job is reported: %s", d.Mistake.Message)
	}
	after := restored(running.job)
	if *after.Spec.Parallelism != 0 || *after.Spec.Completions != 4 {
		t.Errorf("restored: parallelism %d, completions %d, want 0, 4", *after.Spec.Parallelism, *after.Spec.Completions)
	}
}

func TestInvalidAnnotationIsRemovedAndIgnored(t *testing.T) {
	for _, text := range []string{"", "{", `{"parallelism": "many"}`, "[]"} {
		job := newJob(2).annotated(muster.BeforeAdmissionAnnotation, text).job
		if diff := cmp.Diff(newJob(2).job.Spec, restored(job).Spec); diff != "" {
			t.Errorf("annotation %q: spec (-want +got):\n%s", text, diff)
		}
		if hasStarted(restored(job)) {
			t.Errorf("annotation %q was not removed", text)
		}
	}
}

// TestCompletionsStayOnceAnIndexIsDone: synced completions must not become fewer than the indexes that are done.
func TestCompletionsStayOnceAnIndexIsDone(t *testing.T) {
	synced := func(done string) builder {
		return newJob(10).indexed().annotated(kueue.JobCompletionsEqualParallelismAnnotation, "true").completed(done)
	}
	for name, tc := range map[string]struct {
		job                      builder
		granted                  int32
		parallelism, completions int32
	}{
		"no index done":                     {synced(""), 3, 3, 3},
		"indexes done before a stop":        {synced("0-7"), 1, 1, 10},
		"as many indexes left as granted":   {synced("0-7"), 2, 10, 10},
		"index done with fewer completions": {synced("").started(grant(5)).completed("0"), 2, 2, 5},
	} {
		t.Run(name, func(t *testing.T) {
			out := started(tc.job.job, grant(tc.granted), podspec.Agent{})
			if *out.Spec.Parallelism != tc.parallelism || *out.Spec.Completions != tc.completions {
				t.Errorf("parallelism %d, completions %d, want %d, %d", *out.Spec.Parallelism, *out.Spec.Completions,
					tc.parallelism, tc.completions)
			}
			if after := restored(out); *after.Spec.Parallelism != 10 || *after.Spec.Completions != 10 {
				t.Errorf("restored: parallelism %d, completions %d, want 10, 10", *after.Spec.Parallelism, *after.Spec.Completions)
			}
		})
	}
}

// TestPodsThatReportAreToldWhere: only those that got the volume when the Job was created. It is forgotten when the Job
// is held again, and a new authority changes no Job that runs.
func TestPodsThatReportAreToldWhere(t *testing.T) {
	agent := podspec.Agent{Server: "muster.svc:9444", CA: "pem"}
	reports := newJob(2)
	reports.job.Spec.Template.Annotations = map[string]string{"own": "kept"}
	reports.job.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "muster-progress"}}
	running := started(reports.job, grant(2), agent)
	want := map[string]string{"own": "kept", "muster.dev/progress-authority": "pem",
		"muster.dev/progress-url": "https://muster.svc:9444" +
			"/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/" + reports.job.Name + "/status"}
	if diff := cmp.Diff(want, running.Spec.Template.Annotations); diff != "" {
		t.Errorf("the annotations of the pods (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"own": "kept"}, restored(running).Spec.Template.Annotations); diff != "" {
		t.Errorf("the annotations once it is held again (-want +got):\n%s", diff)
	}
	for what, job := range map[string]*batchv1.Job{
		"without the volume":   started(newJob(2).job, grant(2), agent),
		"without a server":     started(reports.job, grant(2), podspec.Agent{}),
		"without an authority": started(reports.job, grant(2), podspec.Agent{Server: agent.Server}),
	} {
		if got, told := job.Spec.Template.Annotations["muster.dev/progress-url"]; told {
			t.Errorf("%s its pods are told to report to %q", what, got)
		}
	}
	seen := jobs.Seen[*batchv1.Job]{Job: builder{running}.running(2).job}
	seen.Facts.Agent = podspec.Agent{Server: agent.Server, CA: "renewed"}
	seen.Admission = jobs.Admission{Grant: jobs.Admitted,
		PodSets: map[string]jobs.PodSetAdmission{string(podSet): grant(2)}}
	for _, write := range plan(seen).Writes {
		t.Errorf("with a new authority the Job that runs is written: %v", write)
	}
}
