package jobs_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
)

// crew simulates a job that recreates pods that were deleted before they succeeded, and the way kube-scheduler treats
// its gang.
type crew struct {
	t           *rapid.T
	size, least int32
	pods        map[string]*corev1.Pod
	succeeded   map[string]bool
	groups      map[string]*schedulingv1beta1.PodGroup
	classes     jobs.PriorityFacts
}

var crewKind = batchv1.SchemeGroupVersion.WithKind("Crew")

// reconcile lets the job create its missing pods and delete those in remove.
func (c *crew) reconcile(remove ...string) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "u"}}
	seen := jobs.Seen[*batchv1.Job]{Job: job, Facts: jobs.Facts{NativeGangs: true, Priorities: c.classes},
		Admission: jobs.Admission{Grant: jobs.Admitted}}
	for _, name := range c.names() {
		if pod := c.pods[name]; pod != nil {
			seen.Children = append(seen.Children, pod)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.groups)) {
		seen.Children = append(seen.Children, c.groups[name])
	}
	var plan jobs.Plan
	for _, name := range c.names() {
		switch {
		case c.pods[name] == nil && !c.succeeded[name]:
			plan.Writes = append(plan.Writes,
				write.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name,
					Labels: map[string]string{kueue.PodSetLabel: "main"}}}))
		case c.pods[name] != nil && slices.Contains(remove, name):
			plan.Writes = append(plan.Writes, write.Delete(c.pods[name]))
		}
	}
	jobs.JoinGangs(seen, crewKind, map[string]int32{"main": c.least}, &plan)
	for _, w := range plan.First {
		group := w.Object().(*schedulingv1beta1.PodGroup)
		if w.Verb() == write.VerbCreate {
			group.Spec.PriorityClassName, group.Spec.Priority = c.resolve(group.Spec.PriorityClassName)
		}
		c.groups[group.Name] = group
	}
	for _, w := range plan.Writes {
		pod := w.Object().(*corev1.Pod)
		if w.Verb() == write.VerbCreate {
			pod.Spec.PriorityClassName, pod.Spec.Priority = c.resolve(pod.Spec.PriorityClassName)
			c.pods[pod.Name] = pod
			continue
		}
		c.deletePod(pod.Name)
	}
}

// TestAGangOfAnEarlierStartHoldsNobodyBackOnClosedNodes: pods that are in a PodGroup of two, though their nodes are
// closed to others, do not wait for each other any more.
func TestAGangOfAnEarlierStartHoldsNobodyBackOnClosedNodes(t *testing.T) {
	closed := []corev1.Taint{{Key: "example.com/gpu", Effect: corev1.TaintEffectNoSchedule}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job-main-0",
		Labels: map[string]string{kueue.PodSetLabel: "main"}}}
	jobs.InPodGroup(&pod.Spec, "job-main.crew")
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "u"}}
	creation, _ := jobs.Gang{Name: "job-main.crew", Pods: 2}.Ensure(job, crewKind, nil)
	seen := jobs.Seen[*batchv1.Job]{Job: job, Facts: jobs.Facts{NativeGangs: true}, Admission: placedOn(closed, closed),
		Children: []client.Object{pod, creation.Object()}}
	var plan jobs.Plan
	jobs.JoinGangs(seen, crewKind, map[string]int32{"main": 2}, &plan)
	if len(plan.First) != 1 ||
		plan.First[0].Object().(*schedulingv1beta1.PodGroup).Spec.SchedulingPolicy.Gang.MinCount != 1 {
		t.Errorf("the plan writes %v, want the PodGroup with a minimum of one", plan.First)
	}
}

func (c *crew) names() []string {
	var out []string
	for i := range c.size {
		out = append(out, fmt.Sprint("job-main-", i))
	}
	return out
}

// deletePod deletes a pod, which is gone at once if it is not bound.
func (c *crew) deletePod(name string) {
	pod := c.pods[name].DeepCopy()
	pod.DeletionTimestamp = ptr.To(metav1.Now())
	if c.pods[name] = pod; pod.Spec.NodeName == "" {
		delete(c.pods, name)
	}
}

// resolve returns the class and the priority that the API server sets for a priority class, "" for the default.
func (c *crew) resolve(class string) (string, *int32) {
	if byDefault := c.classes.PodDefault(); class == "" && byDefault != nil {
		class = byDefault.Name
	}
	value, known := c.classes.OfPods(class)
	if !known {
		c.t.Fatalf("the priority class %s does not exist", class)
	}
	return class, &value
}

// schedule binds the pods that kube-scheduler would bind, and returns how many.
func (c *crew) schedule() int {
	bound := 0
	for _, group := range c.groups {
		bound += c.scheduleGang(group)
	}
	for name, pod := range c.pods {
		if pod.Spec.SchedulingGroup != nil {
			continue
		}
		if c.least > 1 {
			c.t.Fatalf("%s is in no gang", name)
		}
		if pod.Spec.NodeName == "" {
			c.bind(name)
			bound++
		}
	}
	return bound
}

