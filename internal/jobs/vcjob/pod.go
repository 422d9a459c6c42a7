package vcjob

import (
	"cmp"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/replicas"
)

// limit returns how many pods of the task may run at once: as many as quota is held for, and 0 for a task
// that had none at admission, whatever its spec says since.
func (pl *planner) limit(task string) int32 {
	if pl.seen.Admission.Grant != jobs.Admitted {
		return countOf(pl.tasks[task])
	}
	return min(pl.seen.Admission.PodSets[task].Left, countOf(pl.tasks[task]))
}

// granted returns how many pods of the task were admitted, and not more than it has.
func (pl *planner) granted(task string) int32 {
	if pl.seen.Admission.Grant != jobs.Admitted {
		return countOf(pl.tasks[task])
	}
	return min(pl.seen.Admission.PodSets[task].Count, countOf(pl.tasks[task]))
}

// createPods creates missing pods in order, as far as quota and the dependencies of their tasks allow.
// The others are created when pods have finished or more were admitted.
func (pl *planner) createPods() {
	left := map[string]int32{}
	for name, task := range pl.tasks {
		if pl.mayStart(task) {
			left[name] = pl.limit(name) - pl.roster.Alive(name)
		}
	}
	pl.createsPods = pl.plan.CreateReplicas(pl.roster, pl.seen.Admission, func(r *replicas.Replica, at podspec.Places) *corev1.Pod {
		if left[r.Group] <= 0 {
			return nil
		}
		left[r.Group]--
		return pl.newPod(r, at)
	})
	if pl.createsPods {
		pl.plan.First = append(pl.plan.First, pl.objects()...)
	}
}

// least returns the minimum number of pods of each task for the job to run. A task that could have started without pods
// makes up for those that the others were not granted.
func (pl *planner) least() map[string]int32 {
	out := make(map[string]int32, len(pl.tasks))
	together, optional := anyPods(pl.job)
	for i := range pl.job.Spec.Tasks {
		together -= pl.granted(nameOf(pl.job, i))
	}
	for i, least := range leastOf(pl.job) {
		name := nameOf(pl.job, i)
		if optional[i] {
			least = max(0, together+pl.granted(name))
		}
		out[name] = least
	}
	return out
}

// deleteExcess deletes the last pods of tasks that run more than were admitted, and reports whether there
// are any. They are created again when quota allows, which counts as no restart.
func (pl *planner) deleteExcess() bool {
	gone := map[string]bool{}
	over := map[string]int32{}
	for name := range pl.tasks {
		over[name] = pl.roster.Alive(name) - pl.limit(name)
	}
	for i := len(pl.roster.Replicas) - 1; i >= 0; i-- {
		r := &pl.roster.Replicas[i]
		if over[r.Group] <= 0 || r.Pod == nil || replicas.IsFinished(r.Pod) {
			continue
		}
		over[r.Group]--
		if r.UID() != "" {
			gone[r.Name] = true
		}
	}
	if len(gone) == 0 {
		return false
	}
	pl.markOutdated(func(r *replicas.Replica) bool { return gone[r.Name] })
	pl.plan.StatusFirst = true
	pl.plan.DeletePods(pl.roster.Outdated())
	return true
}

// newPod returns the pod of a replica: its task's template, with what Volcano adds to every pod, what
// the plugins add and what admission assigned, at its place if it has one.
func (pl *planner) newPod(r *replicas.Replica, assigned podspec.Places) *corev1.Pod {
	template := *pl.tasks[r.Group].Template.DeepCopy()
	restartPolicy := template.Spec.RestartPolicy
	template.Labels, template.Annotations = merged(template.Labels, pl.labels(r)), merged(template.Annotations, pl.annotations(r))
	spec := &template.Spec
	spec.SchedulerName = schedulerName(pl.job, spec.SchedulerName, pl.seen.Facts)
	if name := pl.job.Spec.PriorityClassName; spec.PriorityClassName == "" && pl.seen.Facts.Priorities.Pod[name] != nil {
		spec.PriorityClassName = name
	}
	if spec.HostNetwork && spec.DNSPolicy == "" {
		spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	pl.mountVolumes(spec)
	for _, p := range pl.plugins() {
		if p.change != nil {
			p.change(pl.job, r, spec)
		}
		if p.annotate != nil {
			template.Annotations = merged(p.annotate(pl.job, r, spec), template.Annotations)
		}
		p.openPorts(pl.job, r.Group, spec)
	}
	if granted, ok := pl.seen.Admission.PodSets[r.Group]; ok {
		template = granted.At(assigned).Inject(template)
	}
	pod := replicas.NewPod(pl.job.Namespace, *metav1.NewControllerRef(pl.job, kind), r, template)
	pod.Spec.RestartPolicy = restartPolicy // its containers may restart in place
	return pod
}

// merged returns the template's own entries, overridden by those that identify the replica.
func merged(own, ours map[string]string) map[string]string {
	out := make(map[string]string, len(own)+len(ours))
	maps.Copy(out, own)
	maps.Copy(out, ours)
	return out
}

func (pl *planner) labels(r *replicas.Replica) map[string]string {
	out := map[string]string{
		volcano.JobNameKey: pl.job.Name, volcano.JobNamespaceKey: pl.job.Namespace,
		volcano.TaskSpecKey: r.Group, volcano.TaskIndexKey: strconv.Itoa(int(r.Index)),
	}
	if queue := queueOf(pl.job); len(queue) <= validation.LabelValueMaxLength {
		out[volcano.QueueNameKey] = queue
	}
	return out
}

func (pl *planner) annotations(r *replicas.Replica) map[string]string {
	return map[string]string{
		volcano.JobNameKey: pl.job.Name, volcano.QueueNameKey: queueOf(pl.job),
		volcano.TaskSpecKey: r.Group, volcano.TaskIndexKey: strconv.Itoa(int(r.Index)),
		volcano.TemplateUIDKey: pl.job.Name + "-" + r.Group, volcano.GroupNameAnnotation: pl.job.Name + "-" + string(pl.job.UID),
		volcano.JobVersionKey:    strconv.Itoa(int(pl.job.Status.Version)),
		volcano.JobRetryCountKey: strconv.Itoa(int(pl.job.Status.RetryCount)),
		volcano.JobTypeKey:       cmp.Or(pl.job.Annotations[volcano.JobTypeKey], "Job"),
	}
}
