package jobset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// planWithGangs returns the plan on a cluster that supports gangs.
func planWithGangs(js *jobset.JobSet, admission jobs.Admission, children ...client.Object) jobs.Plan {
	return plan(jobs.Seen[*jobset.JobSet]{Job: js, Admission: admission, Children: children,
		Facts: jobs.Facts{NativeGangs: true}, Now: now})
}

// firstWrites returns the writes of Plan.First, which are those of PodGroups, as "verb name: minimum".
func firstWrites(p jobs.Plan) []string {
	var out []string
	for _, w := range p.First {
		group := w.Object().(*schedulingv1beta1.PodGroup)
		out = append(out, fmt.Sprintf("%s %s: %d", w.Verb(), group.Name, group.Spec.SchedulingPolicy.Gang.MinCount))
	}
	return out
}

// groupOfJob returns the PodGroup that the Job's pods join; "" for none.
func groupOfJob(job *batchv1.Job) string {
	if job.Spec.Template.Spec.SchedulingGroup == nil {
		return ""
	}
	return *job.Spec.Template.Spec.SchedulingGroup.PodGroupName
}

func TestJobsJoinAGangThatIsCreatedFirst(t *testing.T) {
	p := planWithGangs(twoByFour(), grantPlaces())
	same(t, "first", []string{"create js-workers: 8"}, firstWrites(p))
	group := p.First[0].Object()
	if owner := metav1.GetControllerOf(group); owner == nil || owner.UID != "js-uid" || group.GetNamespace() != "ns" {
		t.Errorf("the PodGroup belongs to %+v, want the JobSet", owner)
	}
	for _, name := range []string{"js-workers-0", "js-workers-1"} {
		if got := groupOfJob(createdJob(t, p, name)); got != "js-workers" {
			t.Errorf("%s joins the PodGroup %q, want js-workers", name, got)
		}
	}
}

// TestGangOfALaterReplicatedJobIsCreatedAtOnce: the PodGroup of a replicated job that waits for another is created with
// the first ones, its Jobs are not.
func TestGangOfALaterReplicatedJobIsCreatedAtOnce(t *testing.T) {
	js, admission := twoByFour(), grantPlaces()
	later := *js.Spec.ReplicatedJobs[0].DeepCopy()
	later.Name, later.DependsOn = "later", []jobset.DependsOn{{Name: "workers", Status: jobset.DependencyComplete}}
	js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, later)
	granted := admission.PodSets["workers"]
	granted.Places = nil
	admission.PodSets["later"] = granted
	p := planWithGangs(js, admission)
	same(t, "first", []string{"create js-workers: 8", "create js-later: 8"}, firstWrites(p))
	for _, write := range p.Writes {
		if name := write.Object().GetName(); strings.HasPrefix(name, "js-later-") {
			t.Errorf("%s %s before the Jobs that it waits for have ended", write.Verb(), name)
		}
	}
}

// closedTo returns the admission with a taint on these nodes.
func closedTo(admission jobs.Admission, nodes ...string) jobs.Admission {
	for _, name := range nodes {
		admission.PodSets["workers"].Nodes[name].Spec.Taints = []corev1.Taint{{Key: "example.com/gpu",
			Effect: corev1.TaintEffectNoSchedule}}
	}
	return admission
}