// scheduleGang binds the pods of a gang if enough of them exist, and returns how many it has bound.
func (c *crew) scheduleGang(group *schedulingv1beta1.PodGroup) int {
	var running, pending []string
	for name, pod := range c.pods {
		if !jobs.IsInPodGroup(&pod.Spec, group.Name) {
			continue
		}
		if *pod.Spec.Priority != *group.Spec.Priority {
			c.t.Fatalf("%s has priority %d, and its PodGroup %s has %d", name, *pod.Spec.Priority, group.Name,
				*group.Spec.Priority)
		}
		if pod.Status.Phase != corev1.PodSucceeded && pod.DeletionTimestamp == nil {
			running = append(running, name)
		}
		if pod.Spec.NodeName == "" {
			pending = append(pending, name)
		}
	}
	if len(running) < int(group.Spec.SchedulingPolicy.Gang.MinCount) {
		return 0
	}
	for _, name := range pending {
		c.bind(name)
	}
	return len(pending)
}

func (c *crew) bind(name string) {
	pod := c.pods[name].DeepCopy()
	pod.Spec.NodeName = "n"
	c.pods[name] = pod
}

// TestGangsAreBoundTogetherAndNeverWaitForever, in whatever order their pods succeed, are deleted and recreated, and
// priority classes change.
func TestGangsAreBoundTogetherAndNeverWaitForever(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int32Range(1, 5).Draw(t, "size")
		c := &crew{t: t, size: size, least: rapid.Int32Range(0, size).Draw(t, "least"), pods: map[string]*corev1.Pod{},
			succeeded: map[string]bool{},
			groups:    map[string]*schedulingv1beta1.PodGroup{}, classes: jobs.PriorityFacts{Pod: jobstest.PriorityClasses()}}
		reclassed := rapid.Bool().Draw(t, "classes change")
		started := reclassed // pods created before a change of the classes may be a gang of their own, smaller than least
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			name := rapid.SampledFrom(c.names()).Draw(t, "name")
			pod := c.pods[name]
			switch step := rapid.SampledFrom([]string{"reconcile", "schedule", "succeed", "delete", "remove", "vanish",
				"class"}).Draw(t, "step"); {
			case step == "class" && reclassed:
				c.classes.Pod = rapid.SampledFrom([]map[string]*schedulingv1.PriorityClass{jobstest.PriorityClasses(),
					jobstest.PriorityClasses(jobstest.PriorityClass("five", 5, true)),
					jobstest.PriorityClasses(jobstest.PriorityClass("five", 5, false), jobstest.PriorityClass("nine", 9, true)),
					jobstest.PriorityClasses(jobstest.PriorityClass("five", 6, false)),
					jobstest.PriorityClasses(jobstest.PriorityClass("none", 0, true))}).Draw(t, "classes")
			case step == "reconcile":
				c.reconcile()
			case step == "remove":
				c.reconcile(name)
			case step == "schedule":
				bound := c.schedule()
				if bound > 0 && !started && bound < int(c.least) {
					t.Fatalf("%d pods of a gang of at least %d were bound first", bound, c.least)
				}
				started = started || bound > 0
			case pod == nil:
			case step == "succeed" && pod.Spec.NodeName != "":
				other := pod.DeepCopy()
				other.Status.Phase = corev1.PodSucceeded
				c.pods[name], c.succeeded[name] = other, true
			case step == "delete" && pod.DeletionTimestamp == nil:
				c.deletePod(name)
			case step == "vanish" && pod.DeletionTimestamp != nil:
				delete(c.pods, name)
			}
		}
		c.reconcile() // terminating pods stay
		c.schedule()
		for name, pod := range c.pods {
			if pod.Spec.NodeName == "" {
				t.Fatalf("%s waits for ever in the PodGroup %s; there are %d pods", name,
					*pod.Spec.SchedulingGroup.PodGroupName, len(c.pods))
			}
		}
		before := maps.Clone(c.groups)
		c.reconcile()
		if !maps.Equal(c.groups, before) {
			t.Fatal("a PodGroup was written though all its pods are bound")
		}
	})
}

// placedOn returns the admission of two pods of the pod set main, on nodes with these taints.
func placedOn(first, second []corev1.Taint) jobs.Admission {
	nodes := jobs.Nodes{}
	for name, taints := range map[string][]corev1.Taint{"a": first, "b": second} {
		nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{corev1.LabelHostname: name}}, Spec: corev1.NodeSpec{Taints: taints}}
	}
	return jobs.Admission{Grant: jobs.Admitted,
		PodSets: map[string]jobs.PodSetAdmission{"main": {Count: 2, Nodes: nodes, Places: podspec.Places{
			{Domain: map[string]string{corev1.LabelHostname: "a"}, Count: 1},
			{Domain: map[string]string{corev1.LabelHostname: "b"}, Count: 1}}}}}
}

