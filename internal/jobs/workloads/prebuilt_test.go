package workloads

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

// cpus returns a pod set main of this many pods that request this CPU quantity each.
func cpus(count int32, cpu string) []kueue.PodSet {
	return []kueue.PodSet{{Name: "main", Count: count, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}}}}
}

// TestPrebuiltWorkloadIsAdoptedIfItDescribesTheJob: one with other pods is finished as out of sync, and one that is
// missing, finished or another job's is reported.
func TestPrebuiltWorkloadIsAdoptedIfItDescribesTheJob(t *testing.T) {
	job := jobWith(map[string]string{kueue.PrebuiltWorkloadLabel: "prebuilt"})
	// The API server sets defaults in a Job's template, which prebuilt Workloads do not have.
	described := jobs.Description{PodSets: cpus(2, "1000m")}
	described.PodSets[0].Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	described.PodSets[0].Template.Labels = map[string]string{"job-name": "j"}
	prebuilt := func(podSets []kueue.PodSet) *kueue.Workload {
		return &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "prebuilt", Namespace: "ns"},
			Spec: kueue.WorkloadSpec{PodSets: podSets}}
	}
	owned := func(uid string) *kueue.Workload {
		w := prebuilt(cpus(2, "1"))
		other := jobWith(nil)
		other.UID = "other"
		if uid == "job-uid" {
			other = job
		}
		w.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(other, jobSetKind)}
		return w
	}
	forged := prebuilt(cpus(2, "10m"))
	forged.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "JobSet", Name: job.Name,
		UID: job.UID, Controller: ptr.To(true)}}
	workload.SetCondition(forged, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, "QuotaReserved", "", now)
	// A user may get a small Workload admitted, for a job that needs more.
	small := prebuilt(cpus(2, "10m"))
	workload.SetCondition(small, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, "QuotaReserved", "", now)
	elastic := prebuilt(cpus(2, "1"))
	elastic.Spec.PodSets[0].Template.Annotations = map[string]string{muster.MinReplicasAnnotation: "1"}
	withoutPods := prebuilt(cpus(2, "1"))
	withoutPods.Spec.PodSets[0].Template.Annotations = map[string]string{muster.MinPodsAnnotation: "1"}
	outOfSync := prebuilt(cpus(3, "1"))
	Finish(outOfSync, kueue.WorkloadFinishedReasonOutOfSync, "", now)
	// The cache drops the pod sets of finished Workloads.
	ended := func(w *kueue.Workload) *kueue.Workload {
		Finish(w, kueue.WorkloadFinishedReasonSucceeded, "", now)
		w.Spec.PodSets = nil
		return w
	}
	for name, tc := range map[string]struct {
		found  *kueue.Workload
		writes []string
		event  string
	}{
		"same requests":   {prebuilt(cpus(2, "1")), []string{"change prebuilt"}, ""},
		"adopted already": {owned("job-uid"), nil, ""},
		"missing":         {nil, nil, prebuiltMissing},
		"another job's":   {owned("other"), nil, prebuiltTaken},
		"owner with the job's UID in another API group": {forged, nil, prebuiltTaken},
		"other count": {prebuilt(cpus(3, "1")), []string{"change status of prebuilt"},
			prebuiltOutOfSync},
		"other requests": {prebuilt(cpus(2, "2")), []string{"change status of prebuilt"},
			prebuiltOutOfSync},
		"other requests, with quota":     {small, []string{"change status of prebuilt"}, prebuiltOutOfSync},
		"elastic, for a job that is not": {elastic, []string{"change status of prebuilt"}, prebuiltOutOfSync},
		"may start without pods, for a job that may not": {withoutPods, []string{"change status of prebuilt"},
			prebuiltOutOfSync},
		"finished as out of sync already":   {outOfSync, nil, prebuiltOutOfSync},
		"finished already":                  {ended(prebuilt(cpus(2, "1"))), nil, prebuiltFinished},
		"adopted and finished with the job": {ended(owned("job-uid")), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			writes, events := (Job{Object: job, Kind: jobSetKind}).takePrebuilt(tc.found, described, "q", now)
			if diff := cmp.Diff(tc.writes, written(writes)); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if got := len(events); got > 1 || (got == 1) != (tc.event != "") || got == 1 && events[0].Reason != tc.event {
				t.Errorf("events = %v, want only the reason %q", events, tc.event)
			}
		})
	}
	writes, _ := (Job{Object: job, Kind: jobSetKind}).takePrebuilt(prebuilt(cpus(2, "1")), described, "q", now)
	adopted := writes[0].Object().(*kueue.Workload)
	if !metav1.IsControlledBy(adopted, job) || adopted.Labels[kueue.JobUIDLabel] != "job-uid" ||
		adopted.Spec.QueueName != "q" ||
		!strings.Contains(strings.Join(adopted.Finalizers, ","), kueue.ResourceInUseFinalizer) {
		t.Errorf("the adopted Workload is %+v, want it controlled and labelled by the job, in queue q, with the finalizer", adopted)
	}
}

