package scenario

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/examples"
)

// TestDemoJobsSurviveAKilledOperator runs the JobSets of the demo, on simulated nodes and as processes, and kills the
// operator each time more of them have completed. All JobSets must complete, and each Job and pod must be created
// exactly once, except for the Job that a failure rule recreates.
func TestDemoJobsSurviveAKilledOperator(t *testing.T) {
	w := newWorld(t)
	all := &world{w.Everywhere()} // the demo's jobs are in several namespaces
	creations := all.recordCreations("docs", "lab", "science")
	w.apply("prerequisites")
	w.apply("jobset")
	var names []string
	all.untilJobSets("all nine JobSets of the demo exist", func(jobSets map[string]jobset.JobSet) bool {
		names = nil
		for name, js := range jobSets {
			if slices.Contains([]string{"docs", "lab", "science"}, js.Namespace) {
				names = append(names, name)
			}
		}
		return len(names) == 9
	})
	w.Operator().Kill() // while the JobSets are being queued
	for _, done := range []int{1, 3, 5} {
		all.untilJobSets(fmt.Sprintf("%d JobSets of the demo have completed", done),
			func(jobSets map[string]jobset.JobSet) bool {
				count := 0
				for _, name := range names {
					if jobSetCompleted(jobSets[name]) {
						count++
					}
				}
				return count >= done
			})
		w.Operator().Kill()
	}
	all.untilCompleted(names...)

	wantPods := map[string]int{
		"pytorch-workers-0": 4, "pi-workers-0": 4, "urgent-trainers-0": 2,
		"sweep-a-trainers-0": 2, "sweep-b-trainers-0": 2, "sweep-c-trainers-0": 2, "sweep-d-trainers-0": 2,
		"together-workers-0": 3, // its commands run twice, in the same pods
		"stubborn-prepare-0": 1, "stubborn-workers-0": 1, "stubborn-workers-1": 2,
	}
	wantJobs := map[string]int{}
	for name := range wantPods {
		wantJobs[name] = 1
	}
	wantJobs["stubborn-workers-1"] = 2 // its first attempt fails, and a failure rule recreates it
	jobs, pods := creations()
	if diff := cmp.Diff(wantJobs, jobs); diff != "" {
		t.Errorf("Jobs created (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantPods, pods); diff != "" {
		t.Errorf("pods created by Job (-want +got):\n%s", diff)
	}
}

// apply creates the objects of a directory of the examples. JobSets without a namespace are created in docs, as in the
// demo.
func (w *world) apply(folder string) {
	w.Helper()
	files, err := fs.Glob(examples.Files, path.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		w.Fatalf("examples/%s has %d YAML files, error %v", folder, len(files), err)
	}
	for _, file := range files {
		content, err := examples.Files.Open(file)
		if err != nil {
			w.Fatal(err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(content, 4096)
		for {
			var object unstructured.Unstructured
			err := decoder.Decode(&object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				w.Fatalf("reading %s: %v", file, err)
			}
			if object.GetKind() == "JobSet" && object.GetNamespace() == "" {
				object.SetNamespace("docs")
			}
			w.Create(&object)
		}
	}
}

// recordCreations counts the Jobs and pods that are created in the namespaces from now on. The returned function
// returns the counts, keyed by the name of the Job: how often it was created, and how many pods it has created.
func (w *world) recordCreations(namespaces ...string) func() (jobs, pods map[string]int) {
	w.Helper()
	var mu sync.Mutex
	jobs, pods := map[string]int{}, map[string]int{}
	count := func(list client.ObjectList, add func(client.Object)) {
		events, err := w.Client.Watch(w.Context(), list)
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(events.Stop)
		go func() {
			for event := range events.ResultChan() {
				if o, ok := event.Object.(client.Object); ok && event.Type == watch.Added &&
					slices.Contains(namespaces, o.GetNamespace()) {
					mu.Lock()
					add(o)
					mu.Unlock()
				}
			}
		}()
	}
	count(&batchv1.JobList{}, func(o client.Object) { jobs[o.GetName()]++ })
	count(&corev1.PodList{}, func(o client.Object) { pods[o.GetLabels()[batchv1.JobNameLabel]]++ })
	return func() (map[string]int, map[string]int) {
		mu.Lock()
		defer mu.Unlock()
		return jobs, pods
	}
}
