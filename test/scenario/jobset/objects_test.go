package jobset

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/test/scenario/harness"
)

// claiming makes the workers of the JobSet mount a claim that it creates.
func claiming(js *jobset.JobSet, name string, whenDeleted jobset.RetentionPolicyType) *jobset.JobSet {
	js.Spec.VolumeClaimPolicies = append(js.Spec.VolumeClaimPolicies, jobset.VolumeClaimPolicy{
		RetentionPolicy: &jobset.VolumeRetentionPolicy{WhenDeleted: &whenDeleted},
		Templates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}}})
	c := &js.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	return js
}

// untilClaims waits until the namespace has exactly these PersistentVolumeClaims.
func (w *world) untilClaims(names ...string) {
	w.Helper()
	harness.Until(w.World, &corev1.PersistentVolumeClaimList{}, fmt.Sprintf("the claims are %v", names),
		func(list *corev1.PersistentVolumeClaimList) bool {
			var got []string
			for _, c := range list.Items {
				got = append(got, c.Name)
			}
			slices.Sort(got)
			return slices.Equal(got, names)
		})
}

// TestClaimsAreSharedAndRetainedOnesAreReused: all pods of a JobSet mount the same claims. A retained claim has no
// owner and is reused by the next JobSet of the name, the others are deleted with their JobSet.
func TestClaimsAreSharedAndRetainedOnesAreReused(t *testing.T) {
	w := newWorld(t)
	newSet := func() *jobset.JobSet {
		return claiming(claiming(w.set(), "retained", jobset.RetentionPolicyRetain), "scratch", jobset.RetentionPolicyDelete)
	}
	w.Create(newSet())
	jobs := w.untilOnlyJobs("js-leader-0", "js-workers-0", "js-workers-1")
	w.untilClaims("retained-js", "scratch-js")
	if got := jobs["js-workers-0"].Spec.Template.Spec.Volumes; len(got) != 2 ||
		got[0].PersistentVolumeClaim.ClaimName != "retained-js" {
		t.Errorf("volumes = %+v, want two, the first of claim retained-js", got)
	}
	retained := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "retained-js", Namespace: w.Namespace}}
	w.Get(retained)
	if retained.Labels[jobset.JobSetNameKey] != "js" || len(retained.OwnerReferences) != 0 {
		t.Errorf("claim = %+v, want the JobSet's label and no owners", retained.ObjectMeta)
	}
	// A claim in use by running pods is not deleted, and there is no kubelet to stop them: end them first.
	w.succeed("js-leader-0", "js-workers-0", "js-workers-1")
	w.untilJobSet("js", "is completed", is(jobset.JobSetCompleted, metav1.ConditionTrue, jobset.AllJobsCompletedReason))
	w.Delete(w.set())
	w.untilClaims("retained-js")
	w.Create(newSet())
	w.untilJobs("are recreated", func(again map[string]batchv1.Job) bool {
		return len(again) == 3 && again["js-workers-0"].UID != jobs["js-workers-0"].UID
	})
	w.untilClaims("retained-js", "scratch-js")
	uid := retained.UID
	if w.Get(retained); retained.UID != uid {
		t.Errorf("UID of claim retained-js = %s, want the same as before, %s", retained.UID, uid)
	}
}

// TestAConflictingClaimBlocksJobsUntilItIsDeleted: a claim of the name that is too small is reported by an event. There
// are no Jobs until it is deleted.
func TestAConflictingClaimBlocksJobsUntilItIsDeleted(t *testing.T) {
	w := newWorld(t)
	small := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-js", Namespace: w.Namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}}}}
	w.Create(small, claiming(w.set(), "data", jobset.RetentionPolicyRetain))
	const want = "the PersistentVolumeClaim data-js is there already and has 1Mi, less than 1Gi: delete it, or give the JobSet another name"
	if e := w.UntilEvent("js", jobset.PVCCreationFailedReason); e.Note != want {
		t.Errorf("note of the event = %q, want %q", e.Note, want)
	}
	w.Create(w.named("other", w.replicated("r", 1, 1))) // its Job would come after those of js
	w.untilOnlyJobs("other-r-0")
	w.Delete(small)
	w.untilOnlyJobs("other-r-0", "js-leader-0", "js-workers-0", "js-workers-1")
}

// untilServices waits until the condition holds for the Services by name, and returns them.
func (w *world) untilServices(what string, holds func(map[string]corev1.Service) bool) map[string]corev1.Service {
	w.Helper()
	var byName map[string]corev1.Service
	harness.Until(w.World, &corev1.ServiceList{}, what, func(list *corev1.ServiceList) bool {
		byName = map[string]corev1.Service{}
		for _, s := range list.Items {
			byName[s.Name] = s
		}
		return holds(byName)
	})
	return byName
}