// TestAPrebuiltWorkloadPlacesAsTheJobAsks: it may not have looser constraints, and may write the same ones in another
// way.
func TestAPrebuiltWorkloadPlacesAsTheJobAsks(t *testing.T) {
	const rack, block = "example.com/rack", "example.com/block"
	asks := func(annotations map[string]string, request *kueue.PodSetTopologyRequest,
		spec func(*corev1.PodSpec)) kueue.PodSet {
		set := cpus(4, "1")[0]
		for key, value := range annotations {
			metav1.SetMetaDataAnnotation(&set.Template.ObjectMeta, "kueue.x-k8s.io/podset-"+key, value)
		}
		set.TopologyRequest = request
		if spec != nil {
			spec(&set.Template.Spec)
		}
		return set
	}
	// A job's annotations are read, and the order of its pods is added.
	job := func(annotations map[string]string, spec func(*corev1.PodSpec)) kueue.PodSet {
		sets := []kueue.PodSet{asks(annotations, nil, spec)}
		if mistake := jobs.RequestTopology(sets,
			func(int) jobs.Ranks { return jobs.Ranks{IndexLabel: "index"} }); mistake != nil {
			t.Fatal(mistake.Message)
		}
		return sets[0]
	}
	within := func(level string) *kueue.PodSetTopologyRequest {
		return &kueue.PodSetTopologyRequest{Required: ptr.To(level)}
	}
	derived := asks(nil, within(rack), nil) // as of an exclusive JobSet
	sliced := map[string]string{"slice-required-topology": rack, "slice-size": "2"}
	tolerate := func(tolerations ...corev1.Toleration) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.Tolerations = tolerations }
	}
	a, b := corev1.Toleration{Key: "a", Value: "1"}, corev1.Toleration{Key: "b", Operator: corev1.TolerationOpExists}
	written := a
	written.Operator = corev1.TolerationOpEqual
	on := func(pools ...string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			terms := &corev1.NodeSelector{}
			for _, pool := range pools {
				terms.NodeSelectorTerms = append(terms.NodeSelectorTerms,
					corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{pool}}}})
			}
			s.Affinity = &corev1.Affinity{
				NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
		}
	}
	apart := func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{
			PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: rack}}}}
	}
	spread := func(how corev1.UnsatisfiableConstraintAction) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: rack,
				WhenUnsatisfiable: how}}
		}
	}
	for name, tc := range map[string]struct {
		said, own kueue.PodSet
		want      bool
	}{
		"the same level": {asks(nil, within(rack), nil),
			job(map[string]string{"required-topology": rack}, nil), true},
		"a wider level": {asks(nil, within(rack), nil),
			job(map[string]string{"required-topology": "kubernetes.io/hostname"}, nil), false},
		"no level": {asks(nil, nil, nil),
			job(map[string]string{"required-topology": rack}, nil), false},
		"a level in an annotation alone": {asks(map[string]string{"required-topology": rack}, nil, nil),
			job(map[string]string{"required-topology": rack}, nil), false},
		"a level that the job asks not": {asks(nil, within(rack), nil), job(nil, nil), false},
		"preferred, not required": {asks(nil, &kueue.PodSetTopologyRequest{Preferred: ptr.To(rack)}, nil),
			job(map[string]string{"required-topology": rack}, nil), false},
		"the same slices": {asks(nil, &kueue.PodSetTopologyRequest{PodSetSliceRequiredTopology: ptr.To(rack),
			PodSetSliceSize: ptr.To[int32](2)}, nil), job(sliced, nil), true},
		"the same slices, as a layer": {asks(nil,
			&kueue.PodSetTopologyRequest{PodsetSliceRequiredTopologyConstraints: []kueue.PodsetSliceRequiredTopologyConstraint{
				{Topology: rack, Size: 2}}}, nil), job(sliced, nil), true},
		"smaller slices": {asks(nil, &kueue.PodSetTopologyRequest{PodSetSliceRequiredTopology: ptr.To(rack),
			PodSetSliceSize: ptr.To[int32](1)}, nil), job(sliced, nil), false},
		"slices of a wider level": {asks(nil, &kueue.PodSetTopologyRequest{PodSetSliceRequiredTopology: ptr.To(block),
			PodSetSliceSize: ptr.To[int32](2)}, nil), job(sliced, nil), false},
		"no group": {asks(nil, within(rack), nil),
			job(map[string]string{"required-topology": rack, "group-name": "g"}, nil), false},
		"a derived request":               {asks(nil, within(rack), nil), derived, true},
		"without the derived request":     {asks(nil, nil, nil), derived, true},
		"another than the derived one":    {asks(nil, within(block), nil), derived, false},
		"tolerations in another order":    {asks(nil, nil, tolerate(b, written)), job(nil, tolerate(a, b)), true},
		"another toleration":              {asks(nil, nil, tolerate(a, b)), job(nil, tolerate(a)), false},
		"node terms in another order":     {asks(nil, nil, on("y", "x")), job(nil, on("x", "y")), true},
		"another node term":               {asks(nil, nil, on("x", "y")), job(nil, on("x")), false},
		"apart, which the Workload omits": {asks(nil, nil, nil), job(nil, apart), false},
		"apart":                           {asks(nil, nil, apart), job(nil, apart), true},
		"a hard spread that is omitted":   {asks(nil, nil, nil), job(nil, spread(corev1.DoNotSchedule)), false},
		"a soft spread that is omitted":   {asks(nil, nil, nil), job(nil, spread(corev1.ScheduleAnyway)), true},
	} {
		if got := asksTheSame([]kueue.PodSet{tc.said}, []kueue.PodSet{tc.own}); got != tc.want {
			t.Errorf("%s: asks the same: %t, want %t", name, got, tc.want)
		}
	}
}