func TestJobsThatJoinNoGang(t *testing.T) {
	own := twoByFour()
	own.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.SchedulingGroup =
		&corev1.PodSchedulingGroup{PodGroupName: ptr.To("mine")}
	alone := twoByFour()
	alone.Spec.ReplicatedJobs[0].Replicas = 1
	alone.Spec.ReplicatedJobs[0].Template.Spec.Parallelism, alone.Spec.ReplicatedJobs[0].Template.Spec.Completions =
		ptr.To[int32](1), ptr.To[int32](1)
	for name, tc := range map[string]struct {
		js        *jobset.JobSet
		admission jobs.Admission
		native    bool
		group     string
	}{
		"single pod":                    {alone, grantPlaces(), true, ""},
		"without a queue":               {twoByFour(), unqueued, true, ""},
		"cluster without gangs":         {twoByFour(), grantPlaces(), false, ""},
		"group set by the user":         {own, grantPlaces(), true, "mine"},
		"exclusive Jobs without places": {exclusiveSet(), grantPlaces(), true, ""},
		"pods with topology gates":      {twoByFour(), grantPlaces(on("a", 2), on("b", 2), on("c", 3), on("d", 1)), true, ""},
		"exclusive Jobs with places":    {exclusiveSet(), grantPlaces(on("a", 4), on("c", 4)), true, "js-workers"},
		"nodes closed to others":        {twoByFour(), closedTo(grantPlaces(on("a", 4), on("c", 4)), "a", "c"), true, ""},
		"one node open to others": {twoByFour(), closedTo(grantPlaces(on("a", 4), on("c", 4)), "a"),
			true, "js-workers"},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(jobs.Seen[*jobset.JobSet]{Job: tc.js, Admission: tc.admission,
				Facts: jobs.Facts{NativeGangs: tc.native}, Now: now})
			if got := groupOfJob(createdJob(t, p, "js-workers-0")); got != tc.group ||
				len(p.First) > 0 != (tc.group == "js-workers") {
				t.Errorf("the Job joins %q, first writes %v; want the PodGroup %q", got, firstWrites(p), tc.group)
			}
		})
	}
}

// runningGang returns the JobSet and its children, whose two Jobs run four ready pods each, changed by edit.
func runningGang(edit func(first, second *batchv1.Job)) (*jobset.JobSet, []client.Object) {
	p := planWithGangs(twoByFour(), grantPlaces())
	children := []client.Object{service(), p.First[0].Object()}
	var list []*batchv1.Job
	for _, name := range []string{"js-workers-0", "js-workers-1"} {
		for _, w := range p.Writes {
			if job, ok := w.Object().(*batchv1.Job); ok && job.Name == name {
				job.Status.Active, job.Status.Ready = 4, ptr.To[int32](4)
				list, children = append(list, job), append(children, job)
			}
		}
	}
	edit(list[0], list[1])
	return twoByFour(), children
}

func TestGangCountsThePodsThatStillHaveToRun(t *testing.T) {
	pods := func(job *batchv1.Job, active, ready, succeeded int32) {
		job.Status.Active, job.Status.Ready, job.Status.Succeeded = active, ptr.To(ready), succeeded
		if succeeded > 0 {
			job.Status.CompletedIndexes = fmt.Sprintf("0-%d", succeeded-1)
		}
	}
	for name, tc := range map[string]struct {
		edit func(first, second *batchv1.Job)
		want []string
	}{
		"no change":                      {func(_, _ *batchv1.Job) {}, nil},
		"pods succeeded, the others run": {func(first, _ *batchv1.Job) { pods(first, 2, 2, 2) }, nil},
		"pods succeeded, one recreated": {func(first, _ *batchv1.Job) { pods(first, 2, 1, 2) },
			[]string{"change js-workers: 6"}},
		"one recreated, none succeeded": {func(first, _ *batchv1.Job) { pods(first, 4, 3, 0) }, nil},
		"a Job succeeded, a pod of the other recreated": {func(first, second *batchv1.Job) {
			jobBuilder{first}.succeeded()
			pods(second, 4, 3, 0)
		}, []string{"change js-workers: 4"}},
		"indexes failed for good, a pod recreated": {func(first, _ *batchv1.Job) {
			first.Status.FailedIndexes = ptr.To("1-2")
			pods(first, 2, 1, 0)
		}, []string{"change js-workers: 6"}},
		"a Job succeeded while it was being suspended": {func(first, second *batchv1.Job) {
			jobBuilder{first}.suspended().succeeded()
			pods(second, 4, 3, 0)
		}, []string{"change js-workers: 4"}},
		"all succeeded": {func(first, second *batchv1.Job) {
			jobBuilder{first}.succeeded()
			jobBuilder{second}.succeeded()
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			js, children := runningGang(tc.edit)
			same(t, "first", tc.want, firstWrites(planWithGangs(js, grantPlaces(), children...)))
		})
	}
}

