package vcjob

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// kind is the kind of VCJobs.
var kind = volcano.GroupVersion.WithKind("Job")

// podGroups is served where Volcano's scheduler is installed.
var podGroups = schema.GroupResource{Group: "scheduling.volcano.sh", Resource: "podgroups"}

// batchDelay is how long changes of pods are batched into one reconcile.
const batchDelay = 100 * time.Millisecond

// countsDelay is how long a status write is delayed if only the counts of pods changed.
const countsDelay = time.Second

// API is the API of VCJobs. A VCJob without a queue uses the queue default.
var API = jobs.API[*volcano.Job]{
	Resizes: true,
	AnyPods: true,
	Gangs:   true,
	Kind:    kind,
	Queue:   jobs.QueueRequired,
	New:     func() *volcano.Job { return &volcano.Job{} },
	Owns:    []client.Object{&corev1.Pod{}, &bus.Command{}},
	Targets: targetOf,
	Matters: jobs.PodChanges(func(was, is *corev1.Pod) bool {
		return restartsOf(was) != restartsOf(is) || unschedulableSince(was) != unschedulableSince(is)
	}),
	Expected:   expected,
	BatchDelay: batchDelay,
	// Pods start and finish one after the other, and the status counts them.
	StatusDelay: countsDelay,
	PodLabels: func(uid types.UID) map[string]string {
		return map[string]string{muster.JobUIDLabel: string(uid)}
	},
	QueueField: queueOf,
	AsksKinds:  []schema.GroupResource{podGroups},
	Describe:   describe,
	Plan:       plan,
}

// targetOf returns the name and UID of the job that a Command targets.
func targetOf(object client.Object) (string, types.UID) {
	command, ok := object.(*bus.Command)
	if !ok || command.TargetObject == nil || command.TargetObject.Kind != kind.Kind {
		return "", ""
	}
	if len(validation.IsDNS1123Subdomain(command.TargetObject.Name)) > 0 {
		return "", "" // no Job has such a name. Volcano's own definition accepts it
	}
	if target := command.TargetObject; target.UID == "" && target.APIVersion != "" && target.APIVersion != volcano.GroupVersion.String() {
		return "", "" // a Job of another API
	}
	return command.TargetObject.Name, command.TargetObject.UID
}

// expected reports whether a new pod has no node and no conditions yet. The plan that creates pods
// schedules a reconcile to count them, so their creation needs none.
func expected(child client.Object) bool {
	pod, isPod := child.(*corev1.Pod)
	return isPod && pod.DeletionTimestamp.IsZero() && pod.Spec.NodeName == "" && pod.Status.Phase == corev1.PodPending && len(pod.Status.Conditions) == 0
}

// describe returns what a VCJob requests: one pod set for each task that has pods. A job that was scaled to no pods
// gives its quota back, and queues anew when it has pods again.
func describe(job *volcano.Job, facts jobs.Facts) jobs.Description {
	mistake := validate(job, facts)
	job = within(job)
	d := jobs.Description{Queue: queueOf(job), PriorityClass: job.Spec.PriorityClassName}
	d.Paused = stopped(job) || job.Status.State.Reason == admittedAnewReason || totalOf(job) == 0 && !finished(job)
	least, elastic, plugins := leastOf(job), elasticTask(job), pluginsOf(job)
	together, optional := anyPods(job)
	over := tasksOver(job, optional, facts.Queued)
	for i := range job.Spec.Tasks {
		if over[i] {
			together -= countOf(&job.Spec.Tasks[i])
		}
	}
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		if countOf(task) == 0 || over[i] {
			continue
		}
		template := *task.Template.DeepCopy()
		template.Spec.SchedulerName = schedulerName(job, template.Spec.SchedulerName, facts)
		if template.Spec.HostNetwork {
			for _, p := range plugins { // no two pods are placed on a node whose port they take
				p.openPorts(job, nameOf(job, i), &template.Spec)
			}
		}
		set := kueue.PodSet{Name: kueue.PodSetReference(nameOf(job, i)), Count: countOf(task), Template: template}
		if least[i] < countOf(task) {
			set.MinCount = ptr.To(max(least[i], 1)) // the API has no smaller one: the annotation below says that it may be none
		}
		delete(set.Template.Annotations, muster.MinPodsAnnotation)
		if optional[i] {
			metav1.SetMetaDataAnnotation(&set.Template.ObjectMeta, muster.MinPodsAnnotation, strconv.Itoa(int(max(together, 1))))
		}
		delete(set.Template.Annotations, muster.MinReplicasAnnotation) // only one task is resized, and which is said here
		if i == elastic {
			metav1.SetMetaDataAnnotation(&set.Template.ObjectMeta, muster.MinReplicasAnnotation, strconv.Itoa(int(*set.MinCount)))
		}
		d.PodSets = append(d.PodSets, set)
	}
	if d.Mistake = mistake; mistake == nil {
		d.Mistake = jobs.RequestTopology(d.PodSets, func(int) jobs.Ranks { return jobs.Ranks{IndexLabel: volcano.TaskIndexKey} })
	}
	return d
}

// validate returns what is wrong with the job that the API server cannot validate.
func validate(job *volcano.Job, facts jobs.Facts) *jobs.Event {
	problem := ""
	switch cyclic := cyclicTask(job); {
	case cyclic != "":
		problem = fmt.Sprintf("The tasks' dependencies form a cycle, through task %s", cyclic)
	case job.Spec.NetworkTopology != nil && job.Spec.NetworkTopology.Mode != volcano.SoftNetworkTopologyMode:
		problem = "spec.networkTopology is hard, and Muster has no HyperNodes: ask for a domain with the annotation " +
			kueue.PodSetRequiredTopologyAnnotation + " on the pod templates instead"
	default:
		problem = cmp.Or(invalidArguments(job), invalidName(job, facts), invalidSize(job))
	}
	if problem != "" {
		return jobs.ImmutableMistake(problem)
	}
	if problem = cmp.Or(badSize(job), tooManyHosts(job)); problem != "" {
		return jobs.Mistake(problem) // replicas may be changed
	}
	return nil
}

// queueOf returns the queue that the job names.
func queueOf(job *volcano.Job) string { return cmp.Or(job.Spec.Queue, volcano.DefaultQueue) }

// nameOf returns the name of a task, which is Volcano's default if it has none.
func nameOf(job *volcano.Job, i int) string {
	return cmp.Or(job.Spec.Tasks[i].Name, fmt.Sprintf("%s%d", volcano.DefaultTaskPrefix, i))
}

// maxRetry returns how often the job may restart.
func maxRetry(job *volcano.Job) int32 { return cmp.Or(job.Spec.MaxRetry, volcano.DefaultMaxRetry) }

// schedulerName returns the scheduler for a pod, given the name in its template; "" for the default.
// Volcano's scheduler is used only where it is installed, as no other would bind the pod.
func schedulerName(job *volcano.Job, named string, facts jobs.Facts) string {
	named = cmp.Or(named, job.Spec.SchedulerName, volcano.SchedulerName)
	if named == volcano.SchedulerName && !facts.Served[podGroups] {
		return ""
	}
	return named
}

// groups returns the tasks as groups of replicas. They have no restart policy of their own: the job's
// policies decide.
func groups(job *volcano.Job) []replicas.Group {
	out := make([]replicas.Group, 0, len(job.Spec.Tasks))
	for i := range job.Spec.Tasks {
		out = append(out, replicas.Group{Name: nameOf(job, i), Count: countOf(&job.Spec.Tasks[i])})
	}
	return out
}