func TestRequestOf(t *testing.T) {
	for text, want := range map[string]int32{"60": 60, "2147483647": 2147483647, "0": 0, "-1": 0, "": 0, "1h": 0,
		"2147483648": 0} {
		r, mistake := requestOf(jobWith(map[string]string{kueue.MaxExecTimeSecondsLabel: text}), jobs.PriorityFacts{})
		switch {
		case want == 0 && (mistake == nil || r.maximumExecutionTimeSeconds != nil ||
			!strings.Contains(mistake.Message, kueue.MaxExecTimeSecondsLabel)):
			t.Errorf("%q: request %+v, mistake %+v, want no limit and a mistake that names the label", text, r, mistake)
		case want != 0 && (mistake != nil || *r.maximumExecutionTimeSeconds != want):
			t.Errorf("%q: request %+v, mistake %+v, want a limit of %d s", text, r, mistake, want)
		}
	}
	if r, mistake := requestOf(jobWith(nil),
		jobs.PriorityFacts{}); r.maximumExecutionTimeSeconds != nil || mistake != nil {
		t.Errorf("without the label: request %+v, mistake %+v, want neither a limit nor a mistake", r, mistake)
	}
}

func TestMissingPriorityClassIsAMistake(t *testing.T) {
	job := jobWith(map[string]string{kueue.WorkloadPriorityClassLabel: "high"})
	if _, mistake := requestOf(job, jobs.PriorityFacts{}); mistake == nil || mistake.Reason != jobs.InvalidJob {
		t.Errorf("mistake = %+v, want InvalidJob", mistake)
	}
	withClass := jobs.PriorityFacts{Workload: map[string]*kueue.WorkloadPriorityClass{"high": {Value: 5}}}
	if _, mistake := requestOf(job, withClass); mistake != nil {
		t.Errorf("mistake = %+v, want none once the class exists", mistake)
	}
}

// TestMistakeSaysWhatFollows checks the end of the message: whether the job is not queued or keeps its Workload, and
// whether the mistake can be corrected.
func TestMistakeSaysWhatFollows(t *testing.T) {
	job := jobWith(map[string]string{kueue.MaxExecTimeSecondsLabel: "1h"})
	correctable := jobs.Description{Mistake: jobs.Mistake("One is wrong")}
	immutable := jobs.Description{Mistake: jobs.ImmutableMistake("One is wrong")}
	final := jobs.Description{Mistake: ptr.To(write.Obstacle(jobs.InvalidJob, "One is wrong, for good"))}
	for name, tc := range map[string]struct {
		described   jobs.Description
		hasWorkload bool
		want        []string
	}{
		"before the job is queued": {correctable, false,
			[]string{"One is wrong. The job is not queued until this is corrected",
				" 2147483647. The job is not queued until this is corrected"}},
		"once the job is queued": {correctable, true,
			[]string{"One is wrong. Until this is corrected the job keeps its previous settings",
				" 2147483647. Until this is corrected the job keeps its previous settings"}},
		"immutable, before the job is queued": {immutable, false, []string{
			"One is wrong. The job is not queued: this part of a Job is immutable, so delete it and create another",
			". The job is not queued until this is corrected"}},
		"immutable, once the job is queued": {immutable, true, []string{
			"One is wrong. This part of a Job is immutable: the job stays in the queue, or runs, as it is",
			". Until this is corrected the job keeps its previous settings"}},
		"final": {final, false, []string{"One is wrong, for good", ". The job is not queued until this is corrected"}},
	} {
		t.Run(name, func(t *testing.T) {
			reported := mistakesOf(job, tc.described, jobs.PriorityFacts{}, tc.hasWorkload)
			if len(reported) != len(tc.want) {
				t.Fatalf("events = %+v, want %d", reported, len(tc.want))
			}
			for i, want := range tc.want {
				if !strings.HasSuffix(reported[i].Message, want) || !reported[i].Standing || reported[i].Reason != jobs.InvalidJob {
					t.Errorf("event %+v, want a standing InvalidJob that ends in %q", reported[i], want)
				}
			}
		})
	}
}
