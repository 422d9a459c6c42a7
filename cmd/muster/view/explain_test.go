package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/api/config/v1alpha1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/place/find"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/podproblem"
)

// busyLab returns a job that waits behind another one, and a third one that runs.
func busyLab() Snapshot {
	js, w := waitingJob("eval", 0, 5, "WaitingForQuota")
	first, firstWorkload := waitingJob("first", 0, 1, "WaitingForQuota")
	return Snapshot{
		Configuration: config.Default(),
		ClusterQueues: []kueue.ClusterQueue{labQueue()}, LocalQueues: []kueue.LocalQueue{labDoor()},
		ResourceFlavors: []kueue.ResourceFlavor{{ObjectMeta: metav1.ObjectMeta{Name: "h100"}}},
		Namespaces:      []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "ml"}}},
		JobSets:         []jobset.JobSet{js, first, aJobSet("train", inQueue("gpu"))},
		Workloads:       []kueue.Workload{w, firstWorkload, aWorkload("train", admitted(2))},
	}
}

func TestExplainShowsThePositionOfAWaitingJob(t *testing.T) {
	snapshot, now := busyLab(), at(60).Time
	jobs := Jobs(&snapshot, now)
	e := Explain(&snapshot, jobs, Find(jobs, Name{Name: "eval"})[0], now)

	if diff := cmp.Diff(&Line{ClusterQueue: "lab", Position: 2, Length: 2}, e.Line); diff != "" {
		t.Errorf("line differs (-want +got):\n%s", diff)
	}
	wantAsks := []Ask{{PodSet: "workers", Pods: 4, PerPod: list("nvidia.com/gpu", "8")}}
	if diff := cmp.Diff(wantAsks, e.Asks); diff != "" {
		t.Errorf("asks differ (-want +got):\n%s", diff)
	}
	wantHolders := []Holder{{Namespace: "ml", Job: "jobset/train", Priority: 10, Requests: list("nvidia.com/gpu", "32")}}
	if diff := cmp.Diff(wantHolders, e.Holders); diff != "" {
		t.Errorf("holders differ (-want +got):\n%s", diff)
	}
	if len(e.Quotas) != 1 || e.Quotas[0].Flavor != "h100" {
		t.Fatalf("got quotas %v, want that of h100", e.Quotas)
	}
	if free := e.Quotas[0].Free(); free.Sign() != 0 {
		t.Errorf("free quota of a borrowing queue = %s, want 0", free.String())
	}
}

func TestExplainAsksTheEngine(t *testing.T) {
	snapshot, now := busyLab(), at(60).Time
	jobs := Jobs(&snapshot, now)
	e := Explain(&snapshot, jobs, Find(jobs, Name{Name: "eval"})[0], now)
	if e.WhyNot == nil || len(e.WhyNot.Holders) != 1 || len(e.WhyNot.WouldFitAfter) != 1 {
		t.Fatalf("explanation of the engine = %+v, want one holder", e.WhyNot)
	}
	if got := e.Title(e.WhyNot.Holders[0].Name); got != "ml/jobset/train" {
		t.Errorf("title of the holder = %s", got)
	}
	if got := e.Title(reason.Name{Namespace: "x", Name: "y"}); got != "x/workload/y" {
		t.Errorf("title of a Workload without a known job = %s", got)
	}
	// The condition has "16 more needed"; the numbers below are current.
	want := "couldn't assign flavors to pod set workers: insufficient unused quota for nvidia.com/gpu in flavor h100, 32 more needed"
	if e.Job.Message != want {
		t.Errorf("message = %q, want the current numbers", e.Job.Message)
	}
}

// TestExplainReportsRefusedAdmissionOfPreemptor: by quota alone others would be evicted for the job, but the operator
// evicts nobody while the API server refuses its admission.
func TestExplainReportsRefusedAdmissionOfPreemptor(t *testing.T) {
	snapshot, now := busyLab(), at(60).Time
	snapshot.ClusterQueues[0].Spec.Preemption =
		&kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority}
	snapshot.Workloads[0].Spec.Priority = ptr.To[int32](1000)
	jobs := Jobs(&snapshot, now)
	if e := Explain(&snapshot, jobs, Find(jobs, Name{Name: "eval"})[0],
		now); e.Job.Reason != string(reason.WaitingForPreemptedWorkloads) {
		t.Fatalf("reason = %s: %s, want that others would be preempted", e.Job.Reason, e.Job.Message)
	}
	snapshot.Workloads[0].Generation = 1 // as the API server gives to a new one
	snapshot.Workloads[0].Status.Conditions[0].Reason = string(reason.Inadmissible)
	snapshot.Workloads[0].Status.Conditions[0].Message = reason.RefusedAdmission("a policy says no").Message()
	jobs = Jobs(&snapshot, now)
	e := Explain(&snapshot, jobs, Find(jobs, Name{Name: "eval"})[0], now)
	if e.Job.Reason != "Inadmissible" || e.Job.Message != reason.RefusedAdmission("a policy says no").Message() {
		t.Errorf("reason = %s: %s, want the refused admission", e.Job.Reason, e.Job.Message)
	}
	if e.WhyNot == nil || e.WhyNot.State != reason.Aside || e.WhyNot.Message != e.Job.Message {
		t.Errorf("explanation of the engine = %+v, want the refused admission", e.WhyNot)
	}
}

