package operators

import (
	"fmt"
	"syscall"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
)

// TestPodGroupsAreCreatedUnlessNativeGangsAreOff: on one cluster, which serves PodGroups and whose pods keep them, jobs
// make them with the default configuration, and the same jobs make none where it says so. Those that are there hold
// nobody back from then on: nobody would take from what they ask for what has ended.
func TestPodGroupsAreCreatedUnlessNativeGangsAreOff(t *testing.T) {
	w := newWorld(t)
	w.podQueue(8)
	byDefault := w.operate()
	w.Create(w.pairs("told")...)
	w.untilGroups("told", "told-set-workers", "told-set-workers", "told-worker.genericjob", "told-worker.genericjob")
	w.UntilGangs("told-set-workers: 2", "told-worker.genericjob: 2")
	byDefault.End(syscall.SIGTERM)

	w.operate(w.configured(`gangs: {native: "Off"}`))
	w.Create(w.pairs("untold")...)
	w.untilGroups("untold", "", "", "", "")
	w.UntilGangs("told-set-workers: 1", "told-worker.genericjob: 1")
}

// pairs are a GenericJob and a JobSet of two pods each: pods that the operator makes, and pods of a Job that it makes.
func (w *world) pairs(name string) []client.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: w.Namespace, Labels: map[string]string{kueue.QueueLabel: "q"}}
	}
	of := w.Job(name, "q", 2).Spec
	of.Template.Labels = map[string]string{"of": name}
	of.CompletionMode, of.Completions, of.Suspend = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](2), nil
	return []client.Object{
		&tensorstack.GenericJob{ObjectMeta: meta(name), Spec: tensorstack.GenericJobSpec{
			ReplicaSpecs: []tensorstack.ReplicaSpec{{Type: "worker", Replicas: ptr.To[int32](2), Template: of.Template}}}},
		&jobset.JobSet{ObjectMeta: meta(name + "-set"), Spec: jobset.JobSetSpec{
			ReplicatedJobs: []jobset.ReplicatedJob{{Name: "workers", Replicas: 1,
				Template: batchv1.JobTemplateSpec{Spec: of}}}}},
	}
}

// untilGroups waits until pairs have as many pods, and they are of these PodGroups, in any order.
func (w *world) untilGroups(pairs string, want ...string) {
	w.Helper()
	w.UntilPods(fmt.Sprintf("the groups of the pods of %s are %q", pairs, want), func(pods map[string]corev1.Pod) bool {
		left := map[string]int{}
		for _, group := range want {
			left[group]++
		}
		of := 0
		for _, pod := range pods {
			if pod.Labels["of"] != pairs {
				continue
			}
			of++
			group := ""
			if pod.Spec.SchedulingGroup != nil {
				group = ptr.Deref(pod.Spec.SchedulingGroup.PodGroupName, "")
			}
			left[group]--
			if left[group] < 0 {
				w.Fatalf("%s is of the group %q: %s", pod.Name, group, w.State())
			}
		}
		return of == len(want)
	})
}