// TestRemainingPodGroupsAreRelaxed: otherwise replacement pods would wait for pods that do not come back.
func TestRemainingPodGroupsAreRelaxed(t *testing.T) {
	pods := func(job *batchv1.Job, pods, ready int32) {
		job.Spec.Parallelism, job.Spec.Completions = &pods, &pods
		job.Status.Active, job.Status.Ready = pods, &ready
	}
	sized := func(replicas, size int32) func(js *jobset.JobSet) {
		return func(js *jobset.JobSet) {
			rj := &js.Spec.ReplicatedJobs[0]
			rj.Replicas, rj.Template.Spec.Parallelism, rj.Template.Spec.Completions = replicas, &size, &size
		}
	}
	for name, tc := range map[string]struct {
		edit   func(js *jobset.JobSet)
		second *batchv1.Job // nil if it does not exist
		ready  int32
		want   []string
	}{
		"single pod left, recreated": {sized(1, 1), nil, 0, []string{"change js-workers: 1"}},
		"single pod left, ready":     {sized(1, 1), nil, 1, nil},
		"other Job recreated alone": {sized(2, 1), jobBuilder{job("workers", 1).job}.ready().job, 0,
			[]string{"change js-workers: 1"}},
		"other Job recreated alone, all ready": {sized(2, 1), jobBuilder{job("workers", 1).job}.ready().job, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			js, children := runningGang(func(first, second *batchv1.Job) { pods(first, 1, tc.ready) })
			tc.edit(js)
			children = children[:3]
			if tc.second != nil {
				pods(tc.second, 1, 1)
				children = append(children, tc.second)
			}
			same(t, "first", tc.want, firstWrites(planWithGangs(js, grantPlaces(), children...)))
		})
	}
}

// TestGangKeepsItsCountWhileExcludedJobsLeave: the pods of a Job that is in no gang do not count, and the remaining
// ones stay a gang.
func TestGangKeepsItsCountWhileExcludedJobsLeave(t *testing.T) {
	js, children := runningGang(func(first, second *batchv1.Job) {
		first.Status.Ready = nil
		second.Spec.Template.Spec.SchedulingGroup = nil
	})
	same(t, "first", []string{"change js-workers: 4"}, firstWrites(planWithGangs(js, grantPlaces(), children...)))
}

// TestGangIsCompleteAgainAfterARestart: the minimum of a PodGroup that was lowered is that of all pods again.
func TestGangIsCompleteAgainAfterARestart(t *testing.T) {
	js, children := runningGang(func(_, _ *batchv1.Job) {})
	group := children[1].(*schedulingv1beta1.PodGroup)
	group.Spec.SchedulingPolicy.Gang.MinCount = 3
	js.Status.Restarts = 1
	same(t, "first", []string{"change js-workers: 8"}, firstWrites(planWithGangs(js, grantPlaces(), children[:2]...)))
}

// TestJobsJoinNoGangIfOthersRunWithoutOne: a gang whose minimum counts all pods would wait for those for ever.
func TestJobsJoinNoGangIfOthersRunWithoutOne(t *testing.T) {
	js, children := runningGang(func(first, _ *batchv1.Job) { first.Spec.Template.Spec.SchedulingGroup = nil })
	p := planWithGangs(js, grantPlaces(), children[0], children[2])
	if got := groupOfJob(createdJob(t, p, "js-workers-1")); got != "" || len(p.First) > 0 {
		t.Errorf("the Job joins %q, first writes %v, want neither", got, firstWrites(p))
	}
}

// TestJobThatLeavesItsGangIsRecreated, for instance because its pods now get their places one by one.
func TestJobThatLeavesItsGangIsRecreated(t *testing.T) {
	js, children := runningGang(func(first, second *batchv1.Job) {
		first.Spec.Suspend, first.Status.Active = ptr.To(true), 0
		second.Spec.Suspend, second.Status.Active = ptr.To(true), 0
	})
	p := planWithGangs(js, grantPlaces(on("a", 2), on("b", 2), on("c", 3), on("d", 1)), children...)
	same(t, "writes", []string{"delete Job js-workers-0", "delete Job js-workers-1"}, writes(p)[:2])
	same(t, "first", nil, firstWrites(p))
}

