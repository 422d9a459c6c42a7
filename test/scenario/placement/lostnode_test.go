package placement

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestANodeKilledUnderAnElasticGang checks that an elastic TrainingJob shrinks from four workers to three when a node
// is deleted, keeps their pods, and grows again when there is a new node. With fewer nodes than its minSize it is
// stopped and waits.
func TestANodeKilledUnderAnElasticGang(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 4)
	w.queue()
	w.Create(w.trainingJob("a", 3, 4))
	before := w.untilWorkers("a", 4)
	dead := before["a-worker-1"].Spec.NodeName
	w.Delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: dead}})
	after := w.untilWorkers("a", 3)
	for name, pod := range after {
		if before[name].UID != pod.UID {
			t.Errorf("pod %s was replaced when the job shrank, want it kept", name)
		}
	}
	var resized *metav1.Condition
	w.UntilWorkloadOf("a", "has been resized", func(wl *kueue.Workload) bool {
		resized = meta.FindStatusCondition(wl.Status.Conditions, muster.ResizedCondition)
		return resized != nil
	})
	if resized.Reason != muster.ShrunkReason || !strings.Contains(resized.Message, "from 4 to 3 pods") ||
		!strings.Contains(resized.Message, dead) {
		t.Errorf("condition %s = %+v, want that it shrank from 4 to 3 pods because of node %s",
			muster.ResizedCondition, resized, dead)
	}
	w.node("late", "r0", allocatable(8), simulated)
	grown := w.untilWorkers("a", 4)
	for name, pod := range after {
		if grown[name].UID != pod.UID {
			t.Errorf("pod %s was replaced when the job grew, want it kept", name)
		}
	}
	for _, name := range []string{"r0-0", "r0-1", "r0-2", "r0-3"} {
		if full := w.Namespace + "-" + name; full != dead {
			w.Delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: full}})
		}
	}
	harness.UntilOne(w.World, &breezeml.TrainingJobList{}, "a", "waits",
		func(job *breezeml.TrainingJob) bool { return job.Status.Stage == breezeml.StageWaiting })
}

// trainingJob returns a TrainingJob in the queue q. Each of its workers needs a whole node and runs for an hour.
func (w *world) trainingJob(name string, minSize, maxSize int32) *breezeml.TrainingJob {
	amount := corev1.ResourceList{gpu: resource.MustParse("8")}
	job := &breezeml.TrainingJob{ObjectMeta: w.inQueue(name)}
	job.Spec.MinSize, job.Spec.MaxSize = ptr.To(minSize), ptr.To(maxSize)
	job.Spec.ReplicaSpecs.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"muster.dev/sim-duration": time.Hour.String()}},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers: []corev1.Container{{Name: breezeml.DefaultContainerName,
				Image: "example.com/trainer", Command: []string{"train"},
				Resources: corev1.ResourceRequirements{Requests: amount, Limits: amount}}}},
	}
	return job
}

// untilWorkers waits until the TrainingJob has exactly that many pods, all running, and returns them by name.
func (w *world) untilWorkers(name string, count int) map[string]corev1.Pod {
	w.Helper()
	var found map[string]corev1.Pod
	w.UntilPods(fmt.Sprintf("%s has %d workers, all running", name, count), func(pods map[string]corev1.Pod) bool {
		found = map[string]corev1.Pod{}
		running := true
		for _, pod := range pods {
			if pod.Labels[breezeml.JobNameLabel] == name {
				found[pod.Name] = pod
				running = running && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
			}
		}
		return running && len(found) == count
	})
	return found
}
