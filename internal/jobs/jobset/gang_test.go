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

// lookWithGangs plans on a cluster that supports gangs.
func lookWithGangs(js *jobset.JobSet, admission jobs.Admission, children ...client.Object) jobs.Plan {
	return plan(jobs.Seen[*jobset.JobSet]{Job: js, Admission: admission, Children: children, Facts: jobs.Facts{NativeGangs: true}, Now: now})
}

// firsts returns the writes of Plan.First.
func firsts(p jobs.Plan) []string {
	var out []string
	for _, w := range p.First {
		group := w.Object().(*schedulingv1beta1.PodGroup)
		out = append(out, fmt.Sprintf("%s %s: %d", w.Verb(), group.Name, group.Spec.SchedulingPolicy.Gang.MinCount))
	}
	return out
}

func groupOfJob(job *batchv1.Job) string {
	if job.Spec.Template.Spec.SchedulingGroup == nil {
		return ""
	}
	return *job.Spec.Template.Spec.SchedulingGroup.PodGroupName
}

func TestJobsJoinAGangThatIsCreatedFirst(t *testing.T) {
	p := lookWithGangs(twoByFour(), grantPlaces())
	same(t, "first", []string{"create js-workers: 8"}, firsts(p))
	group := p.First[0].Object()
	if owner := metav1.GetControllerOf(group); owner == nil || owner.UID != "js-uid" || group.GetNamespace() != "ns" {
		t.Errorf("the gang belongs to %+v", owner)
	}
	for _, name := range []string{"js-workers-0", "js-workers-1"} {
		if got := groupOfJob(createdJob(t, p, name)); got != "js-workers" {
			t.Errorf("%s joins %q", name, got)
		}
	}
}

// TestGangOfALaterReplicatedJobIsCreatedAtOnce, independently of the gangs of earlier ones.
func TestGangOfALaterReplicatedJobIsCreatedAtOnce(t *testing.T) {
	js, admission := twoByFour(), grantPlaces()
	later := *js.Spec.ReplicatedJobs[0].DeepCopy()
	later.Name, later.DependsOn = "later", []jobset.DependsOn{{Name: "workers", Status: jobset.DependencyComplete}}
	js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, later)
	granted := admission.PodSets["workers"]
	granted.Places = nil
	admission.PodSets["later"] = granted
	p := lookWithGangs(js, admission)
	same(t, "first", []string{"create js-workers: 8", "create js-later: 8"}, firsts(p))
	for _, write := range p.Writes {
		if name := write.Object().GetName(); strings.HasPrefix(name, "js-later-") {
			t.Errorf("%s %s before those that it waits for", write.Verb(), name)
		}
	}
}

func TestJobsThatJoinNoGang(t *testing.T) {
	own := twoByFour()
	own.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("mine")}
	alone := twoByFour()
	alone.Spec.ReplicatedJobs[0].Replicas = 1
	alone.Spec.ReplicatedJobs[0].Template.Spec.Parallelism, alone.Spec.ReplicatedJobs[0].Template.Spec.Completions = ptr.To[int32](1), ptr.To[int32](1)
	for name, tc := range map[string]struct {
		js        *jobset.JobSet
		admission jobs.Admission
		native    bool
		group     string
	}{
		"a pod alone":                                         {alone, grantPlaces(), true, ""},
		"a JobSet without a queue":                            {twoByFour(), unqueued, true, ""},
		"on a cluster without gangs":                          {twoByFour(), grantPlaces(), false, ""},
		"one that says of which it is":                        {own, grantPlaces(), true, "mine"},
		"Jobs that find their domains by each other's pods":   {apart(), grantPlaces(), true, ""},
		"pods that are given their places one by one":         {twoByFour(), grantPlaces(on("a", 2), on("b", 2), on("c", 3), on("d", 1)), true, ""},
		"but those that were given theirs are a gang as well": {apart(), grantPlaces(on("a", 4), on("c", 4)), true, "js-workers"},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(jobs.Seen[*jobset.JobSet]{Job: tc.js, Admission: tc.admission, Facts: jobs.Facts{NativeGangs: tc.native}, Now: now})
			if got := groupOfJob(createdJob(t, p, "js-workers-0")); got != tc.group || len(p.First) > 0 != (tc.group == "js-workers") {
				t.Errorf("joins %q, first %v", got, firsts(p))
			}
		})
	}
}

