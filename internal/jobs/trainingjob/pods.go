package trainingjob

import (
	"fmt"
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// suspended reports whether the user has suspended the job.
func suspended(job *breezeml.TrainingJob) bool { return ptr.Deref(job.Spec.RunPolicy.Suspend, false) }

// queueOf returns the queue of the scheduling policy, "" if it names none.
func queueOf(job *breezeml.TrainingJob) string {
	if p := job.Spec.RunPolicy.SchedulingPolicy; p != nil {
		return p.Queue
	}
	return ""
}

// worker is the name of the only pod set, and a part of the names of pods.
const worker = breezeml.WorkerType

// view is what a plan is made from: the job, whose status is brought up to date, and its pods.
type view struct {
	settings Settings
	seen     jobs.Seen[*breezeml.TrainingJob]
	// job is a copy of the job whose status is brought up to date.
	job *breezeml.TrainingJob
	// now is the time with the precision that the API stores.
	now  metav1.Time
	pods []*corev1.Pod
	// roster has as many workers as the job is to run with.
	roster *replicas.Roster
	// restarting holds the workers that this plan restarts, in their previous state. waiting holds the workers whose
	// restart is delayed.
	restarting, waiting []replicas.Replica
}

// datasetVolume is the name of the volume with the dataset.
const datasetVolume = "muster-dataset"

// trainingContainer returns the training container, nil if there is none.
func trainingContainer(spec *corev1.PodSpec) *corev1.Container {
	named := pointers.First(spec.Containers,
		func(c *corev1.Container) bool { return c.Name == breezeml.DefaultContainerName })
	if named != nil || len(spec.Containers) == 0 {
		return named
	}
	return &spec.Containers[0]
}

// podRestartPolicy returns what nodes do with containers that have ended.
func podRestartPolicy(job *breezeml.TrainingJob) corev1.RestartPolicy {
	switch restartPolicyOf(job, latticeOf(job)) {
	case breezeml.RestartAlways:
		return corev1.RestartPolicyAlways
	case breezeml.RestartOnFailure:
		return corev1.RestartPolicyOnFailure
	}
	return corev1.RestartPolicyNever
}

// templateOf returns the pod template that all workers share.
func templateOf(job *breezeml.TrainingJob) corev1.PodTemplateSpec {
	template := *job.Spec.ReplicaSpecs.Template.DeepCopy()
	template.Spec.RestartPolicy = podRestartPolicy(job)
	if c := trainingContainer(&template.Spec); c != nil && job.Spec.Dataset != "" {
		template.Spec.Volumes = append(template.Spec.Volumes,
			corev1.Volume{Name: datasetVolume, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: job.Spec.Dataset, ReadOnly: true}}})
		c.VolumeMounts = append(c.VolumeMounts,
			corev1.VolumeMount{Name: datasetVolume, MountPath: breezeml.DatasetsPath + job.Spec.Dataset, ReadOnly: true})
	}
	return template
}

// labels returns the labels by which the pods and Services of a worker are found.
func (v *view) labels(index int32) map[string]string {
	return map[string]string{
		breezeml.OperatorNameLabel: breezeml.OperatorName,
		breezeml.JobNameLabel:      v.job.Name,
		breezeml.ReplicaTypeLabel:  breezeml.WorkerType,
		breezeml.ReplicaIndexLabel: strconv.Itoa(int(index)),
	}
}

// template returns the pod template of the current run: the admitted one, which the quota is for. Later changes of the
// job take effect at its next start.
func (v *view) template() corev1.PodTemplateSpec {
	granted, ok := v.seen.Admission.PodSets[worker]
	if !ok || granted.Template == nil {
		return templateOf(v.job)
	}
	out := *granted.Template.DeepCopy()
	for _, ours := range []string{muster.MinReplicasAnnotation, muster.MaxReplicasAnnotation,
		muster.AgentFrameworkAnnotation} {
		delete(out.Annotations, ours)
	}
	if len(out.Annotations) == 0 {
		out.Annotations = nil
	}
	return out
}

// newPod returns the pod of a worker as it is created, for its place if it has one. It fails if the agent cannot be
// added to the pod, though it could be when the job was queued.
func (v *view) newPod(r *replicas.Replica, place podspec.Places) (*corev1.Pod, error) {
	template, err := v.lattice().withAgent(v.job, v.seen.Facts.Agent, v.template(), r.Index)
	if err != nil {
		return nil, err
	}
	template = v.seen.Facts.Agent.LetReport(template, v.job.Namespace, v.job.Name)
	template.Labels = podspec.Merged(template.Labels, v.labels(r.Index))
	if granted, ok := v.seen.Admission.PodSets[worker]; ok {
		template = granted.At(place).Inject(template)
	}
	pod := replicas.NewPod(v.job, v.settings.kind(), r, template)
	pod.Spec.RestartPolicy = template.Spec.RestartPolicy
	return pod, nil
}

// noAgent says why the agent cannot be added, and what follows. This also holds for a job that began to ask for the
// agent after its admission, whose current pods are created without it.
func noAgent(err error) string {
	return fmt.Sprintf("The agent that injectLattice asks for cannot be added to the pods: %v. No pods that are to have it are started until then", err)
}

// assessWorkers determines which workers there should be, and the state of each.
func (p *planner) assessWorkers() {
	size := max(0, min(p.job.Status.CurrentSize, breezeml.MostWorkers)) // each worker takes memory in a plan
	p.observeWorkers(replicas.KeepIndices(p.job.Name, worker, size, p.pods, p.seen.Admission.PodSets[worker].Places))
}

// observeWorkers determines the state of the workers with these indices.
func (p *planner) observeWorkers(indices []int32) {
	policy := restartPolicyOf(p.job, p.lattice())
	p.roster = replicas.Observe(p.job.Name, []replicas.Group{{
		Name: worker, Count: int32(len(indices)), Indices: indices,
		Restart: replicas.Restart{
			OnFailure: true,
			Retry:     func(pod *corev1.Pod) bool { return isRetried(policy, pod) || p.isReplaced(pod) },
			Limit:     math.MaxInt32,
		},
	}}, p.memoryOf, p.pods)
	var next time.Time
	p.lost, next = p.roster.RestartDisrupted(p.seen.Now)
	p.plan.DueBy(next)
}

// memoryOf returns what the status records about a worker.
func (v *view) memoryOf(_ string, index int32) replicas.Record {
	key := strconv.Itoa(int(index))
	return replicas.Record{Restarts: v.job.Status.Restarts[key], Settled: v.job.Status.SettledRestarts[key]}
}
