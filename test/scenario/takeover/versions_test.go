package takeover

import (
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/bench/operator"
	"github.com/musterhq/muster/test/scenario/harness"
)

// `go test ./test/scenario/takeover -run Versions -other=PATH` takes an operator that was built from an earlier commit,
// say. Without it the other one is the present source, linked as another version.
var other = flag.String("other", "", "an operator of another version, which is rolled over by the present one and rolls over it")

// otherVersion is an operator of another version.
func otherVersion(t *testing.T) string {
	t.Helper()
	if *other != "" {
		return *other
	}
	const version = "0.0.0-other"
	path := filepath.Join(t.TempDir(), "muster-operator")
	if out, err := exec.Command("go", "build", "-ldflags", "-s -w -X main.version="+version, "-o", path,
		"github.com/musterhq/muster/cmd/muster-operator").CombinedOutput(); err != nil {
		t.Fatalf("building the other version: %v: %s", err, out)
	}
	for binary, isOther := range map[string]bool{path: true, present(): false} {
		said, err := exec.Command(binary, "--version").Output()
		if err != nil || (strings.TrimSpace(string(said)) == version) != isOther {
			t.Fatalf("%s says that it is version %q, %v", binary, said, err)
		}
	}
	return path
}

// TestVersionsOverlapInAnUpdateAndItsRollback: two operators of one version are replaced by two of another as a
// Deployment does it, one after the other and each once the one that comes is ready, so that both versions live at once
// and elect who leads; and then back. Short jobs come and go through it, one after the other, beside others that keep
// what the first version gave them until the last is theirs to end.
func TestVersionsOverlapInAnUpdateAndItsRollback(t *testing.T) {
	const short = 16
	older := otherVersion(t)
	w := harness.New(t)
	w.Queue("q", kueue.ResourceFlavorSpec{}, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("5")})
	seen := follow(w)
	operators := []*operator.Operator{version(w, older), version(w, older)}
	awaitLeader(w, "")
	names := lasting(w)
	before := standing(w, names)
	want := map[string]int{"job": 1, "jobset-workers-0": 2, "training": 1}
	for i := range short {
		job := w.Job(fmt.Sprintf("short-%d", i), "q", 1)
		simulate(&job.Spec.Template, "300ms")
		w.Create(job)
		want[job.Name] = 1
	}

	done := 0
	for _, update := range []struct{ what, binary string }{{"update", present()}, {"rollback", older}} {
		for i := range operators {
			done += 3
			untilDone(w, done)
			next := version(w, update.binary)
			next.AwaitReady(t)
			operators[i].End(syscall.SIGTERM)
			operators[i] = next
			awaitLeader(w, "")
		}
		last := w.Job("after-"+update.what, "q", 1) // which these alone decide on
		simulate(&last.Spec.Template, "300ms")
		w.Create(last)
		want[last.Name] = 1
		w.UntilWorkloadOf(last.Name, "has finished", finished)
		if diff := gocmp.Diff(before, standing(w, names)); diff != "" {
			t.Errorf("after the %s (-before +after):\n%s", update.what, diff)
		}
	}

	for _, name := range names {
		for _, pod := range podsOf(w, name) {
			w.EndPod(pod, 0)
		}
	}
	w.UntilWorkloadOf("jobset", "has finished", finished)
	w.UntilWorkloadOf("training", "has finished", finished)
	untilDone(w, short+2+1+2)
	seen.expect(w, want, 3+1)
}

// version runs an operator of the binary, one of several.
func version(w *harness.World, binary string) *operator.Operator {
	w.Helper()
	return operator.Start(w.T, binary, w.Cluster, "--leader-elect=true")
}

// lasting makes jobs of several APIs that run until the test ends their pods, waits until they do, and gives their
// names.
func lasting(w *harness.World) []string {
	w.Helper()
	job := w.Job("job", "q", 1)
	simulate(&job.Spec.Template, "24h")
	set := &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "jobset", Labels: job.Labels},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{Name: "workers",
			Replicas: 1, Template: batchv1.JobTemplateSpec{
				Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](2), Completions: ptr.To[int32](2),
					Template: *job.Spec.Template.DeepCopy()}}}}},
	}
	training := &breezeml.TrainingJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "training", Labels: job.Labels},
		Spec: breezeml.TrainingJobSpec{MinSize: ptr.To[int32](1), MaxSize: ptr.To[int32](1),
			ReplicaSpecs: breezeml.ReplicaSpec{Template: *job.Spec.Template.DeepCopy()}},
	}
	w.Create(job, set, training)
	names := []string{"job", "jobset", "training"}
	for _, name := range names {
		w.UntilWorkloadOf(name, "has all its pods ready", func(o *kueue.Workload) bool {
			return harness.Runs(o) && harness.Is(o, kueue.WorkloadPodsReady, metav1.ConditionTrue, kueue.WorkloadStarted)
		})
	}
	return names
}

// kept is what must stay of a job while versions change: who its Workload is, what that has come to, and its pods by
// name.
type kept struct {
	UID    types.UID
	Status kueue.WorkloadStatus
	Pods   map[string]types.UID
}

// standing is what there is now of the jobs of these names.
func standing(w *harness.World, names []string) map[string]kept {
	w.Helper()
	out := map[string]kept{}
	for _, name := range names {
		o := w.UntilWorkloadOf(name, "is there", func(*kueue.Workload) bool { return true })
		out[name] = kept{UID: o.UID, Status: o.Status, Pods: map[string]types.UID{}}
		for _, pod := range podsOf(w, name) {
			out[name].Pods[pod.Name] = pod.UID
		}
	}
	return out
}

// podsOf are those of the job, or of its Jobs.
func podsOf(w *harness.World, name string) []corev1.Pod {
	w.Helper()
	var list corev1.PodList
	if err := w.Client.List(w.Context(), &list, client.InNamespace(w.Namespace)); err != nil {
		w.Fatal(err)
	}
	var out []corev1.Pod
	for _, pod := range list.Items {
		if by := metav1.GetControllerOf(&pod).Name; by == name || by == name+"-workers-0" {
			out = append(out, pod)
		}
	}
	return out
}

func finished(o *kueue.Workload) bool {
	return harness.Is(o, kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded)
}
