package latticejob

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// small returns the manifest of a job with one pod in the queue q. container and resources are added to the container
// and the resources of its task.
func small(name, container, resources string) string {
	return `
apiVersion: lattice.dev/v1alpha1
kind: LatticeJob
metadata: {name: ` + name + `}
spec:
  queue: q
  tasks:
    t:
      workload:
        containers:
          main: {image: example.com/main:1, resources: {limits: {cpu: 100m, memory: 64Mi}}, ` + container + `}
        resources: {` + resources + `}
`
}

// TestJobsShareAVolume: one job creates a volume, others refer to it by its ID, and it remains when the first job is
// deleted.
func TestJobsShareAVolume(t *testing.T) {
	w := newWorld(t)
	w.queue("q", corev1.ResourcePods, 10)
	w.volume("shared", w.Namespace, "1Gi")
	const mounts = `volumes: {/data: {source: "${resources.data}"}}`
	first := w.job(small("first", mounts,
		"data: {type: volume, id: shared, params: {size: 1Gi, storageClass: "+w.Namespace+"}}"))
	w.job(small("second", mounts, "data: {type: volume, id: shared}"))
	w.job(small("third", mounts, "data: {type: volume, id: shared, params: {size: 1Gi, storageClass: "+w.Namespace+"}}"))
	w.UntilPods("all three pods have nodes and mount claim vol-shared", func(pods map[string]corev1.Pod) bool {
		for _, name := range []string{"first-t-0", "second-t-0", "third-t-0"} {
			if pod := pods[name]; pod.Spec.NodeName == "" ||
				pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "vol-shared" {
				return false
			}
		}
		return true
	})
	w.job(small("fourth", mounts, "data: {type: volume, id: shared, params: {size: 2Gi, storageClass: "+w.Namespace+"}}"))
	w.UntilLatticeJob("fourth", "says what the volume has and cannot have", func(job *lattice.LatticeJob) bool {
		return job.Status.Phase == lattice.Pending &&
			strings.HasPrefix(job.Status.Message, "Apply failed (will retry): apply PersistentVolumeClaim "+w.Namespace+
				"/vol-shared: the PersistentVolumeClaim vol-shared exists, and cannot be changed: its size is 1Gi, not 2Gi. Ask for what it has, or for another volume")
	})
	w.Delete(first)
	w.UntilPods("first-t-0 is deleted",
		func(pods map[string]corev1.Pod) bool { _, exists := pods["first-t-0"]; return !exists })
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "vol-shared", Namespace: w.Namespace}}
	w.Get(claim)
	if claim.DeletionTimestamp != nil {
		t.Error("claim vol-shared is deleted with the job that created it, want it to remain")
	}
	w.end("second-t-0")
	w.UntilPhase("second", lattice.Succeeded)
}

// TestAPendingJobMayChange: changing the spec of a pending job updates its objects. What the new spec no longer
// contains is removed from them.
func TestAPendingJobMayChange(t *testing.T) {
	w := newWorld(t)
	w.queue("q", corev1.ResourcePods, 1)
	w.Create(w.Workload("first", "q")) // it has no job, so it keeps its quota
	w.UntilWorkload("first", "is admitted", harness.Runs)
	second := w.job(small("second", "variables: {KEPT: one, REMOVED: one}", ""))
	w.UntilLatticeJob("second", "waits for quota",
		func(job *lattice.LatticeJob) bool { return strings.HasPrefix(job.Status.Message, "Waiting for quota") })
	untilVariables := func(what string, want map[string]string) {
		t.Helper()
		harness.UntilOne(w.World, &corev1.ConfigMapList{}, "second-t-main-env", what,
			func(cm *corev1.ConfigMap) bool { return maps.Equal(cm.Data, want) })
	}
	untilVariables("has both variables", map[string]string{"KEPT": "one", "REMOVED": "one"})
	w.Change(second, func() {
		task := second.Spec.Tasks["t"]
		main := task.Workload.Containers["main"]
		main.Variables = map[string]string{"KEPT": "two"}
		task.Workload.Containers["main"] = main
		second.Spec.Tasks["t"] = task
	})
	untilVariables("has only the variable KEPT", map[string]string{"KEPT": "two"})
	w.Report("first", kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded)
	if running := w.UntilPhase("second", lattice.Running); *running.Status.ObservedGeneration != running.Generation {
		t.Errorf("observedGeneration = %d, want %d", *running.Status.ObservedGeneration, running.Generation)
	}
	w.UntilPods("second-t-0 has a node",
		func(pods map[string]corev1.Pod) bool { return pods["second-t-0"].Spec.NodeName != "" })
}

// TestALabelMovesAPendingJobToAnotherQueue: the queue label of a pending job takes precedence over the queue of its
// spec.
func TestALabelMovesAPendingJobToAnotherQueue(t *testing.T) {
	w := newWorld(t)
	w.queue("q", corev1.ResourcePods, 1)
	job := w.job(strings.Replace(small("lost", "", ""), "queue: q", "queue: nowhere", 1))
	w.UntilLatticeJob("lost", "reports that there is no such queue", func(job *lattice.LatticeJob) bool {
		return strings.HasPrefix(job.Status.Message, "Queue nowhere is neither")
	})
	w.Change(job, func() { job.Labels = map[string]string{kueue.QueueLabel: "q"} })
	w.UntilPhase("lost", lattice.Running)
	w.UntilPods("lost-t-0 has a node",
		func(pods map[string]corev1.Pod) bool { return pods["lost-t-0"].Spec.NodeName != "" })
}

