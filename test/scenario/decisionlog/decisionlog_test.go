// Package decisionlog tests, on the embedded control plane, that what an operator decided can be decided again.
package decisionlog

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine/record"
	"github.com/musterhq/muster/internal/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{}) }

// patience bounds every wait, on a machine that is busy with other tests.
const patience = 2 * time.Minute

// TestTheLogOfAnOperatorReplays: admission, preemption and an end that gives quota back, with an operator that is killed
// and started again on the way, are decided again from the log alone.
func TestTheLogOfAnOperatorReplays(t *testing.T) {
	cluster := testcluster.Get(t)
	log := filepath.Join(t.TempDir(), "decisions.log")
	kill := startOperator(t, cluster, log)

	namespace := cluster.Namespace(t)
	create(t, cluster,
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "replayed"}},
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "replayed"}, Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			Preemption:        &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority},
			ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{corev1.ResourceCPU}, Flavors: []kueue.FlavorQuotas{{
				Name: "replayed", Resources: []kueue.ResourceQuota{{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse("2")}}}}}}}},
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "replayed"}},
		workload(namespace, "low", 0),
	)
	admitted(t, cluster, namespace, "low")
	create(t, cluster, workload(namespace, "high", 9))
	admitted(t, cluster, namespace, "high") // low was preempted for it

	kill(syscall.SIGKILL)
	kill = startOperator(t, cluster, log)
	if err := cluster.Client.Delete(t.Context(), workload(namespace, "high", 9)); err != nil {
		t.Fatal(err)
	}
	admitted(t, cluster, namespace, "low")
	kill(syscall.SIGTERM)

	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got, err := record.Replay(file)
	if err != nil || got.Difference != nil {
		t.Fatalf("the replay gives %+v with the difference %+v, %v", got, got.Difference, err)
	}
	if got.Runs != 2 || got.Decisions < 4 {
		t.Errorf("%d runs and %d decisions were replayed, want 2 and 4 at least", got.Runs, got.Decisions)
	}
}

// startOperator runs an operator with a decision log. The function that it returns ends it and waits for its end.
func startOperator(t *testing.T, cluster *testcluster.Cluster, log string) (end func(syscall.Signal)) {
	t.Helper()
	operator := exec.Command("../../../bin/muster-operator", "--kubeconfig", cluster.Kubeconfig, "--decision-log", log,
		"--leader-elect=false", "--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	output, err := os.CreateTemp(t.TempDir(), "operator")
	if err != nil {
		t.Fatal(err)
	}
	operator.Stdout, operator.Stderr = output, output
	if err := operator.Start(); err != nil {
		t.Fatalf("starting the operator (run make operator): %v", err)
	}
	ended := make(chan struct{})
	go func() { _ = operator.Wait(); close(ended) }()
	end = func(signal syscall.Signal) {
		_ = operator.Process.Signal(signal) // it may have ended before
		<-ended
	}
	t.Cleanup(func() {
		end(syscall.SIGKILL)
		if said, _ := os.ReadFile(output.Name()); t.Failed() {
			t.Logf("the operator said:\n%s", said)
		}
	})
	return end
}

func create(t *testing.T, cluster *testcluster.Cluster, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := cluster.Client.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

// workload has one pod of 2 CPUs, which is all that there is.
func workload(namespace, name string, priority int32) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: kueue.WorkloadSpec{QueueName: "q", Priority: ptr.To(priority), PodSets: []kueue.PodSet{{
			Name: "main", Count: 1,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
				Name: "main", Image: "example.com/x",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
			}}}},
		}}},
	}
}

// admitted waits until the Workload is.
func admitted(t *testing.T, cluster *testcluster.Cluster, namespace, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	watcher, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	changes, err := watcher.Watch(ctx, &kueue.WorkloadList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	last := "nothing"
	for {
		select {
		case <-ctx.Done():
			t.Fatalf("%s is not admitted: %s", name, last)
		case change := <-changes.ResultChan():
			w, ok := change.Object.(*kueue.Workload)
			if !ok || change.Type == watch.Deleted {
				continue
			}
			last = fmt.Sprint(w.Status.Conditions)
			if w.Status.Admission != nil && meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted) {
				return
			}
		}
	}
}
