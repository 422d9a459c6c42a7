//go:build bench

package endtoend

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// writeAsAdmitted makes the writes that an operator without decisions would make for a Job: the Job as its
// user creates it, its Workload, the admission and the release of the Job.
func (b *bench) writeAsAdmitted(ctx context.Context, o client.Object) error {
	job := o.(*batchv1.Job)
	if err := b.client.Create(ctx, job); err != nil {
		return err
	}
	owner := *metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))
	workload := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name,
			OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: kueue.WorkloadSpec{QueueName: queueOfAll,
			PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: job.Spec.Template}}},
	}
	if err := b.operator.Create(ctx, workload); err != nil {
		return err
	}
	before := workload.DeepCopy()
	workload.Status.Admission = &kueue.Admission{ClusterQueue: queueOfAll, PodSetAssignments: []kueue.PodSetAssignment{{
		Name: "main", Count: ptr.To[int32](1),
		Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{gpu: queueOfAll},
		ResourceUsage: corev1.ResourceList{gpu: resource.MustParse("1")},
	}}}
	for _, condition := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
		meta.SetStatusCondition(&workload.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue,
			Reason: condition, Message: "written without a decision"})
	}
	if err := b.operator.Status().Patch(ctx, workload, client.MergeFrom(before)); err != nil {
		return err
	}
	suspended := job.DeepCopy()
	job.Spec.Suspend = ptr.To(false)
	job.Spec.Template.Spec.NodeSelector = map[string]string{simulated: "true"}
	job.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: simulated, Operator: corev1.TolerationOpExists}}
	return b.operator.Patch(ctx, job, client.MergeFrom(suspended))
}

// makeQueue creates a queue with quota for everything, whose pods are placed on the simulated nodes.
func (b *bench) makeQueue() {
	b.Helper()
	create(b.T, b.client, &kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: queueOfAll},
		Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{
			{NodeLabel: blockLabel}, {NodeLabel: rackLabel}, {NodeLabel: corev1.LabelHostname}}}})
	create(b.T, b.client, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: queueOfAll},
		Spec: kueue.ResourceFlavorSpec{
			NodeLabels: map[string]string{simulated: "true"}, TopologyName: ptr.To(kueue.TopologyReference(queueOfAll)),
			Tolerations: []corev1.Toleration{{Key: simulated, Operator: corev1.TolerationOpExists}}}})
	create(b.T, b.client, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: queueOfAll},
		Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{gpu}, Flavors: []kueue.FlavorQuotas{{
				Name: queueOfAll, Resources: []kueue.ResourceQuota{{Name: gpu,
					NominalQuota: *resource.NewQuantity(nodes*gpusOfNode, resource.DecimalSI)}}}}}},
		}})
}

// create creates an object unless an earlier test has.
func create(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
}

// template returns the template of a pod with one GPU that runs longer than the benchmark. Without a queue it has the
// node selector and toleration that the queue's flavor would add.
func template(withoutQueue bool) corev1.PodTemplateSpec {
	one := corev1.ResourceList{gpu: resource.MustParse("1")}
	out := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"muster.dev/sim-duration": longEnough}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer",
				Resources: corev1.ResourceRequirements{Requests: one, Limits: one}}},
		},
	}
	if withoutQueue {
		out.Spec.NodeSelector = map[string]string{simulated: "true"}
		out.Spec.Tolerations = []corev1.Toleration{{Key: simulated, Operator: corev1.TolerationOpExists}}
	}
	return out
}

// jobsOf returns a load of Jobs of one pod in the queue, "" for none.
func jobsOf(n int, queue string) func(string) []client.Object {
	return manyOf(n, func(namespace, name string) client.Object {
		job := queuedJob(namespace, name).(*batchv1.Job)
		if queue == "" {
			job.Labels, job.Spec.Suspend, job.Spec.Template = nil, nil, template(true)
		}
		return job
	})
}

// manyOf returns a load of n objects of a kind.
func manyOf(n int, of func(namespace, name string) client.Object) func(string) []client.Object {
	return func(namespace string) []client.Object {
		var out []client.Object
		for i := range n {
			out = append(out, of(namespace, fmt.Sprintf("job-%d", i)))
		}
		return out
	}
}

// inQueue returns metadata with the queue label.
func inQueue(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{kueue.QueueLabel: queueOfAll}}
}

func queuedJob(namespace, name string) client.Object {
	return &batchv1.Job{ObjectMeta: inQueue(namespace, name),
		Spec: batchv1.JobSpec{Suspend: ptr.To(true), Template: template(false), BackoffLimit: ptr.To[int32](0)}}
}

func genericJobOf(namespace, name string) client.Object {
	return &tensorstack.GenericJob{ObjectMeta: inQueue(namespace, name), Spec: tensorstack.GenericJobSpec{
		ReplicaSpecs: []tensorstack.ReplicaSpec{{Type: "worker", Replicas: ptr.To[int32](1), Template: template(false)}}}}
}

func vcJobOf(namespace, name string) client.Object { return vcGangOf(namespace, name, 1) }

// vcGangOf returns a gang whose pods Muster creates.
func vcGangOf(namespace, name string, pods int) client.Object {
	return &volcano.Job{ObjectMeta: inQueue(namespace, name), Spec: volcano.JobSpec{
		MinAvailable: int32(pods),
		Tasks:        []volcano.TaskSpec{{Name: "main", Replicas: int32(pods), Template: template(false)}}}}
}

func trainingJobOf(namespace, name string) client.Object {
	job := &breezeml.TrainingJob{ObjectMeta: inQueue(namespace, name)}
	job.Spec.MinSize, job.Spec.MaxSize = ptr.To[int32](1), ptr.To[int32](1)
	job.Spec.ReplicaSpecs.Template = template(false)
	return job
}

func gangOf(namespace, name string, pods int) client.Object {
	return &jobset.JobSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			Labels: map[string]string{kueue.QueueLabel: queueOfAll}},
		Spec: jobset.JobSetSpec{ReplicatedJobs: []jobset.ReplicatedJob{{Name: "workers",
			Replicas: 1, Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Parallelism: ptr.To(int32(pods)), Completions: ptr.To(int32(pods)),
				CompletionMode: ptr.To(batchv1.IndexedCompletion), BackoffLimit: ptr.To[int32](0), Template: template(false)}}}}},
	}
}
