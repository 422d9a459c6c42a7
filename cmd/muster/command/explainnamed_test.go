package command

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/cmd/muster/observe"
	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/testcluster"
)

// TestAJobThatDoesNotWaitIsExplainedWithoutTheOthers: the explanation is the same as with everything read, of which
// there may be very much.
func TestAJobThatDoesNotWaitIsExplainedWithoutTheOthers(t *testing.T) {
	cluster := testcluster.Get(t)
	namespace := cluster.Namespace(t)
	queueOf3(t, cluster, namespace)
	pendingWorkload(t, cluster, namespace, "other")
	runningJobSet(t, cluster, namespace, "runs")

	reader, err := observe.Open(t.Context(), cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	name, now := view.Name{Namespace: namespace, Kind: "job", Name: "runs"}, time.Now()
	explain := func(snapshot *view.Snapshot, err error) *view.Explanation {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		jobs := view.Jobs(snapshot, now)
		found := view.Find(jobs, name)
		if len(found) != 1 {
			t.Fatalf("%d jobs are called runs, want one", len(found))
		}
		return view.Explain(snapshot, jobs, found[0], now)
	}
	few, err := read(t.Context(), reader, name)
	want, got := explain(reader.SnapshotAll(t.Context(), namespace)), explain(few, err)
	if diff := cmp.Diff(want, got); diff != "" || got.Job.State != view.Running || got.Job.PodsReady != 1 ||
		len(got.Job.Makers) != 1 || len(got.Asks) != 1 || got.Line == nil {
		t.Errorf("state %s, %d pods ready; with everything read the explanation differs (-), or both lack something:\n%s",
			got.Job.State, got.Job.PodsReady, diff)
	}
	if len(few.Workloads) != 1 || len(few.ClusterQueues) != 1 || len(few.Namespaces) > 0 {
		t.Errorf("read %d Workloads, %d ClusterQueues and %d namespaces, want only those of the job", len(few.Workloads),
			len(few.ClusterQueues), len(few.Namespaces))
	}
	if all, err := read(t.Context(), reader, view.Name{Namespace: namespace, Name: "other"}); err != nil ||
		len(all.Workloads) < 3 {
		t.Errorf("for a job that waits: error %v; want all Workloads", err)
	}
}

// runningJobSet creates a JobSet with one running pod and a Workload that holds quota of queueOf3.
func runningJobSet(t *testing.T, cluster *testcluster.Cluster, namespace, name string) {
	t.Helper()
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	set := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
		Labels: map[string]string{kueue.QueueLabel: "queue"}}}
	set.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: "w", Replicas: 1,
		Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pod}}}}
	create := func(object client.Object) {
		t.Helper()
		if err := cluster.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	create(set)
	owned := []metav1.OwnerReference{*metav1.NewControllerRef(set, jobset.GroupVersion.WithKind("JobSet"))}

	nobody := "example.com/nobody" // the Job controller writes its status otherwise
	part := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-w-0", OwnerReferences: owned,
		Labels: map[string]string{jobset.JobSetNameKey: name}}, Spec: batchv1.JobSpec{Template: pod, ManagedBy: &nobody}}
	create(part)
	started, one := metav1.Now(), int32(1)
	part.Status = batchv1.JobStatus{Active: 1, Ready: &one, StartTime: &started}
	if err := cluster.Client.Status().Update(t.Context(), part); err != nil {
		t.Fatal(err)
	}

	var holder kueue.Workload
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "holder"},
		&holder); err != nil {
		t.Fatal(err)
	}
	of := workload(namespace, "jobset-"+name, "queue", 1)
	of.OwnerReferences, of.Labels = owned, map[string]string{kueue.JobUIDLabel: string(set.UID)}
	create(of)
	of.Status = holder.Status
	if err := cluster.Client.Status().Update(t.Context(), of); err != nil {
		t.Fatal(err)
	}
}