// TestExplainReportsRefusedAdmission: by quota alone the job would be admitted next.
func TestExplainReportsRefusedAdmission(t *testing.T) {
	snapshot, now := busyLab(), at(60).Time
	snapshot.JobSets, snapshot.Workloads = snapshot.JobSets[:1], snapshot.Workloads[:1]
	snapshot.Workloads[0].Generation = 1 // as the API server gives to a new one
	snapshot.Workloads[0].Status.Conditions[0].Reason = string(reason.Inadmissible)
	snapshot.Workloads[0].Status.Conditions[0].Message = reason.RefusedAdmission("a policy says no").Message()
	jobs := Jobs(&snapshot, now)
	e := Explain(&snapshot, jobs, jobs[0], now)
	if e.Job.Reason != "Inadmissible" || e.Job.Message != reason.RefusedAdmission("a policy says no").Message() {
		t.Errorf("reason = %s: %s, want the refused admission", e.Job.Reason, e.Job.Message)
	}
	if e.WhyNot == nil || e.WhyNot.State != reason.Aside || e.WhyNot.Message != e.Job.Message {
		t.Errorf("explanation of the engine = %+v, want the refused admission", e.WhyNot)
	}
}

// TestExplainReportsAvoidedNodes: by all objects that can be read the nodes have capacity, and the pods whose
// conditions said that kube-scheduler refused these nodes are gone.
func TestExplainReportsAvoidedNodes(t *testing.T) {
	for message, shown := range map[string]bool{
		(&find.Shortfall{Topology: "racks", Count: 4, Nodes: 2,
			Excluded: []find.Excluded{{Filter: avoided(t), Nodes: 2}}}).Message(): true,
		(&find.Shortfall{Topology: "racks", Count: 4, Nodes: 2,
			Excluded: []find.Excluded{{Filter: `resource "nvidia.com/gpu"`, Nodes: 2}}}).Message(): false,
	} {
		snapshot, now := busyLab(), at(60).Time
		snapshot.JobSets, snapshot.Workloads = snapshot.JobSets[:1], snapshot.Workloads[:1]
		reported := &snapshot.Workloads[0].Status.Conditions[0]
		reported.Reason, reported.Message = string(reason.TopologyPlacementFailed), message
		jobs := Jobs(&snapshot, now)
		e := Explain(&snapshot, jobs, jobs[0], now)
		if got := e.Job.Message == message; got != shown {
			t.Errorf("reported message %q: explained as %s: %s", message, e.Job.Reason, e.Job.Message)
		}
	}
}

// avoided returns the message for nodes that kube-scheduler has refused.
func avoided(t *testing.T) string {
	t.Helper()
	m := place.New()
	m.SetTopology(place.Topology{Name: "t", Levels: []string{corev1.LabelHostname}})
	m.SetFlavor(place.Flavor{Name: "f", Topology: "t"})
	m.SetNode(place.Node{Name: "n", Labels: map[string]string{corev1.LabelHostname: "n"},
		Allocatable: map[string]int64{place.Pods: 1}})
	_, short := find.New(m).Find([]place.Ask{{PodSet: "main", Flavor: "f", Count: 1, Avoid: []string{"n"}}}, place.Now)
	if short == nil || len(short.Excluded) != 1 {
		t.Fatalf("shortfall = %+v, want one excluded node", short)
	}
	return short.Excluded[0].Filter
}

func TestExplainWithoutRightsShowsTheCondition(t *testing.T) {
	snapshot, now := busyLab(), at(60).Time
	snapshot.Unseen, snapshot.Namespaces = []string{"namespaces"}, nil
	jobs := Jobs(&snapshot, now)
	e := Explain(&snapshot, jobs, Find(jobs, Name{Name: "eval"})[0], now)
	if e.WhyNot != nil || e.Line.Position != 0 || e.Quotas != nil {
		t.Errorf("explanation = %+v, want nothing that the user may not read", e)
	}
	if e.Job.Message != "16 more needed" || len(e.Unseen) != 1 {
		t.Errorf("message = %q and unseen = %v, want that of the condition and one kind", e.Job.Message, e.Unseen)
	}
}

