//go:build peers

package peers

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
)

// contender schedules VCJobs on a cluster of its own.
type contender struct {
	name    string
	cluster *testcluster.Cluster
	client  client.WithWatch
	// processes are those whose CPU time counts: the control plane and the contender's own.
	processes []figure.Process
	// adapt changes a VCJob to one that this contender schedules.
	adapt func(*volcano.Job)
	// prepare makes what the contender needs in the namespace of a load.
	prepare func(t *testing.T, namespace string)
}

// creators is how many clients create jobs at the same time.
const creators = 16

// start starts a cluster with the arguments in addition to those that all contenders share.
func start(t *testing.T, name string, arguments ...string) *contender {
	t.Helper()
	arguments = append([]string{"up", "--ephemeral", "--nodes", "0", "--sim-nodes", fmt.Sprint(nodes), "--sim-gpus",
		fmt.Sprint(gpusOfNode)}, arguments...)
	kubeconfig := testcluster.Another(t, "../../../bin/muster-local", arguments...)
	restConfig, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	restConfig.QPS = -1
	c, err := client.NewWithWatch(restConfig, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(kubeconfig)
	return &contender{
		name:      name,
		cluster:   &testcluster.Cluster{Config: restConfig, Client: c, Kubeconfig: kubeconfig, Dir: dir},
		client:    c,
		processes: []figure.Process{figure.ProcessOf(t, filepath.Join(dir, "pid"))},
		adapt:     func(*volcano.Job) {},
		prepare:   func(*testing.T, string) {},
	}
}

// cpu returns the CPU time that the contender has used so far.
func (c *contender) cpu(t *testing.T) (sum time.Duration) {
	t.Helper()
	for _, p := range c.processes {
		sum += p.CPU(t)
	}
	return sum
}

// play creates the jobs of the load, waits until all their pods are bound, and removes them. It returns the time from
// the first creation to the last binding, and the CPU time used in it.
func (c *contender) play(t *testing.T, l load) (wall, used time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	namespace := c.cluster.Namespace(t)
	c.prepare(t, namespace)
	before, began := c.cpu(t), time.Now()
	var creating errgroup.Group
	for worker := range creators {
		creating.Go(func() error {
			for i := worker; i < l.jobs; i += creators {
				job := gang(namespace, fmt.Sprintf("job-%d", i), int32(l.pods))
				c.adapt(job)
				if err := c.client.Create(ctx, job); err != nil {
					return fmt.Errorf("creating %s: %w", job.Name, err)
				}
			}
			return nil
		})
	}
	bound := c.awaitBound(ctx, namespace, l.jobs*l.pods)
	wall, used = time.Since(began), c.cpu(t)-before
	if err := creating.Wait(); err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	if bound != nil {
		t.Fatalf("%s: %v", c.name, bound)
	}
	c.clear(ctx, t, namespace)
	return wall, used
}

// gang returns a VCJob of pods with one GPU each, all of which must run.
func gang(namespace, name string, pods int32) *volcano.Job {
	one := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	return &volcano.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: volcano.JobSpec{MinAvailable: pods, Tasks: []volcano.TaskSpec{{
			Name: "main", Replicas: pods,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"muster.dev/sim-duration": "24h"}},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](0),
					NodeSelector: map[string]string{simulated: "true"},
					Tolerations:  []corev1.Toleration{{Key: simulated, Operator: corev1.TolerationOpExists}},
					Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer",
						Resources: corev1.ResourceRequirements{Requests: one, Limits: one}}},
				},
			},
		}}},
	}
}

const simulated = "muster.dev/simulated"

// awaitBound returns when the number of pods in the namespace is bound. If the API server ends the watch, as it does
// when the watch falls behind, it starts again with a list.
func (c *contender) awaitBound(ctx context.Context, namespace string, pods int) error {
	bound := map[string]bool{}
	for {
		var list corev1.PodList
		if err := c.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("%d of %d pods were bound: %w", len(bound), pods, err)
		}
		for i := range list.Items {
			note(bound, &list.Items[i])
		}
		if len(bound) >= pods {
			return nil
		}
		events, err := c.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace),
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
		if err != nil {
			return fmt.Errorf("%d of %d pods were bound: %w", len(bound), pods, err)
		}
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				note(bound, pod)
			}
			if len(bound) >= pods {
				events.Stop()
				return nil
			}
		}
	}
}

// note adds the pod if it is bound.
func note(bound map[string]bool, pod *corev1.Pod) {
	if pod.Spec.NodeName != "" {
		bound[pod.Name] = true
	}
}

// clear deletes the jobs and returns when neither jobs nor pods are left.
func (c *contender) clear(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	if err := c.client.DeleteAllOf(ctx, &volcano.Job{}, client.InNamespace(namespace),
		client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		left := 0
		for _, kind := range []client.ObjectList{&volcano.JobList{}, &corev1.PodList{}} {
			if err := c.client.List(ctx, kind, client.InNamespace(namespace)); err != nil {
				t.Fatal(err)
			}
			left += lenOf(kind)
		}
		if left == 0 {
			return
		}
		<-tick.C // there is no event for the end of all deletions, and nothing is timed here
	}
}

func lenOf(list client.ObjectList) int {
	switch l := list.(type) {
	case *volcano.JobList:
		return len(l.Items)
	case *corev1.PodList:
		return len(l.Items)
	}
	panic("a list that clear does not use")
}
