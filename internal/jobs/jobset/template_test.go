package jobset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
)

// created returns the objects that a plan creates, by name.
func created(p jobs.Plan) map[string]client.Object {
	out := map[string]client.Object{}
	for _, w := range p.Writes {
		if w.Verb() == "create" {
			out[w.Object().GetName()] = w.Object()
		}
	}
	return out
}

// createdJob returns the Job of this name that a plan creates.
func createdJob(t *testing.T, p jobs.Plan, name string) *batchv1.Job {
	t.Helper()
	job, ok := created(p)[name].(*batchv1.Job)
	if !ok {
		t.Fatalf("the plan does not create the Job %s: %v", name, writes(p))
	}
	return job
}

// ownedByTheSet returns the owner reference of objects that the JobSet controls.
func ownedByTheSet() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Name: "js", UID: "js-uid",
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}
}

// TestCreatedJob checks all names, labels, annotations and defaults of the public API.
func TestCreatedJob(t *testing.T) {
	b := newSet().with("ps", 3).restarted(2)
	b.js.Labels, b.js.Annotations = map[string]string{"not": "copied"}, map[string]string{"not": "copied"}
	b.js.Spec.Coordinator = &jobset.Coordinator{ReplicatedJob: "leader", JobIndex: 0, PodIndex: 0}
	workers := &b.js.Spec.ReplicatedJobs[1]
	workers.GroupName = "training"
	b.js.Spec.ReplicatedJobs[2].GroupName = "training"
	workers.Template.Labels, workers.Template.Annotations = map[string]string{"job": "label"},
		map[string]string{"job": "annotation"}
	workers.Template.Spec.Suspend = ptr.To(true) // the JobSet decides, not the template
	workers.Template.Spec.Parallelism = ptr.To[int32](4)
	workers.Template.Spec.Template.Labels = map[string]string{"pod": "label", jobset.JobIndexKey: "wrong"}
	workers.Template.Spec.Template.Annotations = map[string]string{"pod": "annotation"}

	keys := map[string]string{
		"jobset.sigs.k8s.io/jobset-name":            "js",
		"jobset.sigs.k8s.io/jobset-uid":             "js-uid",
		"jobset.sigs.k8s.io/replicatedjob-name":     "workers",
		"jobset.sigs.k8s.io/replicatedjob-replicas": "2",
		"jobset.sigs.k8s.io/global-replicas":        "6",
		"jobset.sigs.k8s.io/job-index":              "1",
		"jobset.sigs.k8s.io/job-global-index":       "2",
		"jobset.sigs.k8s.io/group-name":             "training",
		"jobset.sigs.k8s.io/group-replicas":         "5",
		"jobset.sigs.k8s.io/job-group-index":        "1",
		// printf ns/js-workers-1 | sha1sum
		"jobset.sigs.k8s.io/job-key":             "517d70ff8ddeb6684a3a547e37602be566603129",
		"jobset.sigs.k8s.io/restart-attempt":     "2",
		"jobset.sigs.k8s.io/job-restart-attempt": "0",
		"jobset.sigs.k8s.io/coordinator":         "js-leader-0-0.js",
	}
	want := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: "js-workers-1", Namespace: "ns", OwnerReferences: ownedByTheSet(),
			Labels:      podspec.Merged(keys, map[string]string{"job": "label"}),
			Annotations: podspec.Merged(keys, map[string]string{"job": "annotation"}),
		},
		Spec: batchv1.JobSpec{
			Suspend: ptr.To(false), Parallelism: ptr.To[int32](4), CompletionMode: ptr.To(batchv1.IndexedCompletion),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podspec.Merged(keys, map[string]string{"pod": "label",
					"jobset.sigs.k8s.io/priority": "0", "muster.dev/subdomain": "js"}),
					Annotations: podspec.Merged(keys, map[string]string{"pod": "annotation"})},
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyOnFailure, Subdomain: "js",
					Containers: []corev1.Container{{Name: "c", Image: "busybox"}}},
			},
		},
	}
	got := createdJob(t, checkedPlan(t, b.js, unqueued, nil), "js-workers-1")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Job js-workers-1 (-want +got):\n%s", diff)
	}
}

