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
	// writesMost is the most writes of a job without the creations of its pods and Services. Through a queue the limit
	// is queuedWritesMost: as for JobSets, three more, because its Workload is created, finished and released.
	writesMost       = 6
	queuedWritesMost = 9
)

// jobOf returns a GenericJob of one pod for each replica, which run for the duration on simulated nodes.
func jobOf(namespace, name string, replicas int32, runs time.Duration) *tensorstack.GenericJob {
	return &tensorstack.GenericJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: tensorstack.GenericJobSpec{ReplicaSpecs: []tensorstack.ReplicaSpec{{Type: "worker",
			Replicas: ptr.To(replicas), Template: template(runs)}}},
	}
}

func template(runs time.Duration) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"muster.dev/sim-duration": runs.String()}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Tolerations:   []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}},
			NodeSelector:  map[string]string{"muster.dev/simulated": "true"},
			Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer",
				Command: []string{"train", "--rank=$(rank)"}}},
		},
	}
}

// TestSmallJobs counts the writes of 1,000 jobs of 8 pods from their creation until they have succeeded.
func TestSmallJobs(t *testing.T) { countSmallJobs(t, "", false) }

// TestSmallJobsWithServices counts the same when each replica has a Service.
func TestSmallJobsWithServices(t *testing.T) { countSmallJobs(t, "", true) }

// TestSmallQueuedJobs counts the same for jobs with Services in a queue without limits.
func TestSmallQueuedJobs(t *testing.T) { countSmallJobs(t, "q", true) }

// countSmallJobs counts the operator's writes for the jobs, without the creations of their pods and Services. The total
// is the operator's own count of its mutating requests, events and queue status included. The rows by kind are from the
// API server, which counts the requests of all clients.
func countSmallJobs(t *testing.T, queue string, services bool) {
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
	awaitNoWrites(t, o)
	wrote, before, began := o.Writes(t), cluster.Writes(t), time.Now()
	jobs := max(1, int(smallJobs**scale))
	runToCompletion(t, c, namespace, jobs, func(job *tensorstack.GenericJob) {
		if services {
			job.Spec.Service = &tensorstack.ServiceOption{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}
		}
		if queue != "" {
			job.Spec.Scheduler = &tensorstack.SchedulePolicy{T9kScheduler: &tensorstack.T9kScheduler{Queue: queue}}
		}
	})
	took := time.Since(began)
	awaitNoWrites(t, o)
	children, most := smallPods, writesMost
	what := fmt.Sprintf("%d jobs of %d pods", jobs, smallPods)
	if services {
		children += smallPods
		what += ", with Services"
	}
	if queue != "" {
		what, most = what+", queued", queuedWritesMost
	}
	n := float64(jobs)
	own := (o.Writes(t)-wrote)/n - float64(children)
	figure.Reach(t, what+": writes a job besides these", fmt.Sprintf("%.2f", own), fmt.Sprint(most), own <= float64(most))
	each := writesSince(t, cluster, before)
	each["events"] = eventsOf(t, c, namespace)
	for _, kind := range slices.Sorted(maps.Keys(each)) {
		figure.Note("  "+kind, fmt.Sprintf("%.3f", each[kind]/n))
	}
	figure.Note("  wall time", figure.Seconds(took))
}

// makeNamespace creates a namespace that is not deleted before the cluster ends: the deletion of thousands of objects
// would still be under way while the next test counts writes.
func makeNamespace(t *testing.T, c client.Client) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// makeQueue creates a ClusterQueue without limits, and a LocalQueue of it.
func makeQueue(t *testing.T, c client.Client, namespace, name string) {
	t.Helper()
	for _, o := range []client.Object{
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: namespace},
			Spec: kueue.ClusterQueueSpec{NamespaceSelector: &metav1.LabelSelector{}}},
		&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(namespace)}},
	} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// runToCompletion creates the number of jobs and returns when all have succeeded.
func runToCompletion(t *testing.T, c client.WithWatch, namespace string, jobs int, edit func(*tensorstack.GenericJob)) {
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

// awaitNoWrites waits until the operator has not written for five seconds: it finishes a Workload after its job, and
// records events after both. After two minutes of writes it logs that and returns, since all writes count.
func awaitNoWrites(t *testing.T, o *operator.Operator) {
	t.Helper()
	last := o.Writes(t)
	for range 24 {
		select {
		case <-time.After(5 * time.Second): // there is no event after the last write
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		next := o.Writes(t)
		if next == last {
			return
		}
		last = next
	}
	t.Log("the operator did not stop writing within two minutes")
}

// writesSince returns the numbers of writes since the count before, by verb and resource, without most of those that
// other clients make.
func writesSince(t *testing.T, cluster *testcluster.Cluster, before map[string]float64) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for what, count := range cluster.Writes(t) {
		_, resource, _ := strings.Cut(what, " ")
		switch {
		case count == before[what], what == "POST genericjobs", resource == "pods/binding", resource == "pods/status",
			resource == "nodes/status":
			// made by the benchmark, the scheduler and the nodes
		case resource == "events", strings.HasPrefix(resource, "endpoint"):
			// events of all clients, counted by eventsOf; and endpoints, written by Kubernetes for Services
		default:
			out[what] = count - before[what]
		}
	}
	return out
}

// eventsOf returns the number of events about GenericJobs and their Workloads.
func eventsOf(t *testing.T, c client.Client, namespace string) float64 {
	t.Helper()
	var events eventsv1.EventList
	if err := c.List(t.Context(), &events, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var n float64
	for _, e := range events.Items {
		if e.Regarding.Kind == "GenericJob" || e.Regarding.Kind == "Workload" {
			n++
		}
	}
	return n
}
