package jobset

import (
	"slices"
	"testing"

	"github.com/musterhq/muster/test/scenario/harness"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// claiming has the workers mount a claim.
func claiming(js *jobset.JobSet, name string, whenDeleted jobset.RetentionPolicyType) *jobset.JobSet {
	js.Spec.VolumeClaimPolicies = append(js.Spec.VolumeClaimPolicies, jobset.VolumeClaimPolicy{
		RetentionPolicy: &jobset.VolumeRetentionPolicy{WhenDeleted: &whenDeleted},
		Templates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}}})
	c := &js.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	return js
}

// claims waits until the claims are exactly these.
func (w *world) claims(names ...string) {
	w.Helper()
	harness.Until(w.World, &corev1.PersistentVolumeClaimList{}, "there are the claims", func(list *corev1.PersistentVolumeClaimList) bool {
		var got []string
		for _, c := range list.Items {
			got = append(got, c.Name)
		}
		slices.Sort(got)
		return slices.Equal(got, names)
	})
}

func TestClaimsAreSharedAndRetainedOnesAreReused(t *testing.T) {
	w := newWorld(t)
	make := func() *jobset.JobSet {
		return claiming(claiming(w.set(), "kept", jobset.RetentionPolicyRetain), "scratch", jobset.RetentionPolicyDelete)
	}
	w.Create(make())
	jobs := w.thereAre("js-leader-0", "js-workers-0", "js-workers-1")
	w.claims("kept-js", "scratch-js")
	if got := jobs["js-workers-0"].Spec.Template.Spec.Volumes; len(got) != 2 || got[0].PersistentVolumeClaim.ClaimName != "kept-js" {
		t.Errorf("volumes %+v", got)
	}
	var kept corev1.PersistentVolumeClaim
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "kept-js"}, &kept); err != nil {
		t.Fatal(err)
	}
	if kept.Labels[jobset.JobSetNameKey] != "js" || len(kept.OwnerReferences) != 0 {
		t.Errorf("claim %+v", kept.ObjectMeta)
	}
	// No kubelet lets go of the claim that pods use, so they end first.
	w.succeed("js-leader-0", "js-workers-0", "js-workers-1")
	w.jobSet("js", "completes", is(jobset.JobSetCompleted, metav1.ConditionTrue, jobset.AllJobsCompletedReason))
	w.Delete(w.set())
	w.claims("kept-js")
	w.Create(make())
	w.jobs("are there again", func(again map[string]batchv1.Job) bool {
		return len(again) == 3 && again["js-workers-0"].UID != jobs["js-workers-0"].UID
	})
	w.claims("kept-js", "scratch-js")
	uid := kept.UID
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(&kept), &kept); err != nil || kept.UID != uid {
		t.Errorf("the claim was made anew: %v", err)
	}
}

func TestAConflictingClaimBlocksJobsUntilItIsDeleted(t *testing.T) {
	w := newWorld(t)
	small := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-js", Namespace: w.Namespace}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}}}}
	w.Create(small, claiming(w.set(), "data", jobset.RetentionPolicyRetain))
	if e := w.UntilEvent("js", jobset.PVCCreationFailedReason); e.Note != "the PersistentVolumeClaim data-js is there already and has 1Mi, less than 1Gi: delete it, or give the JobSet another name" {
		t.Errorf("note %q", e.Note)
	}
	w.thereAre()
	w.Delete(small)
	w.thereAre("js-leader-0", "js-workers-0", "js-workers-1")
}

// services waits until the Services are so.
func (w *world) services(what string, hold func(map[string]corev1.Service) bool) map[string]corev1.Service {
	w.Helper()
	var byName map[string]corev1.Service
	harness.Until(w.World, &corev1.ServiceList{}, what, func(list *corev1.ServiceList) bool {
		byName = map[string]corev1.Service{}
		for _, s := range list.Items {
			byName[s.Name] = s
		}
		return hold(byName)
	})
	return byName
}

