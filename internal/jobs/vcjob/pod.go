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
func (l *planner) limit(task string) int32 {
	if l.seen.Admission.Grant != jobs.Admitted {
		return countOf(l.tasks[task])
	}
	return min(l.seen.Admission.PodSets[task].Left, countOf(l.tasks[task]))
}

// granted returns how many pods of the task were admitted, and not more than it has.
func (l *planner) granted(task string) int32 {
	if l.seen.Admission.Grant != jobs.Admitted {
		return countOf(l.tasks[task])
	}
	return min(l.seen.Admission.PodSets[task].Count, countOf(l.tasks[task]))
}

// createPods creates missing pods in order, as far as quota and the dependencies of their tasks allow.
// The others are created when pods have finished or more were admitted.
func (l *planner) createPods() {
	left := map[string]int32{}
	for name, task := range l.tasks {
		if l.mayStart(task) {
			left[name] = l.limit(name) - l.alive(name)
		}
	}
	places := map[string]map[int32]podspec.Places{}
	for name, granted := range l.seen.Admission.PodSets {
		// If fewer pods than replicas were admitted, each pod is assigned one of their places after its creation.
		if task := l.tasks[name]; task != nil && granted.Places.Count() >= countOf(task) {
			places[name] = l.roster.AssignPlaces(name, granted.Places, granted.SliceSize)
		}
	}
	for _, r := range l.roster.Missing() {
		if left[r.Group] <= 0 {
			continue
		}
		left[r.Group]--
		if !l.plan.CreateChild(l.newPod(r, places[r.Group][r.Index]), jobs.FailedCreate) {
			break
		}
		l.createsPods = true
	}
	if l.createsPods {
		l.plan.First = append(l.plan.First, l.objects()...)
	}
}

// least returns the minimum number of pods of each task for the job to run. A task that could have started without pods
// makes up for those that the others were not granted.
func (l *planner) least() map[string]int32 {
	out := make(map[string]int32, len(l.tasks))
	together, optional := anyPods(l.job)
	for i := range l.job.Spec.Tasks {
		together -= l.granted(nameOf(l.job, i))
	}
	for i, least := range leastOf(l.job) {
		name := nameOf(l.job, i)
		if optional[i] {
			least = max(0, together+l.granted(name))
		}
		out[name] = least
	}
	return out
}

// alive returns how many pods of the task exist and have not finished.
func (l *planner) alive(task string) (n int32) {
	members := l.roster.Group(task)
	for i := range members {
		if r := &members[i]; r.Pod != nil && !replicas.IsFinished(r.Pod) {
			n++
		}
	}
	return n
}

// inUse counts the pods of the task that may still use quota, including surplus ones that have not
// terminated yet.
func (l *planner) inUse(task string) int32 {
	n := l.alive(task)
	for _, pod := range l.roster.Surplus {
		if _, its := replicas.IndexOf(l.job.Name, task, pod.Name); its && !replicas.IsFinished(pod) {
			n++
		}
	}
	return n
}

// deleteExcess deletes the last pods of tasks that run more than were admitted, and reports whether there
// are any. They are created again when quota allows, which counts as no restart.
func (l *planner) deleteExcess() bool {
	gone := map[string]bool{}
	over := map[string]int32{}
	for name := range l.tasks {
		over[name] = l.alive(name) - l.limit(name)
	}
	for i := len(l.roster.Replicas) - 1; i >= 0; i-- {
		r := &l.roster.Replicas[i]
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
	l.markOutdated(func(r *replicas.Replica) bool { return gone[r.Name] })
	l.plan.StatusFirst = true
	l.plan.DeletePods(l.roster.Outdated())
	return true
}

// newPod returns the pod of a replica: its task's template, with what Volcano adds to every pod, what
// the plugins add and what admission assigned, at its place if it has one.
func (l *planner) newPod(r *replicas.Replica, assigned podspec.Places) *corev1.Pod {
	template := *l.tasks[r.Group].Template.DeepCopy()
	restartPolicy := template.Spec.RestartPolicy
	template.Labels, template.Annotations = merged(template.Labels, l.labels(r)), merged(template.Annotations, l.annotations(r))
	spec := &template.Spec
	spec.SchedulerName = schedulerName(l.job, spec.SchedulerName, l.seen.Facts)
	if name := l.job.Spec.PriorityClassName; spec.PriorityClassName == "" && l.seen.Facts.Priorities.Pod[name] != nil {
		spec.PriorityClassName = name
	}
	if spec.HostNetwork && spec.DNSPolicy == "" {
		spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	l.mountVolumes(spec)
	for _, p := range l.plugins() {
		if p.change != nil {
			p.change(l.job, r, spec)
		}
		if p.annotate != nil {
			template.Annotations = merged(p.annotate(l.job, r, spec), template.Annotations)
		}
		p.openPorts(l.job, r.Group, spec)
	}
	if granted, ok := l.seen.Admission.PodSets[r.Group]; ok {
		template = granted.At(assigned).Inject(template)
	}
	pod := replicas.NewPod(l.job.Namespace, *metav1.NewControllerRef(l.job, kind), r, template)
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

func (l *planner) labels(r *replicas.Replica) map[string]string {
	out := map[string]string{
		volcano.JobNameKey: l.job.Name, volcano.JobNamespaceKey: l.job.Namespace,
		volcano.TaskSpecKey: r.Group, volcano.TaskIndexKey: strconv.Itoa(int(r.Index)),
	}
	if queue := queueOf(l.job); len(queue) <= validation.LabelValueMaxLength {
		out[volcano.QueueNameKey] = queue
	}
	return out
}

func (l *planner) annotations(r *replicas.Replica) map[string]string {
	return map[string]string{
		volcano.JobNameKey: l.job.Name, volcano.QueueNameKey: queueOf(l.job),
		volcano.TaskSpecKey: r.Group, volcano.TaskIndexKey: strconv.Itoa(int(r.Index)),
		volcano.TemplateUIDKey: l.job.Name + "-" + r.Group, volcano.GroupNameAnnotation: l.job.Name + "-" + string(l.job.UID),
		volcano.JobVersionKey:    strconv.Itoa(int(l.job.Status.Version)),
		volcano.JobRetryCountKey: strconv.Itoa(int(l.job.Status.RetryCount)),
		volcano.JobTypeKey:       cmp.Or(l.job.Annotations[volcano.JobTypeKey], "Job"),
	}
}
