//go:build bench

package genericjob

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// TestSmallJobs: 1,000 jobs of 8 pods, without a queue, from their creation to their ends.
func TestSmallJobs(t *testing.T) {
	cluster := testcluster.Get(t)
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	namespace := cluster.Namespace(t)
	startOperator(t, cluster)
	jobs := max(1, int(smallJobs**scale))
	before := cluster.Writes(t)
	watching, err := c.Watch(t.Context(), &tensorstack.GenericJobList{}, client.InNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	began := time.Now()
	go func() {
		for i := range jobs {
			if err := c.Create(t.Context(), jobOf(namespace, fmt.Sprintf("job-%d", i), smallPods, time.Second)); err != nil {
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
			break
		}
	}
	took := time.Since(began)
	var told eventsv1.EventList
	if err := c.List(t.Context(), &told, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	events := 0
	for _, e := range told.Items {
		if e.Regarding.Kind == "GenericJob" {
			events++
		}
	}
	var statuses, pods, others float64
	for what, count := range cluster.Writes(t) {
		wrote := count - before[what]
		switch {
		case strings.HasSuffix(what, " genericjobs/status"):
			statuses += wrote
		case what == "POST pods":
			pods += wrote
		case what == "POST genericjobs", strings.HasSuffix(what, " pods/binding"), strings.HasSuffix(what, " pods/status"),
			strings.HasSuffix(what, " events"), strings.HasSuffix(what, " nodes/status"): // not ours, or counted above
		default:
			others += wrote
		}
	}
	n := float64(jobs)
	each := (pods+statuses+others+float64(events))/n - smallPods
	figure.Reach(t, fmt.Sprintf("writes a job of %d pods beside them, %d jobs", smallPods, jobs), fmt.Sprintf("%.2f", each), fmt.Sprint(beside), each <= beside)
	figure.Note("  of them status, events, pods beyond one a replica, others",
		fmt.Sprintf("%.2f, %.2f, %.2f, %.2f", statuses/n, float64(events)/n, pods/n-smallPods, others/n))
	figure.Note("  wall time", figure.Seconds(took))
}
