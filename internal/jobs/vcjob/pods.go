package vcjob

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// view is what a plan is made from: the job, whose status is brought up to date, and its pods.
type view struct {
	seen jobs.Seen[*volcano.Job]
	// job is a copy whose status is updated, and whose size is within what a job may have.
	job     *volcano.Job
	tasks   map[string]*volcano.TaskSpec
	records podRecords
	roster  *replicas.Roster
	// usable caches isUsable by task, as long as the roster is the same.
	usable map[string]bool
}

// tasksOf returns the tasks of the job by name.
func tasksOf(job *volcano.Job) map[string]*volcano.TaskSpec {
	return maps.Collect(tasksIn(job))
}

// observe computes the roster, again if the status has changed.
func (v *view) observe() {
	v.usable = map[string]bool{}
	v.roster = replicas.Observe(v.job.Name, groups(v.job), v.records.of(v.job.Status.Version),
		jobs.ChildrenOf[*corev1.Pod](v.seen.Children))
}

// count returns how many pods of the task, or of all tasks if it is "", are in one of the phases.
func (v *view) count(task string, phases ...replicas.Phase) int32 {
	members := v.roster.Replicas
	if task != "" {
		members = v.roster.Group(task)
	}
	return pointers.Count(members, replicas.In(phases...))
}

// startOf returns when the first pod of the task that exists was created, zero if there is none.
func (v *view) startOf(task string) (first time.Time) {
	members := v.roster.Group(task)
	for r := range pointers.To(members) {
		if r.Pod != nil {
			first = replicas.Earlier(first, r.Pod.CreationTimestamp.Time)
		}
	}
	return first
}

// limit returns how many pods of the task may run at once: as many as quota is held for, and 0 for a task
// that had none at admission, whatever its spec says since.
func (s *sizes) limit(task string) int32 {
	if s.seen.Admission.Grant != jobs.Admitted {
		return countOf(s.tasks[task])
	}
	return min(s.seen.Admission.PodSets[task].Left, countOf(s.tasks[task]))
}

// granted returns how many pods of the task were admitted, and not more than it has.
func (s *sizes) granted(task string) int32 {
	if s.seen.Admission.Grant != jobs.Admitted {
		return countOf(s.tasks[task])
	}
	return min(s.seen.Admission.PodSets[task].Count, countOf(s.tasks[task]))
}

// least returns the minimum number of pods of each task for the job to run. If a task could have started without pods,
// its pods make up for pods that the rest of the tasks were not granted.
func (s *sizes) least() map[string]int32 {
	out := make(map[string]int32, len(s.tasks))
	together, optional := anyPods(s.job)
	for name := range tasksIn(s.job) {
		together -= s.granted(name)
	}
	for i, least := range leastOf(s.job) {
		name := nameOf(s.job, i)
		if optional[i] {
			least = max(0, together+s.granted(name))
		}
		out[name] = least
	}
	return out
}