func TestIndices(t *testing.T) {
	type indices struct{ job, global, group, inGroup string }
	b := newSet().with("ps", 1)
	b.js.Spec.ReplicatedJobs[2].GroupName = "other"
	p := checkedPlan(t, b.js, unqueued, nil)
	for name, want := range map[string]indices{
		"js-leader-0":  {"0", "0", "default", "0"},
		"js-workers-0": {"0", "1", "default", "1"},
		"js-workers-1": {"1", "2", "default", "2"},
		"js-ps-0":      {"0", "3", "other", "0"},
	} {
		l := createdJob(t, p, name).Labels
		if got := (indices{l[jobset.JobIndexKey], l[jobset.JobGlobalIndexKey], l[jobset.GroupNameKey],
			l[jobset.JobGroupIndexKey]}); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestTemplateTakesPrecedenceOverDefaults(t *testing.T) {
	b := newSet()
	b.js.Spec.ReplicatedJobs[0].Template.Spec.CompletionMode = ptr.To(batchv1.NonIndexedCompletion)
	b.js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	got := createdJob(t, checkedPlan(t, b.js, unqueued, nil), "js-leader-0").Spec
	if *got.CompletionMode != batchv1.NonIndexedCompletion ||
		got.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("completionMode %s, restartPolicy %s, want those of the template", *got.CompletionMode,
			got.Template.Spec.RestartPolicy)
	}
}

func TestNetwork(t *testing.T) {
	for name, tc := range map[string]struct {
		network   *jobset.Network
		service   string
		publish   bool
		subdomain string
	}{
		"no network":    {nil, "js", true, "js"},
		"empty network": {&jobset.Network{}, "js", true, "js"},
		"subdomain":     {&jobset.Network{Subdomain: "net"}, "net", true, "net"},
		"no addresses of pods that are not ready": {&jobset.Network{PublishNotReadyAddresses: ptr.To(false)},
			"js", false, "js"},
		"no host names": {&jobset.Network{EnableDNSHostnames: ptr.To(false), Subdomain: "net"}, "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newSet()
			b.js.Spec.Network = tc.network
			b.js.Spec.Coordinator = &jobset.Coordinator{ReplicatedJob: "workers", JobIndex: 1, PodIndex: 3}
			p := checkedPlan(t, b.js, unqueued, nil)
			var want, got *corev1.Service
			if tc.service != "" {
				want = &corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Name: tc.service, Namespace: "ns", OwnerReferences: ownedByTheSet(),
						Labels: map[string]string{"jobset.sigs.k8s.io/jobset-name": "js"}},
					Spec: corev1.ServiceSpec{ClusterIP: "None", PublishNotReadyAddresses: tc.publish,
						Selector: map[string]string{"jobset.sigs.k8s.io/jobset-name": "js"}},
				}
			}
			for _, o := range created(p) {
				if s, ok := o.(*corev1.Service); ok {
					got = s
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Service (-want +got):\n%s", diff)
			}
			leader := createdJob(t, p, "js-leader-0")
			if got := leader.Spec.Template.Spec.Subdomain; got != tc.subdomain {
				t.Errorf("subdomain = %q, want %q", got, tc.subdomain)
			}
			if tc.service != "" && leader.Labels[jobset.CoordinatorKey] != "js-workers-1-3."+tc.service {
				t.Errorf("coordinator = %q, want the pod's host name in the subdomain", leader.Labels[jobset.CoordinatorKey])
			}
		})
	}
}

func TestFailedCreateIsReported(t *testing.T) {
	p := checkedPlan(t, newSet().js, unqueued, nil)
	all := created(p)
	want := []write.Write{
		write.Create(all["js"]).OrWarn("HeadlessServiceCreationFailed"),
		write.Create(all["js-leader-0"]).OrWarn("JobCreationFailed"),
		write.Create(all["js-workers-0"]).OrWarn("JobCreationFailed"),
		write.Create(all["js-workers-1"]).OrWarn("JobCreationFailed"),
	}
	if diff := cmp.Diff(want, p.Writes, cmp.AllowUnexported(write.Write{})); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// grant returns an admission that gives the workers the node selector and the toleration of a pool.
func grant(pool string) jobs.Admission {
	return jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{
		"leader": {Count: 1, Asked: 1, Left: 1},
		"workers": {Count: 2, Asked: 2, Left: 2, Injection: podspec.Injection{
			Labels: map[string]string{kueue.PodSetLabel: "workers"}, NodeSelector: map[string]string{"pool": pool},
			Tolerations: []corev1.Toleration{{Key: pool, Operator: corev1.TolerationOpExists}}}},
	}}
}

