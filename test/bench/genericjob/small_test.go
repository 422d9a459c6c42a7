//go:build bench

package genericjob

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
)

const (
	smallJobs = 1000
	smallPods = 8
	// beside is how many writes a job may cost beside its pods and Services.
	beside = 6
)

// jobOf is a GenericJob of so many replicas that run for a while on simulated machines.
func jobOf(namespace, name string, replicas int32, runs time.Duration) *tensorstack.GenericJob {
	return &tensorstack.GenericJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       tensorstack.GenericJobSpec{ReplicaSpecs: []tensorstack.ReplicaSpec{{Type: "worker", Replicas: ptr.To(replicas), Template: template(runs)}}},
	}
}

func template(runs time.Duration) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"muster.dev/sim-duration": runs.String()}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Tolerations:   []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}},
			NodeSelector:  map[string]string{"muster.dev/simulated": "true"},
			Containers:    []corev1.Container{{Name: "main", Image: "example.com/trainer", Command: []string{"train", "--rank=$(rank)"}}},
		},
	}
}

// TestSmallJobs: 1,000 jobs of 8 pods, from their creation to their ends.
func TestSmallJobs(t *testing.T) { lifeOfSmallJobs(t, "", false) }

// TestSmallJobsWithServices: the same, and each replica has a Service.
func TestSmallJobsWithServices(t *testing.T) { lifeOfSmallJobs(t, "", true) }

// TestSmallQueuedJobs: the same through a queue without limits.
func TestSmallQueuedJobs(t *testing.T) { lifeOfSmallJobs(t, "q", true) }

// lifeOfSmallJobs counts what the operator writes for the jobs: beside their pods, Services and Workloads, which are apart.
// What a Workload costs is the queue's: it is made, admitted, told that its pods are ready and that it is over, and let go.
func lifeOfSmallJobs(t *testing.T, queue string, services bool) {
	cluster := testcluster.Get(t)
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	namespace := cluster.Namespace(t)
	startOperator(t, cluster)
	if queue != "" {
		makeQueue(t, c, namespace, queue)
	}
	before, began := cluster.Writes(t), time.Now()
	jobs := max(1, int(smallJobs**scale))
	runToTheEnd(t, c, namespace, jobs, func(job *tensorstack.GenericJob) {
		if services {
			job.Spec.Service = &tensorstack.ServiceOption{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}
		}
		if queue != "" {
			job.Spec.Scheduler = &tensorstack.SchedulePolicy{T9kScheduler: &tensorstack.T9kScheduler{Queue: queue}}
		}
	})
	took := time.Since(began)
	settled(t, cluster)
	each := writesSince(t, cluster, before)
	each["events"] = eventsOf(t, c, namespace)
	var own, workloads float64
	for what, count := range each {
		switch {
		case strings.Contains(what, " workloads"):
			workloads += count
		case what != "POST pods" && what != "POST services":
			own += count
		}
	}
	n := float64(jobs)
	own += each["POST pods"] - n*smallPods
	if services {
		own += each["POST services"] - n*smallPods
	}
	what := fmt.Sprintf("%d jobs of %d pods", jobs, smallPods)
	if services {
		what += ", with Services"
	}
	if queue != "" {
		what += ", queued"
	}
	figure.Reach(t, what+": writes a job beside these", fmt.Sprintf("%.2f", own/n), fmt.Sprint(beside), own/n <= beside)
	if queue != "" {
		figure.Note("  beside them the queue's, of its Workload", fmt.Sprintf("%.2f", workloads/n))
	}
	for _, kind := range slices.Sorted(maps.Keys(each)) {
		figure.Note("  "+kind, fmt.Sprintf("%.3f", each[kind]/n))
	}
	figure.Note("  wall time", figure.Seconds(took))
}

// makeQueue makes a LocalQueue that leads to a ClusterQueue without limits.
func makeQueue(t *testing.T, c client.Client, namespace, name string) {
	t.Helper()
	for _, o := range []client.Object{
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: kueue.ClusterQueueSpec{NamespaceSelector: &metav1.LabelSelector{}}},
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(namespace)}},
	} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// runToTheEnd creates so many jobs and returns when all have succeeded.
func runToTheEnd(t *testing.T, c client.WithWatch, namespace string, jobs int, edit func(*tensorstack.GenericJob)) {
	t.Helper()
	watching, err := c.Watch(t.Context(), &tensorstack.GenericJobList{}, client.InNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	go func() {
		for i := range jobs {
			job := jobOf(namespace, fmt.Sprintf("job-%d", i), smallPods, time.Second)
			edit(job)
			if err := c.Create(t.Context(), job); err != nil {
				t.Errorf("creating a job: %v", err)
				return
			}
		}
	}()
	done := map[string]bool{}
	for event := range watching.ResultChan() {
		if job, ok := event.Object.(*tensorstack.GenericJob); ok && job.Status.Phase == tensorstack.JobPhaseSucceeded {
			done[job.Name] = true
		}
		if len(done) == jobs {
			return
		}
	}
	t.Fatalf("the watch ended when %d of %d jobs had succeeded", len(done), jobs)
}

// settled waits until the operator has said all: the end of a Workload comes after that of its job, and events after both.
// It waits for two minutes at most, which would be told with the figures: what goes on being written counts.
func settled(t *testing.T, cluster *testcluster.Cluster) {
	t.Helper()
	writes := func() map[string]float64 {
		out := cluster.Writes(t)
		maps.DeleteFunc(out, func(what string, _ float64) bool { return strings.HasSuffix(what, " nodes/status") }) // they never cease
		return out
	}
	last := writes()
	for range 40 {
		select {
		case <-time.After(3 * time.Second): // that nothing happens can only be seen by watching for a while
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		next := writes()
		if maps.Equal(next, last) {
			return
		}
		last = next
	}
	t.Log("something was written all the time")
}

// writesSince are those of the operator, by what they write.
func writesSince(t *testing.T, cluster *testcluster.Cluster, before map[string]float64) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for what, count := range cluster.Writes(t) {
		_, resource, _ := strings.Cut(what, " ")
		switch {
		case count == before[what], what == "POST genericjobs", resource == "pods/binding", resource == "pods/status", resource == "nodes/status":
			// the benchmark's, the scheduler's and the nodes'
		case resource == "events", strings.HasPrefix(resource, "endpoint"):
			// events are everybody's; and what belongs to Services is Kubernetes'
		case resource == "clusterqueues/status", resource == "localqueues/status":
			// of queues, a few for all jobs
		default:
			out[what] = count - before[what]
		}
	}
	return out
}

// eventsOf are those that tell of GenericJobs and their Workloads.
func eventsOf(t *testing.T, c client.Client, namespace string) float64 {
	t.Helper()
	var told eventsv1.EventList
	if err := c.List(t.Context(), &told, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var n float64
	for _, e := range told.Items {
		if e.Regarding.Kind == "GenericJob" || e.Regarding.Kind == "Workload" {
			n++
		}
	}
	return n
}