// ran returns the JobSet with both Jobs, each with this many of four pods running and ready.
func ran(edit func(first, second *batchv1.Job)) (*jobset.JobSet, []client.Object) {
	p := lookWithGangs(twoByFour(), grantPlaces())
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
	}
	for name, tc := range map[string]struct {
		edit func(first, second *batchv1.Job)
		want []string
	}{
		"nothing happened":                                   {func(_, _ *batchv1.Job) {}, nil},
		"pods ended well, and the others run":                {func(first, _ *batchv1.Job) { pods(first, 2, 2, 2) }, nil},
		"pods ended well, and one came anew":                 {func(first, _ *batchv1.Job) { pods(first, 2, 1, 2) }, []string{"change js-workers: 6"}},
		"one came anew while all are still wanted":           {func(first, _ *batchv1.Job) { pods(first, 4, 3, 0) }, nil},
		"a Job ended, and the other has a new pod":           {func(first, second *batchv1.Job) { jobBuilder{first}.succeeded(); pods(second, 4, 3, 0) }, []string{"change js-workers: 4"}},
		"indexes failed for good, and another is tried anew": {func(first, _ *batchv1.Job) { first.Status.FailedIndexes = ptr.To("1-2"); pods(first, 2, 1, 0) }, []string{"change js-workers: 6"}},
		"all ended": {func(first, second *batchv1.Job) { jobBuilder{first}.succeeded(); jobBuilder{second}.succeeded() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			js, children := ran(tc.edit)
			same(t, "first", tc.want, firsts(lookWithGangs(js, grantPlaces(), children...)))
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
		second *batchv1.Job // nil if it is not there
		ready  int32
		want   []string
	}{
		"one pod was left, and it comes anew":                {sized(1, 1), nil, 0, []string{"change js-workers: 1"}},
		"one pod is left, and it is ready":                   {sized(1, 1), nil, 1, nil},
		"the other Job is made anew on its own":              {sized(2, 1), jobBuilder{job("workers", 1).job}.ready().job, 0, []string{"change js-workers: 1"}},
		"the other Job is made anew on its own, and all run": {sized(2, 1), jobBuilder{job("workers", 1).job}.ready().job, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			js, children := ran(func(first, second *batchv1.Job) { pods(first, 1, tc.ready) })
			tc.edit(js)
			children = children[:3]
			if tc.second != nil {
				pods(tc.second, 1, 1)
				children = append(children, tc.second)
			}
			same(t, "first", tc.want, firsts(lookWithGangs(js, grantPlaces(), children...)))
		})
	}
}

// TestGangKeepsItsCountWhileExcludedJobsLeave, so that the remaining pods stay a gang.
func TestGangKeepsItsCountWhileExcludedJobsLeave(t *testing.T) {
	js, children := ran(func(first, second *batchv1.Job) {
		first.Status.Ready = nil
		second.Spec.Template.Spec.SchedulingGroup = nil
	})
	same(t, "first", []string{"change js-workers: 4"}, firsts(lookWithGangs(js, grantPlaces(), children...)))
}

func TestGangIsCompleteAgainAfterARestart(t *testing.T) {
	js, children := ran(func(_, _ *batchv1.Job) {})
	group := children[1].(*schedulingv1beta1.PodGroup)
	group.Spec.SchedulingPolicy.Gang.MinCount = 3
	js.Status.Restarts = 1
	same(t, "first", []string{"change js-workers: 8"}, firsts(lookWithGangs(js, grantPlaces(), children[:2]...)))
}

func TestJobsJoinNoGangIfOthersRunWithoutOne(t *testing.T) {
	js, children := ran(func(first, _ *batchv1.Job) { first.Spec.Template.Spec.SchedulingGroup = nil })
	p := lookWithGangs(js, grantPlaces(), children[0], children[2])
	if got := groupOfJob(createdJob(t, p, "js-workers-1")); got != "" || len(p.First) > 0 {
		t.Errorf("joins %q, first %v", got, firsts(p))
	}
}