// TestTheServiceIsLabelledAndRecreated: clients find the Service by the label of its JobSet, it is recreated if it is
// deleted, and an annotation adds one for each replicated job.
func TestTheServiceIsLabelledAndRecreated(t *testing.T) {
	w := newWorld(t)
	w.Create(w.set())
	first := w.untilServices("there is one Service", func(s map[string]corev1.Service) bool { return len(s) == 1 })["js"]
	var list corev1.ServiceList
	if err := w.Client.List(t.Context(), &list, client.InNamespace(w.Namespace),
		client.MatchingLabels{jobset.JobSetNameKey: "js"}); err != nil || len(list.Items) != 1 {
		t.Errorf("%d Services have the label of the JobSet, want 1: %v", len(list.Items), err)
	}
	w.Delete(first.DeepCopy())
	w.untilServices("Service js is recreated", func(s map[string]corev1.Service) bool {
		return len(s) == 1 && s["js"].UID != first.UID && s["js"].Name == "js"
	})
	w.Patch(w.set(), `{"metadata": {"annotations": {"muster.dev/service-per-replicated-job": "true"}}}`)
	w.untilServices("there is also a Service for each replicated job", func(s map[string]corev1.Service) bool {
		return len(s) == 3 && s["js-workers"].Spec.Selector[jobset.ReplicatedJobNameKey] == "workers" &&
			s["js-leader"].Name != ""
	})
}

// TestJobSetsOfOneSubdomainShareItsService: two JobSets with the same subdomain both own its Service, which selects the
// pods of both and is deleted with the last of them.
func TestJobSetsOfOneSubdomainShareItsService(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"one", "two"} {
		js := w.named(name, w.replicated("r", 1, 1))
		js.Spec.Network = &jobset.Network{Subdomain: "net"}
		w.Create(js)
		w.untilOnlyJobs(map[string][]string{"one": {"one-r-0"}, "two": {"one-r-0", "two-r-0"}}[name]...)
	}
	shared := w.untilServices("both JobSets own Service net",
		func(s map[string]corev1.Service) bool { return len(s["net"].OwnerReferences) == 2 })["net"]
	for _, job := range []string{"one-r-0", "two-r-0"} {
		pod := w.podsOf(job)[0]
		for key, value := range shared.Spec.Selector {
			if pod.Labels[key] != value {
				t.Errorf("labels of pod %s = %v, want the selector of the Service, %v", pod.Name, pod.Labels, shared.Spec.Selector)
			}
		}
		if pod.Spec.Subdomain != "net" || pod.Spec.Hostname != job+"-0" {
			t.Errorf("host name = %s.%s, want %s-0.net", pod.Spec.Hostname, pod.Spec.Subdomain, job)
		}
	}
	w.Delete(w.named("one"))
	w.untilServices("only JobSet two owns Service net", func(s map[string]corev1.Service) bool {
		return s["net"].UID == shared.UID && len(s["net"].OwnerReferences) == 1 && s["net"].OwnerReferences[0].Name == "two"
	})
	w.Delete(w.named("two"))
	w.untilServices("there are no Services", func(s map[string]corev1.Service) bool { return len(s) == 0 })
}

// TestRunningJobsGrowAndShrink: changed parallelism and completions are applied to the running Jobs, which are not
// recreated.
func TestRunningJobsGrowAndShrink(t *testing.T) {
	w := newWorld(t)
	w.Create(w.named("js", w.replicated("workers", 2, 2)))
	before := w.untilOnlyJobs("js-workers-0", "js-workers-1")
	resize := func(pods int32) {
		t.Helper()
		js := w.named("js")
		w.Change(js, func() {
			spec := &js.Spec.ReplicatedJobs[0].Template.Spec
			spec.Parallelism, spec.Completions = ptr.To(pods), ptr.To(pods)
		})
		w.untilJobs("have their new size", func(jobs map[string]batchv1.Job) bool {
			for name, job := range jobs {
				if *job.Spec.Parallelism != pods || *job.Spec.Completions != pods || job.Status.Active != pods ||
					job.UID != before[name].UID {
					return false
				}
			}
			return len(jobs) == 2
		})
	}
	resize(3)
	resize(1)
	w.succeed("js-workers-0", "js-workers-1")
	w.untilJobSet("js", "is completed", is(jobset.JobSetCompleted, metav1.ConditionTrue, jobset.AllJobsCompletedReason))
}
