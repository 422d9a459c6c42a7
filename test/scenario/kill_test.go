package scenario

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// TestOperatorKilledAmongJobs: gangs compete for a queue that holds one of them at
// a time, and the operator is killed again and again, each time when one more has
// got somewhere. Every gang runs once, whole, to its end.
func TestOperatorKilledAmongJobs(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	made := w.recordCreations()
	var names []string
	for i := range 6 {
		name := fmt.Sprintf("gang-%d", i)
		names = append(names, name)
		w.create(w.gang(name, "gpu", 8, 500*time.Millisecond))
	}
	last := 0
	kill := func() {
		for pid := w.operatorPID(); ; pid = w.operatorPID() {
			if pid != last && syscall.Kill(pid, syscall.SIGKILL) == nil {
				last = pid
				return
			}
			if t.Context().Err() != nil {
				t.Fatal(t.Context().Err())
			}
			<-time.After(10 * time.Millisecond) // a file of another process can only be looked at
		}
	}
	kill() // while they are being queued
	for done := 1; done < len(names); done += 2 {
		w.untilJobSets(fmt.Sprintf("%d have completed", done), func(all map[string]jobset.JobSet) bool {
			count := 0
			for _, js := range all {
				if completed(js) {
					count++
				}
			}
			return count >= done
		})
		kill()
	}
	w.untilCompleted(names...)

	jobs, pods := made()
	slices.Sort(jobs)
	var want []string
	for _, name := range names {
		want = append(want, name+"-workers-0")
	}
	if !slices.Equal(jobs, want) {
		t.Errorf("Jobs that were made: %v, want each once: %v", jobs, want)
	}
	if len(pods) != 8*len(names) {
		t.Errorf("%d pods were made, want %d: %v", len(pods), 8*len(names), pods)
	}
}

// recordCreations notes every Job and pod that comes into being in the namespace,
// from now on. The function that it returns gives their names, pods by Job and
// index.
func (w *world) recordCreations() func() (jobs, pods []string) {
	w.Helper()
	var mu sync.Mutex
	var jobs, pods []string
	note := func(list client.ObjectList, take func(watch.Event)) {
		events, err := w.client.Watch(w.Context(), list, client.InNamespace(w.namespace))
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(events.Stop)
		go func() {
			for event := range events.ResultChan() {
				if event.Type == watch.Added {
					mu.Lock()
					take(event)
					mu.Unlock()
				}
			}
		}()
	}
	note(&batchv1.JobList{}, func(e watch.Event) { jobs = append(jobs, e.Object.(*batchv1.Job).Name) })
	note(&corev1.PodList{}, func(e watch.Event) {
		pod := e.Object.(*corev1.Pod)
		pods = append(pods, pod.Labels[batchv1.JobNameLabel]+"/"+pod.Labels[batchv1.JobCompletionIndexAnnotation])
	})
	return func() ([]string, []string) {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(jobs), slices.Clone(pods)
	}
}