func TestExplainOfAJobThatNoOperatorHasReconciled(t *testing.T) {
	snapshot, now := Snapshot{JobSets: []jobset.JobSet{aJobSet("odd", inQueue("gpu"))}}, at(60).Time
	jobs := Jobs(&snapshot, now)
	want := "no Workload yet, and no event that you may read says why: check that Muster's operator runs"
	if e := Explain(&snapshot, jobs, jobs[0], now); e.Job.Message != want {
		t.Errorf("got %q, want %q", e.Job.Message, want)
	}
}

func TestExplainReportsAMissingQueue(t *testing.T) {
	snapshot, now := busyLab(), at(60).Time
	snapshot.LocalQueues = nil
	jobs := Jobs(&snapshot, now)
	e := Explain(&snapshot, jobs, Find(jobs, Name{Name: "eval"})[0], now)
	if e.Job.Reason != "Inadmissible" || e.Job.Message != "LocalQueue gpu doesn't exist" {
		t.Errorf("reason = %s: %s, want the missing LocalQueue", e.Job.Reason, e.Job.Message)
	}
}

func TestExplainListsTheQueuesThatAJobCouldUse(t *testing.T) {
	snapshot, now := busyLab(), at(60).Time
	elsewhere := snapshot.LocalQueues[0]
	snapshot.LocalQueues[0].Name, elsewhere.Namespace = "gpus", "other"
	snapshot.LocalQueues = append(snapshot.LocalQueues, elsewhere)
	for name, selector := range map[string]*metav1.LabelSelector{
		"all": {}, "deleted": {}, "none": nil, "others": {MatchLabels: map[string]string{"team": "other"}},
	} {
		q := kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
		q.Spec.NamespaceSelector = selector
		if name == "deleted" {
			q.DeletionTimestamp = &metav1.Time{Time: now}
		}
		snapshot.ClusterQueues = append(snapshot.ClusterQueues, q)
	}
	snapshot.Namespaces = []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: elsewhere.Namespace,
		Labels: map[string]string{"team": "other"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: snapshot.LocalQueues[0].Namespace}}}
	jobs := Jobs(&snapshot, now)
	e := Explain(&snapshot, jobs, Find(jobs, Name{Name: "eval"})[0], now)
	if diff := cmp.Diff([]string{"all", "gpus", "lab"}, e.QueuesThere); diff != "" {
		t.Errorf("the queues differ (-want +got):\n%s", diff)
	}
}

func TestExplainListsCoveredResourcesForAnUncoveredRequest(t *testing.T) {
	for asked, want := range map[corev1.ResourceName][]corev1.ResourceName{
		"nvidia.com/gpus": {"nvidia.com/gpu"},
		"nvidia.com/gpu":  nil,
	} {
		snapshot, now := busyLab(), at(60).Time
		asks := corev1.ResourceRequirements{Limits: corev1.ResourceList{asked: resource.MustParse("8")}}
		for i := range snapshot.Workloads {
			if w := &snapshot.Workloads[i]; w.Status.Admission == nil {
				w.Spec.PodSets[0].Template.Spec.Containers[0].Resources = asks
			}
		}
		for i := range snapshot.JobSets {
			if js := &snapshot.JobSets[i]; js.Name == "eval" {
				js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Resources = asks
			}
		}
		jobs := Jobs(&snapshot, now)
		e := Explain(&snapshot, jobs, Find(jobs, Name{Name: "eval"})[0], now)
		if diff := cmp.Diff(want, e.Covers); diff != "" {
			t.Errorf("covered resources for a request of %s (%s: %s) differ (-want +got):\n%s", asked, e.Job.Reason,
				e.Job.Message, diff)
		}
	}
}

func TestExplainShowsTheSelectorThatRefusesTheNamespace(t *testing.T) {
	prod := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "prod"}}
	for _, tc := range []struct{ has, want *metav1.LabelSelector }{{prod, prod}, {nil, &metav1.LabelSelector{}},
		{&metav1.LabelSelector{}, nil}} {
		snapshot, now := busyLab(), at(60).Time
		snapshot.ClusterQueues[0].Spec.NamespaceSelector = tc.has
		jobs := Jobs(&snapshot, now)
		if diff := cmp.Diff(tc.want, Explain(&snapshot, jobs, Find(jobs, Name{Name: "eval"})[0], now).Accepts); diff != "" {
			t.Errorf("with the selector %v (-want +got):\n%s", tc.has, diff)
		}
	}
}

