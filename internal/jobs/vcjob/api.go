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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// kind is a VCJob's.
var kind = volcano.GroupVersion.WithKind("Job")

// podGroups are served where Volcano's scheduler is there.
var podGroups = schema.GroupResource{Group: "scheduling.volcano.sh", Resource: "podgroups"}

// gathers is for how long changes of pods are gathered.
const gathers = 100 * time.Millisecond

// countsEvery is for how long a status is kept back that tells of nothing but how many pods there are.
const countsEvery = time.Second

// API is the API of VCJobs. One without a queue goes to the queue default.
var API = jobs.API[*volcano.Job]{
	Resizes:    true,
	Gangs:      true,
	Kind:       kind,
	Queue:      jobs.QueueRequired,
	New:        func() *volcano.Job { return &volcano.Job{} },
	Owns:       []client.Object{&corev1.Pod{}, &bus.Command{}},
	Targets:    targetOf,
	Matters:    matters,
	Expected:   expected,
	BatchDelay: gathers,
	// Pods start and end one after the other, and the status counts them.
	StatusDelay: countsEvery,
	PodLabels: func(uid types.UID) map[string]string {
		return map[string]string{muster.JobUIDLabel: string(uid)}
	},
	QueueField: queueOf,
	AsksKinds:  []schema.GroupResource{podGroups},
	Describe:   describe,
	Plan:       plan,
}

// targetOf is the job that a Command is for.
func targetOf(object client.Object) (string, types.UID) {
	command, ok := object.(*bus.Command)
	if !ok || command.TargetObject == nil || command.TargetObject.Kind != kind.Kind {
		return "", ""
	}
	if target := command.TargetObject; target.UID == "" && target.APIVersion != "" && target.APIVersion != volcano.GroupVersion.String() {
		return "", "" // a Job of another API
	}
	return command.TargetObject.Name, command.TargetObject.UID
}

// matters reports whether a change of a child may change what is planned.
func matters(before, after client.Object) bool {
	pod, isPod := after.(*corev1.Pod)
	if !isPod {
		return false // Commands come and go
	}
	was := before.(*corev1.Pod)
	return replicas.Changed(was, pod) || restartsOf(was) != restartsOf(pod) || unschedulableSince(was) != unschedulableSince(pod)
}

// expected reports whether a pod that has come to be is one that nobody has bound yet: the plan that has pods made has the job looked at
// again to count them.
func expected(child client.Object) bool {
	pod, isPod := child.(*corev1.Pod)
	return isPod && pod.DeletionTimestamp.IsZero() && pod.Spec.NodeName == "" && pod.Status.Phase == corev1.PodPending && len(pod.Status.Conditions) == 0
}

// describe says what a VCJob asks for: one pod set for each task that has pods.
func describe(job *volcano.Job, facts jobs.Facts) jobs.Description {
	d := jobs.Description{Queue: queueOf(job), PriorityClass: job.Spec.PriorityClassName, Paused: stopped(job) || job.Status.State.Reason == admittedAnewReason}
	least, elastic := leastOf(job), elasticTask(job)
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		if countOf(task) == 0 {
			continue
		}
		template := *task.Template.DeepCopy()
		template.Spec.SchedulerName = schedulerName(job, template.Spec.SchedulerName, facts)
		set := kueue.PodSet{Name: kueue.PodSetReference(nameOf(job, i)), Count: countOf(task), Template: template}
		if least[i] < countOf(task) {
			// A pod set has at least one pod, so a task of which none must run counts with one.
			set.MinCount = ptr.To(max(least[i], 1))
		}
		delete(set.Template.Annotations, muster.MinReplicasAnnotation) // only one task is resized, and which is said here
		if i == elastic {
			metav1.SetMetaDataAnnotation(&set.Template.ObjectMeta, muster.MinReplicasAnnotation, strconv.Itoa(int(*set.MinCount)))
		}
		d.PodSets = append(d.PodSets, set)
	}
	if d.Mistake = mistakeOf(job); d.Mistake == nil {
		d.Mistake = jobs.RequestTopology(d.PodSets, func(int) jobs.Ranks { return jobs.Ranks{IndexLabel: volcano.TaskIndexKey} })
	}
	return d
}

// mistakeOf is what is wrong with the job that the API server could not tell.
func mistakeOf(job *volcano.Job) *jobs.Event {
	problem := ""
	switch circle := circleOf(job); {
	case circle != "":
		problem = fmt.Sprintf("The tasks depend on each other in a circle, through task %s", circle)
	case job.Spec.NetworkTopology != nil && job.Spec.NetworkTopology.Mode != volcano.SoftNetworkTopologyMode:
		problem = "spec.networkTopology is hard, and Muster has no HyperNodes: ask for a domain with the annotation " +
			kueue.PodSetRequiredTopologyAnnotation + " on the pod templates instead"
	default:
		problem = cmp.Or(wrongArguments(job), wrongName(job), mistakenSize(job))
	}
	if problem == "" {
		return nil
	}
	return jobs.FixedMistake(problem)
}

// queueOf is the queue that the job names.
func queueOf(job *volcano.Job) string { return cmp.Or(job.Spec.Queue, volcano.DefaultQueue) }

// nameOf is the name of a task: Volcano names those that have none.
func nameOf(job *volcano.Job, i int) string {
	return cmp.Or(job.Spec.Tasks[i].Name, fmt.Sprintf("%s%d", volcano.DefaultTaskPrefix, i))
}

// maxRetry is how often the job is restarted at most.
func maxRetry(job *volcano.Job) int32 { return cmp.Or(job.Spec.MaxRetry, volcano.DefaultMaxRetry) }

// schedulerName is the scheduler of a pod whose template names one, or none. Pods are
// given to Volcano's only where it is: nobody else would ever bind them.
func schedulerName(job *volcano.Job, named string, facts jobs.Facts) string {
	named = cmp.Or(named, job.Spec.SchedulerName, volcano.SchedulerName)
	if named == volcano.SchedulerName && !facts.Served[podGroups] {
		return ""
	}
	return named
}

// groups are the tasks as package replicas knows them. What is restarted is decided by
// policies, not for each replica alone.
func groups(job *volcano.Job) []replicas.Group {
	out := make([]replicas.Group, 0, len(job.Spec.Tasks))
	for i := range job.Spec.Tasks {
		out = append(out, replicas.Group{Name: nameOf(job, i), Count: countOf(&job.Spec.Tasks[i])})
	}
	return out
}