// TestJobThatLeavesItsGangIsRecreated, for instance because its pods now get their places one by one.
func TestJobThatLeavesItsGangIsRecreated(t *testing.T) {
	js, children := ran(func(first, second *batchv1.Job) {
		first.Spec.Suspend, first.Status.Active = ptr.To(true), 0
		second.Spec.Suspend, second.Status.Active = ptr.To(true), 0
	})
	p := lookWithGangs(js, grantPlaces(on("a", 2), on("b", 2), on("c", 3), on("d", 1)), children...)
	same(t, "writes", []string{"delete Job js-workers-0", "delete Job js-workers-1"}, writes(p)[:2])
	same(t, "first", nil, firsts(p))
}

// TestJobsOfAGangNameItsPriorityClass if possible: kube-scheduler binds no pods of a gang if some have another
// priority.
func TestJobsOfAGangNameItsPriorityClass(t *testing.T) {
	class := func(name string, value int32, byDefault bool) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: byDefault}
	}
	type classes = map[string]*schedulingv1.PriorityClass
	look := func(js *jobset.JobSet, classes classes, children ...client.Object) jobs.Plan {
		facts := jobs.Facts{NativeGangs: true, Priorities: jobs.PriorityFacts{Pod: classes}}
		return plan(jobs.Seen[*jobset.JobSet]{Job: js, Admission: grantPlaces(), Children: children, Facts: facts, Now: now})
	}
	want := func(p jobs.Plan, group, class string) {
		t.Helper()
		job := createdJob(t, p, "js-workers-0")
		if got := groupOfJob(job); got != group || job.Spec.Template.Spec.PriorityClassName != class {
			t.Errorf("joins %q as %q, want %q as %q", got, job.Spec.Template.Spec.PriorityClassName, group, class)
		}
		for _, w := range p.First {
			if g := w.Object().(*schedulingv1beta1.PodGroup); g.Name != group || g.Spec.PriorityClassName != class {
				t.Errorf("the group %s is made as %q", g.Name, g.Spec.PriorityClassName)
			}
		}
	}
	want(look(twoByFour(), classes{"five": class("five", 5, true)}), "js-workers", "five")

	js, children := ran(func(first, second *batchv1.Job) {
		first.Spec.Suspend, first.Status.Active = ptr.To(true), 0
		second.Spec.Suspend, second.Status.Active = ptr.To(true), 0
	})
	service, group := children[0], children[1].(*schedulingv1beta1.PodGroup)
	group.Spec.PriorityClassName, group.Spec.Priority = "five", ptr.To[int32](5)
	another := classes{"five": class("five", 5, false), "nine": class("nine", 9, true)}
	want(look(js, another, service, group), "js-workers", "five")

	group.Spec.PriorityClassName, group.Spec.Priority = "", ptr.To[int32](0)
	want(look(js, another, service, group), "js-workers.p9", "nine")
	same(t, "writes", []string{"delete Job js-workers-0", "delete Job js-workers-1"}, writes(look(js, another, children...))[:2])
	want(look(js, another, service, group, children[3]), "", "")
}