// TestJobsOfAGangNameItsPriorityClass if possible: kube-scheduler binds no pods of a gang if some have another
// priority.
func TestJobsOfAGangNameItsPriorityClass(t *testing.T) {
	class := func(name string, value int32, byDefault bool) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: byDefault}
	}
	type classes = map[string]*schedulingv1.PriorityClass
	planWith := func(js *jobset.JobSet, classes classes, children ...client.Object) jobs.Plan {
		facts := jobs.Facts{NativeGangs: true, Priorities: jobs.PriorityFacts{Pod: classes}}
		return plan(jobs.Seen[*jobset.JobSet]{Job: js, Admission: grantPlaces(), Children: children, Facts: facts, Now: now})
	}
	check := func(p jobs.Plan, group, class string) {
		t.Helper()
		job := createdJob(t, p, "js-workers-0")
		if got := groupOfJob(job); got != group || job.Spec.Template.Spec.PriorityClassName != class {
			t.Errorf("the Job joins %q with the class %q, want %q with %q", got,
				job.Spec.Template.Spec.PriorityClassName, group, class)
		}
		for _, w := range p.First {
			if g := w.Object().(*schedulingv1beta1.PodGroup); g.Name != group || g.Spec.PriorityClassName != class {
				t.Errorf("the PodGroup %s is created with the class %q, want %q with %q", g.Name,
					g.Spec.PriorityClassName, group, class)
			}
		}
	}
	check(planWith(twoByFour(), classes{"five": class("five", 5, true)}), "js-workers", "five")

	js, children := runningGang(func(first, second *batchv1.Job) {
		first.Spec.Suspend, first.Status.Active = ptr.To(true), 0
		second.Spec.Suspend, second.Status.Active = ptr.To(true), 0
	})
	service, group := children[0], children[1].(*schedulingv1beta1.PodGroup)
	group.Spec.PriorityClassName, group.Spec.Priority = "five", ptr.To[int32](5)
	another := classes{"five": class("five", 5, false), "nine": class("nine", 9, true)}
	check(planWith(js, another, service, group), "js-workers", "five")

	group.Spec.PriorityClassName, group.Spec.Priority = "", ptr.To[int32](0)
	check(planWith(js, another, service, group), "js-workers.p9", "nine")
	same(t, "writes", []string{"delete Job js-workers-0", "delete Job js-workers-1"},
		writes(planWith(js, another, children...))[:2])
	check(planWith(js, another, service, group, children[3]), "", "")
}

// TestDefaultClassCreatedBetweenAGangAndItsPods: kube-scheduler would not bind the pods. Jobs without a ready pod are
// recreated in a gang of the right priority; the others, whose pods are bound already, are left alone.
func TestDefaultClassCreatedBetweenAGangAndItsPods(t *testing.T) {
	nine := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "nine"}, Value: 9, GlobalDefault: true}
	planWith := func(js *jobset.JobSet, children ...client.Object) jobs.Plan {
		facts := jobs.Facts{NativeGangs: true,
			Priorities: jobs.PriorityFacts{Pod: map[string]*schedulingv1.PriorityClass{"nine": nine}}}
		return plan(jobs.Seen[*jobset.JobSet]{Job: js, Admission: grantPlaces(), Children: children, Facts: facts, Now: now})
	}
	js, children := runningGang(func(first, second *batchv1.Job) {
		first.Status.Ready, second.Status.Ready = nil, nil
	})
	group := children[1].(*schedulingv1beta1.PodGroup)
	group.Spec.Priority = ptr.To[int32](0)
	deleted := func(p jobs.Plan) []string {
		return slices.DeleteFunc(writes(p), func(write string) bool { return !strings.HasPrefix(write, "delete ") })
	}
	same(t, "deleted", []string{"delete Job js-workers-0", "delete Job js-workers-1"}, deleted(planWith(js, children...)))

	// One Job is gone, the other terminates: the new Job waits for the other's successor in the gang that both will be in.
	terminating := children[3].(*batchv1.Job)
	terminating.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	p := planWith(js, children[0], group, terminating)
	same(t, "first", []string{"create js-workers.p9: 8"}, firstWrites(p))
	if job := createdJob(t, p, "js-workers-0"); groupOfJob(job) != "js-workers.p9" ||
		job.Spec.Template.Spec.PriorityClassName != "nine" {
		t.Errorf("the Job joins %q with the class %q, want js-workers.p9 with nine", groupOfJob(job),
			job.Spec.Template.Spec.PriorityClassName)
	}

	for name, change := range map[string]func(*batchv1.Job, *schedulingv1beta1.PodGroup){
		"ready pods": func(job *batchv1.Job, _ *schedulingv1beta1.PodGroup) {
			job.Status.Ready = ptr.To[int32](4)
		},
		"succeeded pods": func(job *batchv1.Job, _ *schedulingv1beta1.PodGroup) { job.Status.Succeeded = 1 },
		"same priority": func(_ *batchv1.Job, g *schedulingv1beta1.PodGroup) {
			g.Spec.Priority = ptr.To[int32](9)
		},
		"PodGroup without a priority": func(_ *batchv1.Job, g *schedulingv1beta1.PodGroup) { g.Spec.Priority = nil },
		"new Job": func(job *batchv1.Job, _ *schedulingv1beta1.PodGroup) {
			job.CreationTimestamp = metav1.NewTime(now)
		},
		"class deleted": func(job *batchv1.Job, _ *schedulingv1beta1.PodGroup) {
			job.Spec.Template.Spec.PriorityClassName = "gone"
		},
		"group set by the user": func(job *batchv1.Job, g *schedulingv1beta1.PodGroup) {
			g.Name, job.Spec.Template.Spec.SchedulingGroup.PodGroupName = "mine", ptr.To("mine")
		},
	} {
		js, children := runningGang(func(first, second *batchv1.Job) { first.Status.Ready, second.Status.Ready = nil, nil })
		group := children[1].(*schedulingv1beta1.PodGroup)
		group.Spec.Priority = ptr.To[int32](0)
		for _, child := range children[2:] {
			change(child.(*batchv1.Job), group)
		}
		p := planWith(js, children...)
		if got := deleted(p); len(got) > 0 || p.Due.After(now) != (name == "new Job") {
			t.Errorf("%s: writes %v, due %s; want no deletions, and a due time for a new Job only", name, got, p.Due)
		}
		if name == "new Job" {
			same(t, "first", nil, firstWrites(p)) // the pods would be bound together if their class came back
		}
	}
}

