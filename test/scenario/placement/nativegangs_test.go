package placement

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// inQueue returns the metadata of a job of this name in the queue q.
func (w *world) inQueue(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: w.Namespace, Labels: map[string]string{kueue.QueueLabel: "q"}}
}

// template returns a template of pods that request that many GPUs and run for an hour, with further annotations.
func template(container string, gpus int64, annotations map[string]string) corev1.PodTemplateSpec {
	amount := corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
	all := map[string]string{"muster.dev/sim-duration": time.Hour.String()}
	for key, value := range annotations {
		all[key] = value
	}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: all}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](0),
		Containers: []corev1.Container{{Name: container, Image: "example.com/trainer", Command: []string{"train"},
			Resources: corev1.ResourceRequirements{Requests: amount, Limits: amount}}},
	}}
}

// genericJob returns a GenericJob in the queue q with one type of replicas, worker.
func (w *world) genericJob(name string, replicas int32, template corev1.PodTemplateSpec) *tensorstack.GenericJob {
	return &tensorstack.GenericJob{ObjectMeta: w.inQueue(name),
		Spec: tensorstack.GenericJobSpec{ReplicaSpecs: []tensorstack.ReplicaSpec{
			{Type: "worker", Replicas: ptr.To(replicas), Template: template}}}}
}

// TestPodsThatMusterCreatesAreGangsToKubeScheduler checks that the pods of GenericJobs, VCJobs and TrainingJobs are
// created in a PodGroup, whose minimum is the number of pods that must run, and that PodGroups are deleted with their
// jobs.
func TestPodsThatMusterCreatesAreGangsToKubeScheduler(t *testing.T) {
	w := newWorld(t)
	for i := range 4 {
		w.node(fmt.Sprint("open-", i), "r0", allocatable(8))
	}
	w.queue()
	training := &breezeml.TrainingJob{ObjectMeta: w.inQueue("training")}
	training.Spec.MinSize, training.Spec.MaxSize = ptr.To[int32](2), ptr.To[int32](3)
	training.Spec.ReplicaSpecs.Template = template("trainingjob", 2, nil)
	for _, tc := range []struct {
		job      client.Object
		pods     int
		group    string
		minCount int32
	}{
		{w.genericJob("generic", 5, template("main", 3, nil)), 5, "generic-worker.genericjob", 5},
		{w.genericJob("elastic", 3, template("main", 2, map[string]string{muster.MinReplicasAnnotation: "2"})), 3,
			"elastic-worker.genericjob", 2},
		{&volcano.Job{ObjectMeta: w.inQueue("vc"), Spec: volcano.JobSpec{MinAvailable: 3,
			Tasks: []volcano.TaskSpec{{Name: "main", Replicas: 4, Template: template("main", 2, nil)}}}}, 4, "vc-main.job", 3},
		{training, 3, "training-worker.trainingjob", 2},
	} {
		w.Create(tc.job)
		for _, pod := range w.untilRunning(tc.job.GetName(), tc.pods) {
			if group := pod.Spec.SchedulingGroup; group == nil || ptr.Deref(group.PodGroupName, "") != tc.group {
				t.Errorf("pod %s has the scheduling group %v, want %s", pod.Name, group, tc.group)
			}
		}
		w.UntilGangs(fmt.Sprintf("%s: %d", tc.group, tc.minCount))
		w.Delete(tc.job)
		w.UntilGangs()
	}
}

// TestGangsOnNodesClosedToOthersNeedNoPodGroup: where the engine has given each pod a node, and a taint keeps others
// away from these nodes, a PodGroup would add nothing.
func TestGangsOnNodesClosedToOthersNeedNoPodGroup(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 4)
	w.queue()
	for _, job := range []client.Object{
		w.genericJob("generic", 4, template("main", 8, nil)),
		&volcano.Job{ObjectMeta: w.inQueue("vc"), Spec: volcano.JobSpec{MinAvailable: 4,
			Tasks: []volcano.TaskSpec{{Name: "main", Replicas: 4, Template: template("main", 8, nil)}}}},
		w.gang("js", "q", 4, 8, time.Hour),
	} {
		w.Create(job)
		for _, pod := range w.untilRunning(job.GetName(), 4) {
			if pod.Spec.SchedulingGroup != nil {
				t.Errorf("pod %s has the scheduling group %v, want none", pod.Name, pod.Spec.SchedulingGroup)
			}
		}
		w.UntilGangs()
		w.Delete(job)
	}
}

// TestKubeSchedulerBindsAGangAllOrNothing checks that, in a queue without a topology, kube-scheduler binds no pod of a
// gang while it has no node for one of them.
func TestKubeSchedulerBindsAGangAllOrNothing(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 3)
	w.Queue("q", kueue.ResourceFlavorSpec{NodeLabels: map[string]string{pool: w.Namespace},
		Tolerations: []corev1.Toleration{{Key: simulated.Key, Operator: corev1.TolerationOpExists}}},
		corev1.ResourceList{gpu: resource.MustParse("1000")})
	w.Create(w.genericJob("a", 4, template("main", 8, nil)))
	harness.UntilOne(w.World, &schedulingv1beta1.PodGroupList{}, "a-worker.genericjob",
		"is not scheduled", func(group *schedulingv1beta1.PodGroup) bool {
			return meta.IsStatusConditionFalse(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
		})
	w.UntilPods("a has 4 pods, none of them bound", func(pods map[string]corev1.Pod) bool {
		for _, pod := range pods {
			if pod.Spec.NodeName != "" {
				t.Fatalf("pod %s is bound to node %s before all pods of its gang have one: %s", pod.Name,
					pod.Spec.NodeName, w.State())
			}
		}
		return len(pods) == 4
	})
	w.node("late", "r0", allocatable(8), simulated)
	w.untilRunning("a", 4)
}