func TestWhichPodsJoinAGang(t *testing.T) {
	closed := []corev1.Taint{{Key: "example.com/gpu", Effect: corev1.TaintEffectNoSchedule}}
	emptied := []corev1.Taint{{Key: "example.com/gpu", Effect: corev1.TaintEffectNoExecute}}
	disliked := []corev1.Taint{{Key: "example.com/gpu", Effect: corev1.TaintEffectPreferNoSchedule}}
	drained := []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
	racks := placedOn(closed, closed)
	racks.PodSets["main"].Places[0].Domain = map[string]string{"rack": "r1"}
	gone := placedOn(closed, closed)
	delete(gone.PodSets["main"].Nodes, "b")
	group := &corev1.PodSchedulingGroup{PodGroupName: ptr.To("mine")}
	for name, tc := range map[string]struct {
		change    func(*corev1.Pod)
		admission jobs.Admission
		native    bool
		least     int32
		want      string
	}{
		"admitted job":            {func(*corev1.Pod) {}, jobs.Admission{Grant: jobs.Admitted}, true, 2, "job-main.crew"},
		"nodes for all, open":     {func(*corev1.Pod) {}, placedOn(nil, nil), true, 2, "job-main.crew"},
		"nodes closed to others":  {func(*corev1.Pod) {}, placedOn(closed, emptied), true, 2, ""},
		"one of the nodes open":   {func(*corev1.Pod) {}, placedOn(closed, nil), true, 2, "job-main.crew"},
		"nodes that others avoid": {func(*corev1.Pod) {}, placedOn(closed, disliked), true, 2, "job-main.crew"},
		"nodes being drained":     {func(*corev1.Pod) {}, placedOn(drained, drained), true, 2, "job-main.crew"},
		"a place in a rack":       {func(*corev1.Pod) {}, racks, true, 2, "job-main.crew"},
		"a node that is gone":     {func(*corev1.Pod) {}, gone, true, 2, "job-main.crew"},
		"minimum of one":          {func(*corev1.Pod) {}, jobs.Admission{Grant: jobs.Admitted}, true, 1, ""},
		"cluster without gangs":   {func(*corev1.Pod) {}, jobs.Admission{Grant: jobs.Admitted}, false, 2, ""},
		"job without a queue":     {func(*corev1.Pod) {}, jobs.Admission{Grant: jobs.Unqueued}, true, 2, ""},
		"pod of no pod set": {func(p *corev1.Pod) { p.Labels = nil },
			jobs.Admission{Grant: jobs.Admitted}, true, 2, ""},
		"group set by the user": {func(p *corev1.Pod) { p.Spec.SchedulingGroup = group },
			jobs.Admission{Grant: jobs.Admitted}, true, 2, "mine"},
		"topology gate": {func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: kueue.TopologyGate}}
		}, jobs.Admission{Grant: jobs.Admitted}, true, 2, ""},
		"another scheduler": {func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" },
			jobs.Admission{Grant: jobs.Admitted}, true, 2, ""},
		"default scheduler, by name": {func(p *corev1.Pod) { p.Spec.SchedulerName = corev1.DefaultSchedulerName },
			jobs.Admission{Grant: jobs.Admitted}, true, 2, "job-main.crew"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job-main-0",
				Labels: map[string]string{kueue.PodSetLabel: "main"}}}
			tc.change(pod)
			plan := jobs.Plan{Batch: write.Batch{Writes: []write.Write{write.Create(pod)}}}
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "u"}}
			jobs.JoinGangs(jobs.Seen[*batchv1.Job]{Job: job, Facts: jobs.Facts{NativeGangs: tc.native},
				Admission: tc.admission}, crewKind,
				map[string]int32{"main": tc.least}, &plan)
			got := ""
			if g := pod.Spec.SchedulingGroup; g != nil {
				got = *g.PodGroupName
			}
			if ours := tc.want == "job-main.crew"; got != tc.want || len(plan.First) > 0 != ours {
				t.Errorf("the pod joins %q, want %q; %d PodGroups are written", got, tc.want, len(plan.First))
			}
			for _, w := range plan.First {
				if o := w.Object(); o.GetName() != tc.want || !metav1.IsControlledBy(o, job) || o.GetNamespace() != "ns" {
					t.Errorf("the PodGroup is %s/%s, owned by %v", o.GetNamespace(), o.GetName(), o.GetOwnerReferences())
				}
			}
		})
	}
}
