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
	"github.com/musterhq/muster/test/bench/operator"
)

const (
	smallJobs = 1000
	smallPods = 8
	// beside is how many writes a job may cost beside its pods and Services, and besideQueued how many one that goes through
	// a queue may: its Workload is made, told of its end and let go, as a JobSet's is, which may cost as many more.
	beside       = 6
	besideQueued = 9
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

// lifeOfSmallJobs counts what the operator writes for the jobs, beside their pods and Services: all that it writes, events
// and what it says of queues included, as it counts its requests itself. Of what kinds these are the API server tells, who
// counts everybody's.
func lifeOfSmallJobs(t *testing.T, queue string, services bool) {
	cluster := testcluster.Get(t)
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	namespace := makeNamespace(t, c)
	if queue != "" {
		makeQueue(t, c, namespace, queue)
	}
	o := startOperator(t, cluster)
	settled(t, o)
	wrote, before, began := o.Writes(t), cluster.Writes(t), time.Now()
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
	settled(t, o)
	children, most := smallPods, beside
	what := fmt.Sprintf("%d jobs of %d pods", jobs, smallPods)
	if services {
		children += smallPods
		what += ", with Services"
	}
	if queue != "" {
		what, most = what+", queued", besideQueued
	}
	n := float64(jobs)
	own := (o.Writes(t)-wrote)/n - float64(children)
	figure.Reach(t, what+": writes a job beside these", fmt.Sprintf("%.2f", own), fmt.Sprint(most), own <= float64(most))
	each := writesSince(t, cluster, before)
	each["events"] = eventsOf(t, c, namespace)
	for _, kind := range slices.Sorted(maps.Keys(each)) {
		figure.Note("  "+kind, fmt.Sprintf("%.3f", each[kind]/n))
	}
	figure.Note("  wall time", figure.Seconds(took))
}

// makeNamespace makes one that nobody deletes before the cluster ends: that of thousands of objects would be written
// while the next test counts.
func makeNamespace(t *testing.T, c client.Client) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
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
func settled(t *testing.T, o *operator.Operator) {
	t.Helper()
	last := o.Writes(t)
	for range 24 {
		select {
		case <-time.After(5 * time.Second): // that nothing happens can only be seen by watching for a while
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		next := o.Writes(t)
		if next == last {
			return
		}
		last = next
	}
	t.Log("something was written all the time")
}

// writesSince are those that may be the operator's, by what they write.
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