func TestExplainListsChecksThatKeepTheQueueInactive(t *testing.T) {
	snapshot, now := busyLab(), at(60).Time
	snapshot.ClusterQueues[0].Spec.AdmissionChecks = []kueue.AdmissionCheckReference{"nodes", "lost", "budget", "licence"}
	check := func(name, controller string, active metav1.ConditionStatus) kueue.AdmissionCheck {
		return kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: kueue.AdmissionCheckSpec{ControllerName: controller},
			Status: kueue.AdmissionCheckStatus{Conditions: []metav1.Condition{{Type: kueue.AdmissionCheckActive,
				Status: active}}}}
	}
	snapshot.AdmissionChecks = []kueue.AdmissionCheck{
		check("nodes", "kueue.x-k8s.io/provisioning-request", ""), check("budget", "example.com/budget",
			metav1.ConditionFalse), check("licence", "example.com/licence", metav1.ConditionTrue)}
	jobs := Jobs(&snapshot, now)
	e := Explain(&snapshot, jobs, Find(jobs, Name{Name: "eval"})[0], now)
	want := []Check{
		{"budget", CheckInactive, "its controller example.com/budget has not reported it active"},
		{"lost", CheckMissing, "create it, or remove it from the ClusterQueue"},
		{"nodes", CheckInactive, "Muster has no controller kueue.x-k8s.io/provisioning-request: remove the check from the ClusterQueue"},
	}
	if diff := cmp.Diff(want, e.Checks); diff != "" {
		t.Errorf("the checks differ (-want +got):\n%s", diff)
	}
}

// TestExplainListsChecksOfAJobWithReservedQuota: holders are not listed, since the job does not wait for quota. A check
// that was deleted since, or whose controller has stopped, is not reported as if an answer could be expected.
func TestExplainListsChecksOfAJobWithReservedQuota(t *testing.T) {
	snapshot, now := busyLab(), at(60).Time
	snapshot.JobSets = append(snapshot.JobSets, aJobSet("checked", inQueue("gpu")))
	snapshot.Workloads = append(snapshot.Workloads, aWorkload("checked", admitted(2), func(w *kueue.Workload) {
		w.Status.Conditions = w.Status.Conditions[:1]
		w.Status.AdmissionChecks = []kueue.AdmissionCheckState{
			{Name: "nodes", State: kueue.CheckStatePending, Message: "8 nodes are being made"},
			{Name: "licence", State: kueue.CheckStateReady}, {Name: "budget", State: kueue.CheckStatePending},
			{Name: "lost", State: kueue.CheckStatePending}, {Name: "idle", State: kueue.CheckStatePending},
			{Name: "again", State: kueue.CheckStateRetry}}
	}))
	check := func(name string, active metav1.ConditionStatus) kueue.AdmissionCheck {
		return kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: kueue.AdmissionCheckSpec{ControllerName: "example.com/" + name},
			Status: kueue.AdmissionCheckStatus{Conditions: []metav1.Condition{{Type: kueue.AdmissionCheckActive,
				Status: active}}}}
	}
	snapshot.AdmissionChecks = []kueue.AdmissionCheck{check("nodes", metav1.ConditionTrue),
		check("budget", metav1.ConditionTrue), check("idle", metav1.ConditionFalse)}
	jobs := Jobs(&snapshot, now)
	e := Explain(&snapshot, jobs, Find(jobs, Name{Name: "checked"})[0], now)
	want := []Check{{Name: "again", State: kueue.CheckStateRetry}, {Name: "budget", State: kueue.CheckStatePending},
		{Name: "idle", State: CheckInactive, Message: "its controller example.com/idle has not reported it active"},
		{Name: "lost", State: CheckMissing, Message: "create it, or remove it from the ClusterQueue"},
		{Name: "nodes", State: kueue.CheckStatePending, Message: "8 nodes are being made"}}
	if diff := cmp.Diff(want, e.Checks); diff != "" {
		t.Errorf("the checks differ (-want +got):\n%s", diff)
	}
	snapshot.AdmissionChecks, snapshot.Unseen = nil, []string{"admissionchecks"}
	for _, c := range Explain(&snapshot, jobs, Find(jobs, Name{Name: "checked"})[0], now).Checks {
		if c.State != kueue.CheckStatePending && c.State != kueue.CheckStateRetry {
			t.Errorf("the check %s, which the reader may not list, is %s", c.Name, c.State)
		}
	}
	if e.Quotas != nil || e.Holders != nil {
		t.Errorf("quotas = %+v and holders = %+v, want none", e.Quotas, e.Holders)
	}
}