// TestDefaultClassCreatedBetweenAGangAndItsPods: kube-scheduler would not bind the pods. Jobs without a ready pod are
// recreated in a gang of the right priority; the others, whose pods are bound already, are left alone.
func TestDefaultClassCreatedBetweenAGangAndItsPods(t *testing.T) {
	nine := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "nine"}, Value: 9, GlobalDefault: true}
	look := func(js *jobset.JobSet, children ...client.Object) jobs.Plan {
		facts := jobs.Facts{NativeGangs: true, Priorities: jobs.PriorityFacts{Pod: map[string]*schedulingv1.PriorityClass{"nine": nine}}}
		return plan(jobs.Seen[*jobset.JobSet]{Job: js, Admission: grantPlaces(), Children: children, Facts: facts, Now: now})
	}
	js, children := ran(func(first, second *batchv1.Job) {
		first.Status.Ready, second.Status.Ready = nil, nil
	})
	group := children[1].(*schedulingv1beta1.PodGroup)
	group.Spec.Priority = ptr.To[int32](0)
	deleted := func(p jobs.Plan) []string {
		return slices.DeleteFunc(writes(p), func(write string) bool { return !strings.HasPrefix(write, "delete ") })
	}
	same(t, "deleted", []string{"delete Job js-workers-0", "delete Job js-workers-1"}, deleted(look(js, children...)))

	// One is gone, the other is going: what is made then waits for it in the gang that they will both be of.
	going := children[3].(*batchv1.Job)
	going.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	p := look(js, children[0], group, going)
	same(t, "first", []string{"create js-workers.p9: 8"}, firsts(p))
	if job := createdJob(t, p, "js-workers-0"); groupOfJob(job) != "js-workers.p9" || job.Spec.Template.Spec.PriorityClassName != "nine" {
		t.Errorf("it joins %q as %q", groupOfJob(job), job.Spec.Template.Spec.PriorityClassName)
	}

	for what, change := range map[string]func(*batchv1.Job, *schedulingv1beta1.PodGroup){
		"ready":                   func(job *batchv1.Job, _ *schedulingv1beta1.PodGroup) { job.Status.Ready = ptr.To[int32](4) },
		"succeeded":               func(job *batchv1.Job, _ *schedulingv1beta1.PodGroup) { job.Status.Succeeded = 1 },
		"of the same priority":    func(_ *batchv1.Job, g *schedulingv1beta1.PodGroup) { g.Spec.Priority = ptr.To[int32](9) },
		"where nobody sees to it": func(_ *batchv1.Job, g *schedulingv1beta1.PodGroup) { g.Spec.Priority = nil },
		"of a Job just made":      func(job *batchv1.Job, _ *schedulingv1beta1.PodGroup) { job.CreationTimestamp = metav1.NewTime(now) },
		"of a class that has gone": func(job *batchv1.Job, _ *schedulingv1beta1.PodGroup) {
			job.Spec.Template.Spec.PriorityClassName = "gone"
		},
		"of a group of the user's": func(job *batchv1.Job, g *schedulingv1beta1.PodGroup) {
			g.Name, job.Spec.Template.Spec.SchedulingGroup.PodGroupName = "mine", ptr.To("mine")
		},
	} {
		js, children := ran(func(first, second *batchv1.Job) { first.Status.Ready, second.Status.Ready = nil, nil })
		group := children[1].(*schedulingv1beta1.PodGroup)
		group.Spec.Priority = ptr.To[int32](0)
		for _, child := range children[2:] {
			change(child.(*batchv1.Job), group)
		}
		p := look(js, children...)
		if gone := deleted(p); len(gone) > 0 || p.Due.After(now) != (what == "of a Job just made") {
			t.Errorf("pods that are %s: %v, due %s", what, gone, p.Due)
		}
		if what == "of a Job just made" {
			same(t, "first", nil, firsts(p)) // they are still bound whole, if their class comes back
		}
	}
}

// TestRefusedPodGroupIsReported: no pod of a gang is created before its PodGroup, so a JobSet that is refused it
// returns its quota.
func TestRefusedPodGroupIsReported(t *testing.T) {
	refused := map[types.UID][]jobs.Refusal{"js-uid": {{Message: "no PriorityClass", Last: now}}}
	admission := grantPlaces()
	admission.UnreadySince = now.Add(-time.Minute)
	look := func(children ...client.Object) string {
		return plan(jobs.Seen[*jobset.JobSet]{Job: twoByFour(), Admission: admission, Children: children, Refusals: refused,
			Lacked: jobs.Lacked{Pods: 1, Since: now.Add(-time.Minute)},
			Facts:  jobs.Facts{NativeGangs: true}, Now: now}).Progress.Refused
	}
	if got := look(); got != "no PriorityClass" {
		t.Errorf("its queue is told %q", got)
	}
	if got := look(lookWithGangs(twoByFour(), grantPlaces()).First[0].Object()); got != "" {
		t.Errorf("its queue is told %q, and the PodGroup is there", got)
	}
}