// TestAJobThatCannotBeCompiledFails: a job with an invalid template fails with the cause in its message and an event,
// and gets no VCJob.
func TestAJobThatCannotBeCompiledFails(t *testing.T) {
	w := newWorld(t)
	w.job(small("lost", `variables: {X: "${resources.nope.host}"}`, ""))
	job := w.UntilPhase("lost", lattice.Failed)
	const want = "Failed to compile job: compilation failed for task 't': template error: variable 'X': ${resources.nope.host}: there is no resource 'nope'"
	if job.Status.Message != want || job.Status.ObservedGeneration == nil || *job.Status.ObservedGeneration != 1 {
		t.Errorf("status = %+v, want the message %q and observedGeneration 1", job.Status, want)
	}
	w.UntilEvent("lost", "CompileFailed")
	if w.VCJob("lost") != nil {
		t.Error("a VCJob was created, want none")
	}
}

// TestANameOwnedByAnotherJobIsRejected: a job whose objects would have the names of another job's objects does not take
// these over: it stays pending and reports the name.
func TestANameOwnedByAnotherJobIsRejected(t *testing.T) {
	w := newWorld(t)
	w.queue("q", corev1.ResourcePods, 10)
	w.job(strings.Replace(small("a", "", ""), "    t:\n", "    b-c:\n", 1))
	w.UntilPhase("a", lattice.Succeeded)
	w.job(strings.Replace(small("a-b", "", ""), "    t:\n", "    c:\n", 1))
	w.UntilLatticeJob("a-b", "reports the name that it cannot use", func(job *lattice.LatticeJob) bool {
		return job.Status.Phase == lattice.Pending && strings.HasPrefix(job.Status.Message, "Apply failed (will retry): ") &&
			strings.Contains(job.Status.Message, "a-b-c")
	})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a-b-c", Namespace: w.Namespace}}
	w.Get(account)
	if len(account.OwnerReferences) != 1 || account.OwnerReferences[0].Name != "a" {
		t.Errorf("owners of ServiceAccount a-b-c = %v, want only job a", account.OwnerReferences)
	}
}

// TestSecretsAreNotLeaked: text that a template combines with a secret does not appear in ConfigMaps, events, statuses,
// VCJobs, pods, ServiceAccounts or logs of the operator, also if the template is invalid.
func TestSecretsAreNotLeaked(t *testing.T) {
	const planted = "hunter2-3f9c"
	w := newWorld(t)
	w.queue("q", corev1.ResourcePods, 10)
	w.serve("external-secrets.io", "v1", "ExternalSecret", "externalsecrets")
	const secret = "s: {type: secret, id: x, params: {provider: p}}"
	w.job(small("right", `variables: {DSN: "postgres://`+planted+`:${secret.s.k}@db"}, files: {/etc/dsn: {content: "`+
		planted+` ${secret.s.k}"}, /etc/key: {binaryContent: aHVudGVyMi0zZjlj}}`, secret))
	w.job(small("wrong", `variables: {DSN: "`+planted+` ${secret.nope.k}"}`, secret))
	w.job(small("binary", `files: {/etc/key: {binaryContent: "!`+planted+`"}}`, secret))
	w.UntilPhase("right", lattice.Succeeded)
	w.UntilPhase("wrong", lattice.Failed)
	w.UntilPhase("binary", lattice.Failed)
	w.UntilEvent("wrong", "CompileFailed")

	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &eventsv1.EventList{}, &volcano.JobList{},
		&corev1.PodList{}, &corev1.ServiceAccountList{}} {
		if err := w.Client.List(t.Context(), list, client.InNamespace(w.Namespace)); err != nil {
			t.Fatal(err)
		}
		w.expectNone(list, planted, "aHVudGVyMi0zZjlj")
	}
	var jobs lattice.LatticeJobList
	if err := w.Client.List(t.Context(), &jobs, client.InNamespace(w.Namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range jobs.Items {
		w.expectNone(jobs.Items[i].Status, planted)
	}
	logs := 0
	err := filepath.WalkDir(w.Cluster.Dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Base(path) != "operator.log" {
			return nil // the cluster may have removed the file in the meantime
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		logs++
		if strings.Contains(string(text), planted) {
			t.Errorf("%s contains %q", path, planted)
		}
		return nil
	})
	if err != nil || logs == 0 {
		t.Errorf("%d logs of the operator were read, want at least one: %v", logs, err)
	}
	var secrets corev1.SecretList
	if err := w.Client.List(t.Context(), &secrets, client.InNamespace(w.Namespace)); err != nil {
		t.Fatal(err)
	}
	if text, _ := json.Marshal(secrets.Items); !strings.Contains(string(text), "aHVudGVyMi0zZjlj") {
		t.Error("no Secret contains the binary file")
	}
}

// expectNone fails the test if the JSON of the object contains one of the texts.
func (w *world) expectNone(object any, texts ...string) {
	w.Helper()
	body, err := json.Marshal(object)
	if err != nil {
		w.Fatal(err)
	}
	for _, text := range texts {
		if strings.Contains(string(body), text) {
			w.Errorf("%T contains %q", object, text)
		}
	}
}