// newPod returns the pod of a replica: its task's template, with what Volcano adds to every pod, what
// the plugins add and what admission assigned, at its place if it has one.
func (o *objects) newPod(r *replicas.Replica, assigned podspec.Places) *corev1.Pod {
	template := *o.tasks[r.Group].Template.DeepCopy()
	restartPolicy := template.Spec.RestartPolicy
	template.Labels, template.Annotations = podspec.Merged(template.Labels, o.labels(r)),
		podspec.Merged(template.Annotations, o.annotations(r))
	spec := &template.Spec
	spec.SchedulerName = schedulerName(o.job, spec.SchedulerName, o.seen.Facts)
	if name := o.job.Spec.PriorityClassName; spec.PriorityClassName == "" && o.seen.Facts.Priorities.Pod[name] != nil {
		spec.PriorityClassName = name
	}
	if spec.HostNetwork && spec.DNSPolicy == "" {
		spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	o.mountVolumes(spec)
	for _, p := range o.plugins() {
		if p.change != nil {
			p.change(o.job, r, spec)
		}
		if p.annotate != nil {
			template.Annotations = podspec.Merged(p.annotate(o.job, r, spec), template.Annotations)
		}
		p.openPorts(o.job, r.Group, spec)
	}
	template = o.seen.Facts.Agent.LetReport(template, o.job.Namespace, o.job.Name)
	if granted, ok := o.seen.Admission.PodSets[r.Group]; ok {
		template = granted.At(assigned).Inject(template)
	}
	pod := replicas.NewPod(o.job, kind, r, template)
	pod.Spec.RestartPolicy = restartPolicy // its containers may restart in place
	return pod
}

func (v *view) labels(r *replicas.Replica) map[string]string {
	out := map[string]string{
		volcano.JobNameKey: v.job.Name, volcano.JobNamespaceKey: v.job.Namespace,
		volcano.TaskSpecKey: r.Group, volcano.TaskIndexKey: strconv.Itoa(int(r.Index)),
	}
	if queue := queueOf(v.job); len(queue) <= validation.LabelValueMaxLength {
		out[volcano.QueueNameKey] = queue
	}
	return out
}

func (v *view) annotations(r *replicas.Replica) map[string]string {
	return map[string]string{
		volcano.JobNameKey: v.job.Name, volcano.QueueNameKey: queueOf(v.job),
		volcano.TaskSpecKey: r.Group, volcano.TaskIndexKey: strconv.Itoa(int(r.Index)),
		volcano.TemplateUIDKey: v.job.Name + "-" + r.Group, volcano.GroupNameAnnotation: v.job.Name + "-" + string(v.job.UID),
		volcano.JobVersionKey:    strconv.Itoa(int(v.job.Status.Version)),
		volcano.JobRetryCountKey: strconv.Itoa(int(v.job.Status.RetryCount)),
		volcano.JobTypeKey:       cmp.Or(v.job.Annotations[volcano.JobTypeKey], "Job"),
	}
}

// restartsOf returns how often the kubelet restarted containers of the pod.
func restartsOf(pod *corev1.Pod) (n int32) {
	for status := range podspec.Statuses(pod) {
		n += status.RestartCount
	}
	return n
}

// unschedulableSince returns since when the pod is unschedulable, zero if it is not.
func unschedulableSince(pod *corev1.Pod) time.Time {
	if c := replicas.Condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse &&
		c.Reason == corev1.PodReasonUnschedulable {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// groups returns the tasks as groups of replicas. They have no restart policy of their own: the job's policies decide.
func groups(job *volcano.Job) []replicas.Group {
	out := make([]replicas.Group, 0, len(job.Spec.Tasks))
	for name, task := range tasksIn(job) {
		out = append(out, replicas.Group{Name: name, Count: countOf(task)})
	}
	return out
}

// queueOf returns the queue that the job names.
func queueOf(job *volcano.Job) string { return cmp.Or(job.Spec.Queue, volcano.DefaultQueue) }

// nameOf returns the name of a task, which is Volcano's default if it has none.
func nameOf(job *volcano.Job, i int) string {
	return cmp.Or(job.Spec.Tasks[i].Name, fmt.Sprintf("%s%d", volcano.DefaultTaskPrefix, i))
}

// tasksIn visits the tasks of the job, each with its name, in their order.
func tasksIn(job *volcano.Job) iter.Seq2[string, *volcano.TaskSpec] {
	return func(yield func(string, *volcano.TaskSpec) bool) {
		for i := range job.Spec.Tasks {
			if !yield(nameOf(job, i), &job.Spec.Tasks[i]) {
				return
			}
		}
	}
}

// kind is the kind of VCJobs.
var kind = volcano.GroupVersion.WithKind("Job")

// podGroups is served where Volcano's scheduler is installed.
var podGroups = schema.GroupResource{Group: "scheduling.volcano.sh", Resource: "podgroups"}

// schedulerName returns the scheduler for a pod, given the name in its template; "" for the default.
// Volcano's scheduler is used only where it is installed, as no other would bind the pod.
func schedulerName(job *volcano.Job, named string, facts jobs.Facts) string {
	named = cmp.Or(named, job.Spec.SchedulerName, volcano.SchedulerName)
	if named == volcano.SchedulerName && !facts.Served[podGroups] {
		return ""
	}
	return named
}

// maxRetry returns how often the job may restart.
func maxRetry(job *volcano.Job) int32 { return cmp.Or(job.Spec.MaxRetry, volcano.DefaultMaxRetry) }