// TestExplainShowsTheAmountsAdmitted: the amounts include requests that a LimitRange has raised.
func TestExplainShowsTheAmountsAdmitted(t *testing.T) {
	given := aWorkload("train", admitted(2), func(w *kueue.Workload) {
		w.Status.Admission.PodSetAssignments[0].ResourceUsage = corev1.ResourceList{
			"nvidia.com/gpu": resource.MustParse("32"), corev1.ResourceCPU: resource.MustParse("2"),
			corev1.ResourcePods: resource.MustParse("4")}
	})
	snapshot := Snapshot{JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"))}, Workloads: []kueue.Workload{given}}
	jobs := Jobs(&snapshot, at(60).Time)
	want := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"), corev1.ResourceCPU: resource.MustParse("500m")}
	if diff := cmp.Diff(want, Explain(&snapshot, jobs, jobs[0], at(60).Time).Asks[0].PerPod); diff != "" {
		t.Errorf("requests of a pod differ (-want +got):\n%s", diff)
	}
}

// TestExplainIgnoresResourcesThatDoNotCount: if a taint repels the pods, a resource without quota is not the reason.
func TestExplainIgnoresResourcesThatDoNotCount(t *testing.T) {
	for name, counting := range map[string]func(*v1alpha1.Resources){
		"excluded": func(r *v1alpha1.Resources) { r.ExcludeResourcePrefixes = []string{"example.com/"} },
		"ignored":  func(r *v1alpha1.Resources) { r.QuotaCheckStrategy = ptr.To(v1alpha1.IgnoreUndeclared) },
	} {
		snapshot, now := busyLab(), at(60).Time
		snapshot.Configuration = config.Default()
		counting(snapshot.Configuration.Resources)
		asks := corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8"),
			"example.com/nic": resource.MustParse("1")}}
		for i := range snapshot.Workloads {
			if w := &snapshot.Workloads[i]; w.Status.Admission == nil {
				w.Spec.PodSets[0].Template.Spec.Containers[0].Resources = asks
				w.Status.Conditions[0].Reason = string(reason.NoMatchingFlavor)
			}
		}
		for i := range snapshot.JobSets {
			if js := &snapshot.JobSets[i]; js.Name == "eval" {
				js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Resources = asks
			}
		}
		for i := range snapshot.ResourceFlavors {
			snapshot.ResourceFlavors[i].Spec.NodeTaints = []corev1.Taint{{Key: "kept", Effect: corev1.TaintEffectNoSchedule}}
		}
		jobs := Jobs(&snapshot, now)
		e := Explain(&snapshot, jobs, Find(jobs, Name{Name: "eval"})[0], now)
		if e.Job.Reason != string(reason.NoMatchingFlavor) || e.Covers != nil {
			t.Errorf("%s: explained as %s: %s with covered resources %v, want NoMatchingFlavor and none", name, e.Job.Reason,
				e.Job.Message, e.Covers)
		}
	}
}

func TestExplainShowsTheAdmittedPodCount(t *testing.T) {
	some := aWorkload("train", admitted(2),
		func(w *kueue.Workload) { w.Status.Admission.PodSetAssignments[0].Count = ptr.To(int32(3)) })
	snapshot := Snapshot{JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"))}, Workloads: []kueue.Workload{some}}
	jobs := Jobs(&snapshot, at(60).Time)
	if e := Explain(&snapshot, jobs, jobs[0], at(60).Time); e.Asks[0].Given == nil || *e.Asks[0].Given != 3 {
		t.Errorf("requests = %+v, want 3 admitted pods", e.Asks)
	}
}

// TestExplainShowsNoAdmittedPodCountOfAJobThatIsOver: its queue takes back the quota of pods as they end, one after the
// other, so that the last count is not what the job ran with.
func TestExplainShowsNoAdmittedPodCountOfAJobThatIsOver(t *testing.T) {
	ended := aWorkload("train", admitted(2), func(w *kueue.Workload) {
		w.Status.Admission.PodSetAssignments[0].Count = ptr.To(int32(3))
		w.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: w.Spec.PodSets[0].Name, Count: 1}}
	})
	for phase, over := range map[jobset.JobSetConditionType]bool{jobset.JobSetFailed: true, jobset.JobSetCompleted: true,
		jobset.JobSetSuspended: false} {
		set := aJobSet("train", inQueue("gpu"))
		set.Status.Conditions = append(set.Status.Conditions,
			metav1.Condition{Type: string(phase), Status: metav1.ConditionTrue, LastTransitionTime: at(50)})
		snapshot := Snapshot{JobSets: []jobset.JobSet{set}, Workloads: []kueue.Workload{ended}}
		jobs := Jobs(&snapshot, at(60).Time)
		e := Explain(&snapshot, jobs, jobs[0], at(60).Time)
		if shown := e.Asks[0].Given != nil || e.Asks[0].Left != nil; shown == over {
			t.Errorf("%s: requests = %+v, want the admitted count: %t", phase, e.Asks[0], !over)
		}
	}
}