// TestRefusedPodGroupIsReported: no pod of a gang is created before its PodGroup, so a JobSet whose PodGroup is refused
// releases its quota.
func TestRefusedPodGroupIsReported(t *testing.T) {
	refused := map[types.UID][]jobs.Refusal{"js-uid": {{Message: "no PriorityClass", Last: now}}}
	admission := grantPlaces()
	admission.UnreadySince = now.Add(-time.Minute)
	planWith := func(children ...client.Object) string {
		return plan(jobs.Seen[*jobset.JobSet]{Job: twoByFour(), Admission: admission, Children: children, Refusals: refused,
			MissingPods: jobs.MissingPods{Pods: 1, Since: now.Add(-time.Minute)},
			Facts:       jobs.Facts{NativeGangs: true}, Now: now}).Progress.Refused
	}
	if got := planWith(); got != "no PriorityClass" {
		t.Errorf("Refused = %q, want the message of the refusal", got)
	}
	if got := planWith(planWithGangs(twoByFour(), grantPlaces()).First[0].Object()); got != "" {
		t.Errorf("Refused = %q, want none: the PodGroup exists", got)
	}
}

// TestFinallyFailedPodIsNotMissing: its Job goes on without it, so a refusal that was overcome does not end the JobSet.
func TestFinallyFailedPodIsNotMissing(t *testing.T) {
	workers := job("workers", 0).of(4).withPods(3, 0)
	workers.job.Status.FailedIndexes = ptr.To("2")
	seen := seenOf(newSet().workersOf(4).js, quota(8, 8),
		of(job("leader", 0).ready(), workers, job("workers", 1).of(4).withPods(4, 0)))
	seen.Admission.UnreadySince = now.Add(-time.Hour)
	seen.Refusals = map[types.UID][]jobs.Refusal{workers.job.UID: {{Message: "exceeded quota",
		Last: now.Add(-time.Minute)}}}
	seen.MissingPods = jobs.MissingPods{Pods: 1, Since: now.Add(-time.Minute)}
	if p := plan(seen).Progress; p.Missing != 0 || p.Refused != "" {
		t.Errorf("%d pods are missing, refused for %q; want none", p.Missing, p.Refused)
	}
}