func TestTheServiceHasTheDocumentedSelectorAndIsRepaired(t *testing.T) {
	w := newWorld(t)
	w.Create(w.set())
	first := w.services("there is a Service", func(s map[string]corev1.Service) bool { return len(s) == 1 })["js"]
	var list corev1.ServiceList
	if err := w.Client.List(t.Context(), &list, client.InNamespace(w.Namespace), client.MatchingLabels{jobset.JobSetNameKey: "js"}); err != nil || len(list.Items) != 1 {
		t.Errorf("found %d: %v", len(list.Items), err)
	}
	w.Delete(first.DeepCopy())
	w.services("it is healed", func(s map[string]corev1.Service) bool {
		return len(s) == 1 && s["js"].UID != first.UID && s["js"].Name == "js"
	})
	w.Patch(w.set(), `{"metadata": {"annotations": {"muster.dev/service-per-replicated-job": "true"}}}`)
	w.services("there is one for each replicated job", func(s map[string]corev1.Service) bool {
		return len(s) == 3 && s["js-workers"].Spec.Selector[jobset.ReplicatedJobNameKey] == "workers" && s["js-leader"].Name != ""
	})
}

func TestJobSetsOfOneSubdomainShareItsService(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"one", "two"} {
		js := w.named(name, w.replicated("r", 1, 1))
		js.Spec.Network = &jobset.Network{Subdomain: "net"}
		w.Create(js)
		w.thereAre(map[string][]string{"one": {"one-r-0"}, "two": {"one-r-0", "two-r-0"}}[name]...)
	}
	shared := w.services("both have a part in it", func(s map[string]corev1.Service) bool { return len(s["net"].OwnerReferences) == 2 })["net"]
	for _, job := range []string{"one-r-0", "two-r-0"} {
		pod := w.podsOf(job)[0]
		for key, value := range shared.Spec.Selector {
			if pod.Labels[key] != value {
				t.Errorf("pod %s is not selected by %v", pod.Name, shared.Spec.Selector)
			}
		}
		if pod.Spec.Subdomain != "net" || pod.Spec.Hostname != job+"-0" {
			t.Errorf("host name %s.%s", pod.Spec.Hostname, pod.Spec.Subdomain)
		}
	}
	w.Delete(w.named("one"))
	w.services("it stays for the other", func(s map[string]corev1.Service) bool {
		return s["net"].UID == shared.UID && len(s["net"].OwnerReferences) == 1 && s["net"].OwnerReferences[0].Name == "two"
	})
	w.Delete(w.named("two"))
	w.services("it goes with the last", func(s map[string]corev1.Service) bool { return len(s) == 0 })
}

func TestRunningJobsGrowAndShrink(t *testing.T) {
	w := newWorld(t)
	w.Create(w.named("js", w.replicated("workers", 2, 2)))
	before := w.thereAre("js-workers-0", "js-workers-1")
	resize := func(pods int32) {
		t.Helper()
		var js jobset.JobSet
		if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "js"}, &js); err != nil {
			t.Fatal(err)
		}
		after := js.DeepCopy()
		spec := &after.Spec.ReplicatedJobs[0].Template.Spec
		spec.Parallelism, spec.Completions = ptr.To(pods), ptr.To(pods)
		if err := w.Client.Patch(t.Context(), after, client.MergeFrom(&js)); err != nil {
			t.Fatal(err)
		}
		w.jobs("have their new size", func(jobs map[string]batchv1.Job) bool {
			for name, job := range jobs {
				if *job.Spec.Parallelism != pods || *job.Spec.Completions != pods || job.Status.Active != pods || job.UID != before[name].UID {
					return false
				}
			}
			return len(jobs) == 2
		})
	}
	resize(3)
	resize(1)
	w.succeed("js-workers-0", "js-workers-1")
	w.jobSet("js", "completes", is(jobset.JobSetCompleted, metav1.ConditionTrue, jobset.AllJobsCompletedReason))
}