func TestExplainNamesTheFlavorsOfAnAdmittedJob(t *testing.T) {
	snapshot := Snapshot{
		JobSets:       []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
		Workloads:     []kueue.Workload{aWorkload("train", admitted(2))},
		ClusterQueues: []kueue.ClusterQueue{{ObjectMeta: metav1.ObjectMeta{Name: "lab"}}},
	}
	jobs := Jobs(&snapshot, at(60).Time)
	e := Explain(&snapshot, jobs, jobs[0], at(60).Time)
	want := map[corev1.ResourceName]string{"nvidia.com/gpu": "h100"}
	if diff := cmp.Diff(want, e.Asks[0].Flavors); diff != "" {
		t.Errorf("flavors differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&Line{ClusterQueue: "lab"}, e.Line); diff != "" {
		t.Errorf("line differs (-want +got):\n%s", diff)
	}
	snapshot.ClusterQueues = nil
	if line := Explain(&snapshot, jobs, jobs[0], at(60).Time).Line; !line.Missing {
		t.Errorf("line without the ClusterQueue = %+v, want it missing", line)
	}
}

func TestPodProblemsGroupsPodsWithTheSameProblem(t *testing.T) {
	pod := func(name string, change func(*corev1.PodStatus)) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		change(&p.Status)
		return p
	}
	ending := func(name string, by int, finalizers ...string) corev1.Pod {
		p := pod(name, func(*corev1.PodStatus) {})
		p.DeletionTimestamp, p.Finalizers, p.Spec.NodeName = ptr.To(at(by)), finalizers, "n"
		return p
	}
	left := func(name string, by int) corev1.Pod {
		p := ending(name, by)
		p.Spec.NodeName = "deleted"
		return p
	}
	ended := func(name string, finalizers ...string) corev1.Pod {
		p := ending(name, 10, finalizers...)
		p.Status.Phase = corev1.PodFailed
		return p
	}
	unschedulable := func(s *corev1.PodStatus) {
		s.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
			Message: "0/3 nodes are available",
		}}
	}
	crashed := func(s *corev1.PodStatus) {
		s.Phase = corev1.PodFailed
		s.ContainerStatuses = []corev1.ContainerStatus{{
			Name:  "worker",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"}},
		}}
	}
	misspelt := func(s *corev1.PodStatus) {
		crashed(s)
		ended := s.ContainerStatuses[0].State.Terminated
		ended.ExitCode, ended.Reason, ended.Message = 128, "StartError",
			"exec \"trian.py\": executable file not found\nand more"
	}
	ignored := func(name string, created int) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: at(created)},
			Spec: corev1.PodSpec{SchedulerName: "volcano"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	}
	got := podProblems([]corev1.Pod{
		ignored("w-8", 50), ignored("w-9", 58),
		pod("w-7", misspelt), pod("w-2", unschedulable), pod("w-0", crashed), pod("w-1", unschedulable),
		pod("w-3", func(*corev1.PodStatus) {}), ending("w-4", 10), ending("w-5", 70),
		ending("w-6", 10, "example.com/backup", batchv1.JobTrackingFinalizer), ended("x-0", "example.com/backup"),
		ended("x-1", batchv1.JobTrackingFinalizer), left("x-2", 10), left("x-3", 70),
	}, podproblem.Claims{}, podproblem.Mounts{}, false,
		(&Snapshot{Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}}).lacksNode, at(60).Time)
	want := []PodProblem{
		{Pods: 2, Example: "x-2", Reason: "Terminating",
			Message: "its node deleted does not exist any more: Kubernetes removes the pod within a minute or so; its quota is kept until the pod is gone"},
		{Pods: 2, Example: "w-1", Reason: "Unschedulable", Message: "0/3 nodes are available"},
		{Pods: 1, Example: "w-0", Reason: "Error", Message: "container worker: exit code 2"},
		{Pods: 1, Example: "w-8", Reason: "NotScheduled",
			Message: "the scheduler volcano has ignored it so far: check that this scheduler runs, and spec.schedulerName of the pod"},
		{Pods: 1, Example: "w-7", Reason: "StartError",
			Message: "container worker: exit code 128: exec \"trian.py\": executable file not found"},
		{Pods: 1, Example: "x-0", Reason: "Terminating",
			Message: "it has ended, and its finalizer example.com/backup keeps it; it holds no quota"},
		{Pods: 1, Example: "w-6", Reason: "Terminating",
			Message: "its finalizer example.com/backup keeps it; its quota is kept until the pod is gone"},
		{Pods: 1, Example: "w-4",
			Reason: "Terminating", Message: "node n has not reported that the pod ended: the node may be unreachable or gone; its quota is kept until the pod is gone " +
				"(if you are sure that the node is off: delete it, which removes its pods within a minute or so, or taint it node.kubernetes.io/out-of-service)"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems differ (-want +got):\n%s", diff)
	}
}

