// Package agents tests muster-agent in the pods of jobs, which run as processes of this machine.
package agents

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/testcluster"
)

// Jobs are resized as soon as they can be: what is tested is what becomes of their pods.
const config = `
apiVersion: config.muster.dev/v1alpha1
kind: Configuration
elasticity: {growAfter: 0s, resizeCost: 0s}
`

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{ExecNodes: 1, Operator: true, Config: config})
}

// patience bounds every wait, on a machine that is busy with other tests.
const patience = 2 * time.Minute

// world is a namespace of the shared cluster, and a folder that its pods see.
type world struct {
	*testing.T
	client    client.WithWatch
	cluster   *testcluster.Cluster
	namespace string
	folder    string
}

func newWorld(t *testing.T) *world {
	cluster := testcluster.Get(t)
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, client: c, cluster: cluster, namespace: cluster.Namespace(t), folder: t.TempDir()}
}

// agents is the JobSet js of one Job, whose pods run a script with an agent round it.
func (w *world) agents(pods int32, script string) *jobset.JobSet {
	return &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: "js", Namespace: w.namespace, Annotations: map[string]string{"muster.dev/inject-agent": "true"}},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{
			Name: "workers", Replicas: 1,
			Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Parallelism: &pods, Completions: &pods,
				BackoffLimit: ptr.To[int32](math.MaxInt32), PodReplacementPolicy: ptr.To(batchv1.Failed),
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{
						Name: "main", Image: "example.com/trainer", Command: []string{"bash", "-c", script},
						Env:       []corev1.EnvVar{{Name: "FOLDER", Value: w.folder}},
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
					}},
				}},
			}},
		}}},
	}
}

func (w *world) create(o client.Object) {
	w.Helper()
	if err := w.client.Create(w.Context(), o); err != nil {
		w.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	}
}

// until waits, by watching, until the condition holds for the JobSet.
func (w *world) until(what string, holds func(*jobset.JobSet) bool) *jobset.JobSet {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	var list jobset.JobSetList
	for {
		if err := w.client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil {
			w.Fatalf("waiting until the JobSet %s: %v", what, err)
		}
		if len(list.Items) == 1 && holds(&list.Items[0]) {
			return &list.Items[0]
		}
		events, err := w.client.Watch(ctx, &list, client.InNamespace(w.namespace),
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
		if err != nil {
			w.Fatalf("waiting until the JobSet %s: %v", what, err)
		}
		<-events.ResultChan()
		events.Stop()
		if ctx.Err() != nil {
			w.Fatalf("waited %s until the JobSet %s: %+v; pods: %s", patience, what, list.Items, w.describePods())
		}
	}
}

func is(kind jobset.JobSetConditionType) func(*jobset.JobSet) bool {
	return func(js *jobset.JobSet) bool {
		return meta.IsStatusConditionTrue(js.Status.Conditions, string(kind))
	}
}

// pods are those there are, by UID.
func (w *world) pods() map[string]corev1.Pod {
	w.Helper()
	var list corev1.PodList
	if err := w.client.List(w.Context(), &list, client.InNamespace(w.namespace)); err != nil {
		w.Fatal(err)
	}
	out := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		out[string(pod.UID)] = pod
	}
	return out
}

func (w *world) describePods() string {
	var out strings.Builder
	for _, pod := range w.pods() {
		out.WriteString(pod.Name + " " + string(pod.Status.Phase) + " " + pod.Status.Message)
		for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			out.WriteString(" " + c.Name + "=" + c.State.String())
		}
		out.WriteString("\n")
	}
	return out.String()
}

// said waits until the pods have written so many lines to a file of the folder, and gives them.
func (w *world) said(file string, lines int) []string {
	w.Helper()
	deadline := time.Now().Add(patience)
	for {
		text, err := os.ReadFile(filepath.Join(w.folder, file))
		if got := strings.Split(strings.TrimSpace(string(text)), "\n"); err == nil && len(got) >= lines {
			return got
		}
		if time.Now().After(deadline) {
			w.Fatalf("after %s the pods have written %q to %s, want %d lines; pods:\n%s", patience, text, file, lines, w.describePods())
		}
		time.Sleep(10 * time.Millisecond) // a file of other processes can only be looked at
	}
}

func (w *world) write(file string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.folder, file), nil, 0o666); err != nil {
		w.Fatal(err)
	}
}

// killOperator kills it and returns when another runs in its place.
func (w *world) killOperator() {
	w.Helper()
	before := w.operatorPID()
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		w.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; {
		if pid := w.operatorPID(); pid != before && syscall.Kill(pid, 0) == nil {
			return
		}
		if time.Now().After(deadline) {
			w.Fatal("no operator was started in place of the one that was killed")
		}
		time.Sleep(10 * time.Millisecond) // a file of another process can only be looked at
	}
}

func (w *world) operatorPID() int {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.cluster.Dir, "operator.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		w.Fatalf("the operator's pid: %v", err)
	}
	return pid
}