func TestPodsOfAnAdmittedJobSetSelectTheirFlavor(t *testing.T) {
	b := newSet()
	b.js.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	p := checkedPlan(t, b.js, grant("gpu"), nil)
	for name, want := range map[string]corev1.PodSpec{
		"js-leader-0": {},
		"js-workers-0": {NodeSelector: map[string]string{"disk": "ssd", "pool": "gpu"},
			Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}},
	} {
		got := createdJob(t, p, name).Spec.Template
		same(t, name+" node selector", want.NodeSelector, got.Spec.NodeSelector)
		same(t, name+" tolerations", want.Tolerations, got.Spec.Tolerations)
	}
	if got := createdJob(t, p, "js-workers-0").Spec.Template.Labels[kueue.PodSetLabel]; got != "workers" {
		t.Errorf("pod set label = %q, want workers", got)
	}
}

// TestResumingLeavesNothingOfAnEarlierAdmission: a Job that is resumed in another pool has the template of a new Job,
// plus the labels that the API server added, which are immutable.
func TestResumingLeavesNothingOfAnEarlierAdmission(t *testing.T) {
	js := newSet().js
	old := createdJob(t, checkedPlan(t, js, grant("gpu"), nil), "js-workers-0")
	old.Spec.Suspend = ptr.To(true)
	old.Spec.Template.Labels[batchv1.ControllerUidLabel], old.Spec.Template.Labels["job-name"] = "job-uid", "js-workers-0"
	p := checkedPlan(t, js, grant("cpu"),
		[]client.Object{service(), old, job("leader", 0).ready().job, job("workers", 1).ready().job})
	same(t, "writes", []string{"change Job js-workers-0"}, writes(p))
	got := p.Writes[0].Object().(*batchv1.Job).Spec.Template
	same(t, "node selector", map[string]string{"pool": "cpu"}, got.Spec.NodeSelector)
	same(t, "tolerations", []corev1.Toleration{{Key: "cpu", Operator: corev1.TolerationOpExists}}, got.Spec.Tolerations)
	if got.Labels[batchv1.ControllerUidLabel] != "job-uid" || got.Labels["job-name"] != "js-workers-0" ||
		got.Labels[jobset.JobIndexKey] != "0" {
		t.Errorf("labels = %v, want those of the API server kept", got.Labels)
	}
}

func TestDescribe(t *testing.T) {
	b := newSet()
	b.js.Spec.ReplicatedJobs[1].Template.Spec.Parallelism = ptr.To[int32](4)
	b.js.Spec.ReplicatedJobs[1].Template.Spec.Completions = ptr.To[int32](3)
	got := describe(b.js, jobs.Facts{})
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyOnFailure,
		Containers: []corev1.Container{{Name: "c", Image: "busybox"}}}}
	want := jobs.Description{PodSets: []kueue.PodSet{{Name: "leader", Count: 1, Template: template},
		{Name: "workers", Count: 6, Template: template}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("description (-want +got):\n%s", diff)
	}
	for manager, foreign := range map[string]bool{"example.com/other": true,
		"jobset.sigs.k8s.io/jobset-controller": false} {
		b.js.Spec.ManagedBy = ptr.To(manager)
		if got := describe(b.js, jobs.Facts{}).Foreign; got != foreign {
			t.Errorf("managed by %s: Foreign = %v", manager, got)
		}
	}
}

func TestPodsOfAJob(t *testing.T) {
	for name, tc := range map[string]struct {
		parallelism, completions *int32
		want                     int32
	}{
		"neither":                            {nil, nil, 1},
		"parallelism":                        {ptr.To[int32](4), nil, 4},
		"fewer completions than parallelism": {ptr.To[int32](4), ptr.To[int32](2), 2},
		"completions":                        {nil, ptr.To[int32](5), 1},
		"parallelism 0":                      {ptr.To[int32](0), ptr.To[int32](5), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := jobs.PodsAtATime(&batchv1.JobSpec{Parallelism: tc.parallelism,
				Completions: tc.completions}); got != tc.want {
				t.Errorf("podsOf = %d, want %d", got, tc.want)
			}
		})
	}
}