// TestExplainKnowsWhichPodsHaveNoLogs: simulated ones, where the API server's answer to a request for one is about
// addresses of nodes, and ones that never started a container.
func TestExplainKnowsWhichPodsHaveNoLogs(t *testing.T) {
	node := func(name string, labels map[string]string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	on := func(node string) corev1.Pod {
		pod := corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}
		if node != "" {
			pod.Status.ContainerStatuses =
				[]corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}
		return pod
	}
	ended := func(reason string, started int64, last ...corev1.ContainerState) corev1.Pod {
		pod := on("local-0")
		c := &pod.Status.ContainerStatuses[0]
		c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, Message: "why",
			StartedAt: metav1.Unix(started, 0)}}
		for _, state := range last {
			c.LastTerminationState = state
		}
		return pod
	}
	refused := on("local-0")
	refused.Status.ContainerStatuses = nil
	initialising := on("local-0")
	initialising.Status.InitContainerStatuses = initialising.Status.ContainerStatuses
	initialising.Status.ContainerStatuses =
		[]corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
	for what, test := range map[string]struct {
		pods []corev1.Pod
		want bool
	}{
		"all on simulated nodes":             {[]corev1.Pod{on("sim-0"), on("")}, true},
		"one on another":                     {[]corev1.Pod{on("sim-0"), on("local-0")}, false},
		"one on a node that is not listed":   {[]corev1.Pod{on("sim-0"), on("new")}, false},
		"none on a node":                     {[]corev1.Pod{on("")}, true},
		"none at all":                        {nil, false},
		"refused by the kubelet":             {[]corev1.Pod{refused}, true},
		"one has run":                        {[]corev1.Pod{refused, ended("Error", 50)}, false},
		"its command does not exist":         {[]corev1.Pod{ended("StartError", 0)}, true},
		"one that the runtime does not know": {[]corev1.Pod{ended("ContainerStatusUnknown", 0)}, true},
		"it had run before": {[]corev1.Pod{ended("StartError", 0,
			ended("Error", 50).Status.ContainerStatuses[0].State)}, false},
		"only its init container has run": {[]corev1.Pod{initialising}, true},
	} {
		snapshot := &Snapshot{
			Jobs: []batchv1.Job{aJob("eval")}, Pods: test.pods,
			Nodes: []corev1.Node{node("sim-0", map[string]string{SimulatedLabel: "true"}), node("local-0", nil)},
		}
		jobs := Jobs(snapshot, at(60).Time)
		if got := Explain(snapshot, jobs, jobs[0], at(60).Time).NoLogs; got != test.want {
			t.Errorf("%s: NoLogs = %v, want %v", what, got, test.want)
		}
	}
}

func TestExplainReportsWhyPodsCannotStart(t *testing.T) {
	for name, workloads := range map[string][]kueue.Workload{"queued as it is it cannot be": nil,
		"admitted before": {aWorkload("train", admitted(2))}} {
		snapshot := busyLab()
		snapshot.JobSets, snapshot.Workloads = []jobset.JobSet{aJobSet("train", inQueue("gpu"), cannotStart)}, workloads
		jobs := Jobs(&snapshot, at(60).Time)
		e := Explain(&snapshot, jobs, Find(jobs, Name{Name: "train"})[0], at(60).Time)
		if e.Job.Why() != noAgentServed {
			t.Errorf("%s: message = %q", name, e.Job.Why())
		}
	}
}

