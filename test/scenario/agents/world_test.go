// Package agents tests muster-agent in the pods of jobs, which run as processes on the machine of the test.
package agents

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

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

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{ExecNodes: 1, Operator: true, Config: harness.ResizeAtOnce})
}

// world is a namespace, and a folder in which its pods write files.
type world struct {
	*harness.World
	folder string
}

func newWorld(t *testing.T) *world { return &world{harness.New(t), t.TempDir()} }

// agentJobSet returns the JobSet js of one Job, whose pods run the script under an injected agent.
func (w *world) agentJobSet(pods int32, script string) *jobset.JobSet {
	return &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Name: "js", Namespace: w.Namespace,
			Annotations: map[string]string{"muster.dev/inject-agent": "true"}},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{
			Name: "workers", Replicas: 1,
			Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Parallelism: &pods, Completions: &pods,
				BackoffLimit: ptr.To[int32](math.MaxInt32), PodReplacementPolicy: ptr.To(batchv1.Failed),
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{
						Name: "main", Image: "example.com/trainer", Command: []string{"bash", "-c", script},
						Env: []corev1.EnvVar{{Name: "FOLDER", Value: w.folder}},
						Resources: corev1.ResourceRequirements{
							Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
					}},
				}},
			}},
		}}},
	}
}

// untilJobSet waits until the condition holds for the JobSet js, and returns it.
func (w *world) untilJobSet(what string, holds func(*jobset.JobSet) bool) *jobset.JobSet {
	w.Helper()
	return harness.UntilOne(w.World, &jobset.JobSetList{}, "js", what, holds)
}

// hasCondition reports whether a JobSet has a true condition of this type.
func hasCondition(kind jobset.JobSetConditionType) func(*jobset.JobSet) bool {
	return func(js *jobset.JobSet) bool {
		return meta.IsStatusConditionTrue(js.Status.Conditions, string(kind))
	}
}

// podsByUID returns the pods of the namespace.
func (w *world) podsByUID() map[string]corev1.Pod {
	w.Helper()
	var list corev1.PodList
	if err := w.Client.List(w.Context(), &list, client.InNamespace(w.Namespace)); err != nil {
		w.Fatal(err)
	}
	out := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		out[string(pod.UID)] = pod
	}
	return out
}

// untilLines waits until the pods have written at least that many lines to a file of the folder, and returns all its
// lines.
func (w *world) untilLines(file string, lines int) []string {
	w.Helper()
	return w.untilFile(file, fmt.Sprintf("at least %d lines", lines), func(got []string) bool { return len(got) >= lines })
}

// untilFile waits until the condition holds for the lines of a file that the pods write to the folder, and returns
// them.
func (w *world) untilFile(file, what string, holds func(lines []string) bool) []string {
	w.Helper()
	deadline := time.Now().Add(harness.Patience)
	for {
		text, err := os.ReadFile(filepath.Join(w.folder, file))
		if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); err == nil && holds(lines) {
			return lines
		}
		if time.Now().After(deadline) {
			var jobSets jobset.JobSetList
			if err := w.Client.List(w.Context(), &jobSets, client.InNamespace(w.Namespace)); err != nil {
				w.Error(err)
			}
			w.Fatalf("waited %s until file %s has %s; it has %q:\n%s", harness.Patience, file, what, text, w.State(&jobSets))
		}
		time.Sleep(10 * time.Millisecond) // other processes write the file: poll
	}
}

// createFile creates an empty file in the folder, for which the scripts of pods wait.
func (w *world) createFile(file string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.folder, file), nil, 0o666); err != nil {
		w.Fatal(err)
	}
}
