//go:build bench

package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
)

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{ExecNodes: 1, Operator: true})
}

const (
	mebibyte     = 1 << 20
	idleMost     = 700 * mebibyte
	operatorMost = 80 * mebibyte
	startMost    = 2 * time.Second
	// settle is the time after its start from which a cluster counts as idle.
	settle = 20 * time.Second
)

// TestIdleMemory measures the resident memory of all processes of `muster up` on an idle cluster, and of the operator
// alone.
func TestIdleMemory(t *testing.T) {
	cluster := testcluster.Get(t)
	select {
	case <-time.After(settle): // there is no event that reports idleness
	case <-t.Context().Done():
	}
	up := figure.ProcessOf(t, filepath.Join(cluster.Dir, "pid")).Resident(t)
	operator := figure.ProcessOf(t, filepath.Join(cluster.Dir, "operator.pid")).Resident(t)
	figure.Reach(t, "idle memory in all", figure.MiB(up+operator), figure.MiB(idleMost), up+operator <= idleMost)
	figure.Reach(t, "idle memory of the operator", figure.MiB(operator), figure.MiB(operatorMost),
		operator <= operatorMost)
}

// TestApplyToRunning measures the time from the creation of a JobSet of four workers until four processes run. The
// floor is the same for a Job of four pods that Muster does not manage. The first round is a warm-up and does not
// count.
func TestApplyToRunning(t *testing.T) {
	cluster := testcluster.Get(t)
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	namespace := cluster.Namespace(t)
	var withMuster, floor time.Duration
	const rounds = 4
	for round := range rounds {
		js := timeToRunning(t, c, jobSetOf(namespace, fmt.Sprintf("set-%d", round)))
		bare := timeToRunning(t, c, jobOf(namespace, fmt.Sprintf("bare-%d", round)))
		if round > 0 {
			withMuster += js / (rounds - 1)
			floor += bare / (rounds - 1)
		}
	}
	figure.Reach(t, "apply of a 4-worker JobSet to 4 running processes", figure.Seconds(withMuster),
		figure.Seconds(startMost), withMuster <= startMost)
	figure.Note("  the same as a bare Job, the floor", figure.Seconds(floor))
	figure.Note("  ratio", fmt.Sprintf("%.2f", float64(withMuster)/float64(floor)))
}

const workers = 4

func jobOf(namespace, name string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: batchv1.JobSpec{
			Parallelism: ptr.To[int32](workers), Completions: ptr.To[int32](workers),
			CompletionMode: ptr.To(batchv1.IndexedCompletion), BackoffLimit: ptr.To[int32](0),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy:                 corev1.RestartPolicyNever,
				TerminationGracePeriodSeconds: ptr.To[int64](0),
				Containers:                    []corev1.Container{{Name: "main", Image: "local", Command: []string{"sleep", "60"}}},
			}},
		},
	}
}

func jobSetOf(namespace, name string) *jobset.JobSet {
	return &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{
			Name: "workers", Replicas: 1, Template: batchv1.JobTemplateSpec{Spec: jobOf(namespace, name).Spec},
		}}},
	}
}

// timeToRunning creates the job and returns how long it takes until all its pods run. It then deletes the job and waits
// until its pods are gone, so that the next job has the machine to itself.
func timeToRunning(t *testing.T, c client.WithWatch, job client.Object) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pods, err := c.Watch(ctx, &corev1.PodList{}, client.InNamespace(job.GetNamespace()))
	if err != nil {
		t.Fatal(err)
	}
	defer pods.Stop()
	began := time.Now()
	if err := c.Create(ctx, job); err != nil {
		t.Fatal(err)
	}
	running := map[string]bool{}
	for event := range pods.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if ok && strings.HasPrefix(pod.Name, job.GetName()) && pod.Status.Phase == corev1.PodRunning {
			running[pod.Name] = true
		}
		if len(running) == workers {
			break
		}
	}
	if len(running) < workers {
		t.Fatalf("%s: %d of %d pods were running after a minute", job.GetName(), len(running), workers)
	}
	took := time.Since(began)
	if err := c.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	for gone := 0; gone < workers; {
		event, open := <-pods.ResultChan()
		if !open {
			t.Fatalf("%s: %d of %d pods were deleted within a minute", job.GetName(), gone, workers)
		}
		if event.Type == watch.Deleted {
			gone++
		}
	}
	return took
}