// TestExplainShowsTheLastWarning: the last warning says why a job has no Workload or no pods, or why it was evicted.
// Earlier warnings may have been resolved.
func TestExplainShowsTheLastWarning(t *testing.T) {
	warned := func(message string, seconds int) corev1.Event {
		return corev1.Event{Type: corev1.EventTypeWarning, Reason: "InvalidJob", Message: message, LastTimestamp: at(seconds)}
	}
	repeated := warned("mend this", 20)
	repeated.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at(50).Time)}
	unqueued := Snapshot{JobSets: []jobset.JobSet{aJobSet("odd", inQueue("gpu"))},
		Warnings: []corev1.Event{repeated, warned("mended since", 40)}}
	queued := busyLab()
	queued.Warnings = unqueued.Warnings
	evicted := busyLab()
	for i := range evicted.Workloads {
		if w := &evicted.Workloads[i]; w.Status.Admission == nil {
			w.Status.Conditions = append(w.Status.Conditions,
				metav1.Condition{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue,
					Reason: kueue.WorkloadEvictedDueToNodeFailures, Message: "its node is gone",
					LastTransitionTime: metav1.NewTime(at(30).Time)})
		}
	}
	free := Snapshot{JobSets: []jobset.JobSet{aJobSet("free")}, Warnings: unqueued.Warnings}
	none := Snapshot{Warnings: unqueued.Warnings, VCJobs: []volcano.Job{aVCJob("none", func(job *volcano.Job) {
		job.Spec.Tasks = nil
		job.Status.State = volcano.JobState{Phase: volcano.Pending,
			Message: "No task has replicas, so there is nothing to start"}
	})}}
	withPod := free
	withPod.Pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "free-workers-0-0"}}}
	taken := warned("the name pair-worker-1 is taken", 30)
	taken.Reason = "FailedCreate"
	some := Snapshot{Warnings: []corev1.Event{taken, warned("mended since", 40)}, GenericJobs: []tensorstack.GenericJob{
		aGenericJob("pair", "", func(job *tensorstack.GenericJob) { job.Spec.ReplicaSpecs[0].Replicas = ptr.To[int32](2) })}}
	some.GenericJobs[0].Status.Aggregate = &tensorstack.Aggregate{Running: 1}
	some.Pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "pair-worker-0"}}}
	all := some
	all.Pods = append(all.Pods[:1:1], corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pair-worker-1"}})
	now := at(60).Time
	for name, tc := range map[string]struct {
		snapshot *Snapshot
		job      string
		want     *Warning
	}{
		"an evicted job": {&evicted, "eval",
			&Warning{Reason: "NodeFailures", Message: "its node is gone", ReportedAt: metav1.NewTime(at(30).Time)}},
		"a job without a Workload": {&unqueued, "odd",
			&Warning{Reason: "InvalidJob", Message: "mend this", ReportedAt: metav1.NewTime(at(50).Time)}},
		"a job with a Workload, which has the reason": {&queued, "eval", nil},
		"a job without a queue and without pods": {&free, "free",
			&Warning{Reason: "InvalidJob", Message: "mend this", ReportedAt: metav1.NewTime(at(50).Time)}},
		"a job without a queue, with pods": {&withPod, "free", nil},
		"a job that asks for no pods":      {&none, "none", nil},
		"a running job without some of its pods": {&some, "pair",
			&Warning{Reason: "FailedCreate", Message: "the name pair-worker-1 is taken",
				ReportedAt: metav1.NewTime(at(30).Time)}},
		"a running job with all of its pods": {&all, "pair", nil},
	} {
		t.Run(name, func(t *testing.T) {
			jobs := Jobs(tc.snapshot, now)
			if diff := cmp.Diff(tc.want,
				Explain(tc.snapshot, jobs, Find(jobs, Name{Name: tc.job})[0], now).Warning); diff != "" {
				t.Errorf("warning (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLineReportsAQueueClosedOnlyByAnnotation(t *testing.T) {
	for name, test := range map[string]struct {
		closed string
		policy kueue.StopPolicy
		want   bool
	}{
		"closed":             {"true", kueue.None, true},
		"open":               {"false", kueue.None, false},
		"stopped":            {"", kueue.Hold, false},
		"stopped and closed": {"true", kueue.HoldAndDrain, false},
	} {
		cq := kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "lab",
			Annotations: map[string]string{muster.ClosedAnnotation: test.closed}}}
		cq.Spec.StopPolicy = &test.policy
		if line := lineOf(&Snapshot{ClusterQueues: []kueue.ClusterQueue{cq}}, nil,
			&Job{ClusterQueue: "lab"}); line.Closed != test.want {
			t.Errorf("%s: line = %+v", name, line)
		}
	}
}
